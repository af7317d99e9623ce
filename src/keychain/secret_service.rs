//! The Secret Service of freedesktop.org (specification 0.2): GNOME's keyring, KDE's wallet, KeePassXC and others.
//!
//! Secrets pass over the socket unencrypted (the session's algorithm is `plain`), because a program that can read the
//! socket could request them as well.

use std::time::Duration;

use super::{KeychainError, SERVICE};
use crate::config::Environment;
use crate::dbus::{self, Bus, Call, Failure, Reader, Writer};

/// Time limit for all D-Bus calls of one operation. The first call may start the service.
const LIMIT: Duration = Duration::from_secs(2);

const NAME: &str = "org.freedesktop.secrets";
const ROOT: &str = "/org/freedesktop/secrets";
/// The object path that stands for no object.
const NONE: &str = "/";

/// The address of the bus with the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Store {
    address: String,
}

impl Store {
    /// The bus of the user's session. `None` if there is none.
    pub(super) fn of(environment: &Environment) -> Option<Self> {
        dbus::session_bus(environment).map(|address| Self { address })
    }

    pub(super) fn get(&self, name: &str) -> Result<Option<Vec<u8>>, KeychainError> {
        let mut service = Service::open(&self.address)?;
        service.get(name).map_err(unusable)
    }

    pub(super) fn set(&self, name: &str, label: &str, secret: &[u8]) -> Result<(), KeychainError> {
        let mut service = Service::open(&self.address)?;
        match service.set(name, label, secret).map_err(unusable)? {
            true => Ok(()),
            false => Err(KeychainError::Locked),
        }
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), KeychainError> {
        let mut service = Service::open(&self.address)?;
        match service.remove(name).map_err(unusable)? {
            true => Ok(()),
            false => Err(KeychainError::Locked),
        }
    }
}

/// A session with the service.
struct Service {
    bus: Bus,
    session: String,
}

impl Service {
    fn open(address: &str) -> Result<Self, KeychainError> {
        let uid = rustix::process::geteuid().as_raw();
        let mut bus = Bus::connect(address, uid, LIMIT).map_err(|failure| match failure {
            Failure::Io(error) if !dbus::is_silence(&error) => KeychainError::Absent {
                reason: error.to_string(),
            },
            other => unusable(other),
        })?;
        let mut body = Writer::default();
        body.text("plain");
        body.signature("s");
        body.text("");
        let mut answer =
            call(&mut bus, ROOT, "Service", "OpenSession", "sv", body).map_err(unusable)?;
        let session = session_of(&mut answer).map_err(unusable)?;
        Ok(Self { bus, session })
    }

    /// The secret with mcpzip's attributes. A locked one is an error.
    fn get(&mut self, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        let Some(item) = self.find(name)? else {
            return Ok(None);
        };
        let mut body = Writer::default();
        body.text(&self.session);
        let mut secret = call(&mut self.bus, &item, "Item", "GetSecret", "o", body)?;
        // (session, parameters of the algorithm, value, type)
        secret.text()?;
        secret.bytes()?;
        secret.bytes().map(Some)
    }

    /// The object with mcpzip's attributes. A locked one is an error.
    fn find(&mut self, name: &str) -> Result<Option<String>, Failure> {
        let mut body = Writer::default();
        body.texts(&attributes(name));
        let mut found = call(&mut self.bus, ROOT, "Service", "SearchItems", "a{ss}", body)?;
        let (unlocked, locked) = (found.paths()?, found.paths()?);
        match unlocked.into_iter().next() {
            None if !locked.is_empty() => Err(Failure::Refused(LOCKED.to_owned())),
            found => Ok(found),
        }
    }

    /// Removes a secret. Returns false if the service would ask its user first.
    fn remove(&mut self, name: &str) -> Result<bool, Failure> {
        let Some(item) = self.find(name)? else {
            return Ok(true);
        };
        let body = Writer::default();
        let mut removed = call(&mut self.bus, &item, "Item", "Delete", "", body)?;
        Ok(removed.text()? == NONE)
    }

    /// Stores a secret in the default collection. Returns false if the collection is locked.
    fn set(&mut self, name: &str, label: &str, secret: &[u8]) -> Result<bool, Failure> {
        let mut body = Writer::default();
        body.text("default");
        let collection = call(&mut self.bus, ROOT, "Service", "ReadAlias", "s", body)?.text()?;
        if collection == NONE {
            return Err(Failure::Refused("it has no default collection".to_owned()));
        }
        let mut body = Writer::default();
        body.array(8, |properties| {
            properties.align(8);
            properties.text("org.freedesktop.Secret.Item.Label");
            properties.signature("s");
            properties.text(label);
            properties.align(8);
            properties.text("org.freedesktop.Secret.Item.Attributes");
            properties.signature("a{ss}");
            properties.texts(&attributes(name));
        });
        body.align(8);
        body.text(&self.session);
        body.bytes(b"");
        body.bytes(secret);
        body.text("text/plain");
        // Replace an existing secret.
        body.flag(true);
        let mut created = call(
            &mut self.bus,
            &collection,
            "Collection",
            "CreateItem",
            "a{sv}(oayays)b",
            body,
        )?;
        Ok(created.text()? != NONE)
    }
}

/// The specification's error for a locked object.
const LOCKED: &str = "org.freedesktop.Secret.Error.IsLocked";

fn attributes(name: &str) -> [(&str, &str); 3] {
    [
        ("xdg:schema", "org.freedesktop.Secret.Generic"),
        ("service", SERVICE),
        ("username", name),
    ]
}

fn call(
    bus: &mut Bus,
    path: &str,
    interface: &str,
    member: &str,
    signature: &str,
    body: Writer,
) -> Result<Reader, Failure> {
    let interface = format!("org.freedesktop.Secret.{interface}");
    bus.call(Call {
        destination: NAME,
        path,
        interface: &interface,
        member,
        signature,
        body,
    })
}

/// The session in the answer to `OpenSession`. The value before it is unused with `plain`.
fn session_of(answer: &mut Reader) -> Result<String, Failure> {
    match answer.signature()?.as_str() {
        "s" => drop(answer.text()?),
        "ay" => drop(answer.bytes()?),
        _ => return Err(Failure::Malformed),
    }
    answer.text()
}

fn unusable(failure: Failure) -> KeychainError {
    match failure {
        Failure::Io(error) if dbus::is_silence(&error) => KeychainError::Silent { limit: LIMIT },
        Failure::Io(error) => KeychainError::Broken {
            reason: error.to_string(),
        },
        Failure::Refused(name) if name == LOCKED => KeychainError::Locked,
        Failure::Refused(name)
            if name.ends_with(".ServiceUnknown")
                || name.ends_with(".NameHasNoOwner")
                || name.contains(".Spawn.") =>
        {
            KeychainError::Absent {
                reason: "no Secret Service is on the bus".to_owned(),
            }
        }
        Failure::Refused(name) => KeychainError::Broken { reason: name },
        Failure::Malformed => KeychainError::Broken {
            reason: "its answer cannot be read".to_owned(),
        },
    }
}
