//! A program that serves on a port of the loopback interface, until it is no longer needed.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// Interpreters start slowly on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server; it is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Served {
    child: Child,
    /// `http://127.0.0.1:PORT`, as the program said it.
    pub(super) address: String,
}

impl Served {
    /// Starts `command`, and waits until it names the address that it listens on, in its output or its log.
    pub(super) fn start(command: &mut Command) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (sender, lines) = channel();
        read(
            child.stdout.take().expect("stdout is piped"),
            sender.clone(),
        );
        read(child.stderr.take().expect("stderr is piped"), sender);
        // It goes with this, whatever happens now.
        let mut served = Self {
            child,
            address: String::new(),
        };
        let mut said = Vec::new();
        while let Ok(line) = lines.recv_timeout(PATIENCE) {
            if let Some(address) = address_in(&line) {
                served.address = address;
                return served;
            }
            said.push(line);
        }
        panic!("{command:?} named no address, but said {said:#?}");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads to the end, so that the program never waits for a reader.
fn read(stream: impl Read + Send + 'static, lines: Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            // Nobody listens once the address is known.
            let _ = lines.send(line);
        }
    });
}

fn address_in(line: &str) -> Option<String> {
    const START: &str = "http://127.0.0.1:";
    let rest = &line[line.find(START)? + START.len()..];
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    // Before it listens, a program may name the port 0 that it was told.
    port.parse::<u16>()
        .ok()
        .filter(|port| *port != 0)
        .map(|port| format!("{START}{port}"))
}
