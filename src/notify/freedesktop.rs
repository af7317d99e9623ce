//! The notification service of freedesktop.org (specification 1.3), on the bus of the user's session.

use super::{LIMIT, Shown};
use crate::config::Environment;
use crate::dbus::{Bus, Call, Failure, Reader, Writer, is_silence, session_bus};

const NAME: &str = "org.freedesktop.Notifications";

/// How long a notification stays: as long as the desktop decides.
const USUAL: u32 = u32::MAX;

pub(super) fn show(environment: &Environment, shown: &Shown) -> Result<(), String> {
    let mut body = Writer::default();
    body.text("mcpzip");
    // It replaces none, and has no icon.
    body.number(0);
    body.text("");
    body.text(shown.title);
    body.text(&shown.text);
    body.array(4, |_| {});
    body.array(8, |_| {});
    body.number(USUAL);
    call(environment, "Notify", "susssasa{sv}i", body).map(drop)
}

pub(super) fn check(environment: &Environment) -> Result<(), String> {
    call(environment, "GetServerInformation", "", Writer::default()).map(drop)
}

fn call(
    environment: &Environment,
    member: &str,
    signature: &str,
    body: Writer,
) -> Result<Reader, String> {
    let address = session_bus(environment).ok_or("the session has no D-Bus")?;
    let uid = rustix::process::geteuid().as_raw();
    let call = Call {
        destination: NAME,
        path: "/org/freedesktop/Notifications",
        interface: NAME,
        member,
        signature,
        body,
    };
    let answer = Bus::connect(&address, uid, LIMIT).and_then(|mut bus| bus.call(call));
    answer.map_err(|failure| match failure {
        Failure::Io(error) if is_silence(&error) => {
            format!("the notification service gave no answer within {LIMIT:?}")
        }
        Failure::Io(error) => format!("the session's D-Bus cannot be used: {error}"),
        Failure::Refused(name) if name.ends_with(".ServiceUnknown") => {
            "no notification service is on the session's D-Bus".to_owned()
        }
        Failure::Refused(name) => format!("the notification service answered {name}"),
        Failure::Malformed => "the answer of the notification service cannot be read".to_owned(),
    })
}
