//! Takes the daemon out of the control group of the client that started it. Otherwise the end of a terminal, whose group systemd ends,
//! would end the servers of all sessions.

use std::time::Duration;

use crate::config::Environment;
use crate::dbus::{Bus, Call, Writer, session_bus};
use crate::shutdown::spawn_thread;

/// Time limit for the answer of systemd. Nothing waits for it.
const LIMIT: Duration = Duration::from_secs(5);

const MANAGER: &str = "org.freedesktop.systemd1";

/// Asks the user's systemd for a scope with this process. Without one, or where it may not move the process, the control group stays.
pub(super) fn leave_control_group(environment: &Environment) {
    let Some(address) = session_bus(environment) else {
        return;
    };
    // Without a thread the group stays, too.
    let _ = spawn_thread("scope", move || {
        let uid = rustix::process::geteuid().as_raw();
        let answer = Bus::connect(&address, uid, LIMIT).and_then(|mut bus| bus.call(start_scope()));
        match answer {
            Ok(_) => tracing::info!("the daemon has a control group of its own"),
            Err(reason) => tracing::info!(?reason, "the daemon stays in its control group"),
        }
    });
}

fn start_scope() -> Call<'static> {
    let process = std::process::id();
    let mut body = Writer::default();
    body.text(&format!("mcpzip-{process}.scope"));
    body.text("fail");
    body.array(8, |properties| {
        properties.align(8);
        properties.text("PIDs");
        properties.signature("au");
        properties.array(4, |processes| processes.number(process));
        properties.align(8);
        properties.text("Description");
        properties.signature("s");
        properties.text("mcpzip daemon");
        properties.align(8);
        properties.text("CollectMode");
        properties.signature("s");
        properties.text("inactive-or-failed");
    });
    // No further units.
    body.array(8, |_| {});
    Call {
        destination: MANAGER,
        path: "/org/freedesktop/systemd1",
        interface: "org.freedesktop.systemd1.Manager",
        member: "StartTransientUnit",
        signature: "ssa(sv)a(sa(sv))",
        body,
    }
}
