//! A keychain for tests: GNOME Keyring on a separate bus and in a separate home.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::client::until;
use super::{Setup, tool};

/// A bus with a keychain. Both end on drop.
pub(crate) struct Keyring {
    home: TempDir,
    bus: Child,
    daemon: Option<Child>,
    /// The address of the bus.
    pub(crate) address: String,
}

impl Keyring {
    /// Starts an unlocked keychain. `None` if the test is skipped.
    #[track_caller]
    pub(crate) fn start() -> Option<Self> {
        let mut keyring = Self::without_daemon()?;
        if !tool::has("gnome-keyring-daemon", "gnome-keyring") {
            return None;
        }
        keyring.open(true);
        Some(keyring)
    }

    /// Starts a bus without a keychain.
    #[track_caller]
    pub(crate) fn without_daemon() -> Option<Self> {
        if !tool::has("dbus-daemon", "dbus") || !tool::has("dbus-send", "dbus") {
            return None;
        }
        let home = TempDir::new().unwrap();
        // The system's configuration would start services of the system.
        let config = home.path().join("bus.conf");
        let socket = home.path().join("bus");
        let text = format!(
            "<busconfig><type>session</type><listen>unix:path={}</listen><auth>EXTERNAL</auth>\
             <policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/>\
             <allow own=\"*\"/></policy></busconfig>",
            socket.display()
        );
        std::fs::write(&config, text).unwrap();
        let mut bus = command("dbus-daemon", home.path());
        bus.args(["--nofork", "--nopidfile", "--print-address=1"])
            .arg(format!("--config-file={}", config.display()));
        let mut bus = bus
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(bus.stdout.take().unwrap())
            .read_line(&mut address)
            .unwrap();
        let address = address.trim().to_owned();
        assert!(
            address.starts_with("unix:"),
            "the bus did not start: {address}"
        );
        Some(Self {
            home,
            bus,
            daemon: None,
            address,
        })
    }

    /// Starts the daemon with its collection locked or unlocked. A keychain that was never unlocked has no collection.
    pub(crate) fn open(&mut self, is_unlocked: bool) {
        self.close();
        let mut daemon = command("gnome-keyring-daemon", self.home.path());
        daemon
            .args(["--foreground", "--components=secrets"])
            .env("DBUS_SESSION_BUS_ADDRESS", &self.address);
        if is_unlocked {
            daemon.arg("--unlock").stdin(Stdio::piped());
        }
        let mut child = daemon
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(b"password").unwrap();
        }
        self.daemon = Some(child);
        until("the keychain to be on its bus", || {
            let mut call = command("dbus-send", self.home.path());
            call.arg(format!("--bus={}", self.address)).args([
                "--print-reply",
                "--dest=org.freedesktop.DBus",
                "/org/freedesktop/DBus",
                "org.freedesktop.DBus.NameHasOwner",
                "string:org.freedesktop.secrets",
            ]);
            let said = String::from_utf8(call.output().unwrap().stdout).unwrap();
            said.contains("boolean true").then_some(())
        });
    }

    /// Ends the daemon. Its secrets stay on disk.
    pub(crate) fn close(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }

    /// A copy of `setup` that uses this keychain.
    pub(crate) fn around(&self, setup: &Setup) -> Setup {
        setup
            .clone()
            .variable("DBUS_SESSION_BUS_ADDRESS", &self.address)
            .variable("MCPZIP_CREDENTIALS", "auto")
    }
}

impl Drop for Keyring {
    fn drop(&mut self) {
        self.close();
        let _ = self.bus.kill();
        let _ = self.bus.wait();
    }
}

fn command(program: &str, home: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", home)
        .env("XDG_DATA_HOME", home)
        .env_remove("DBUS_SESSION_BUS_ADDRESS");
    command.stdin(Stdio::null());
    command
}
