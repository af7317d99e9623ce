//! Opens the login page in a browser.

use std::io;
use std::process::{Child, Command, Stdio};

use crate::config::{Environment, env};

/// The command that opens a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Browser {
    /// No browser is available, or `MCPZIP_BROWSER` is `none`.
    None,
    /// A program and its arguments; the URL is appended.
    Command(Vec<String>),
}

impl Browser {
    /// The user's browser. `None` over SSH or without a display.
    pub(super) fn of(environment: &Environment) -> Self {
        let is_set = |name: &str| environment.get(name).is_some_and(|value| !value.is_empty());
        if let Some(command) = environment
            .get(env::BROWSER.name)
            .filter(|command| !command.trim().is_empty())
        {
            if command.trim() == "none" {
                return Self::None;
            }
            return Self::Command(command.split_whitespace().map(str::to_owned).collect());
        }
        let is_remote = is_set("SSH_CONNECTION") || is_set("SSH_TTY");
        let has_display = !cfg!(all(unix, not(target_os = "macos")))
            || is_set("DISPLAY")
            || is_set("WAYLAND_DISPLAY");
        if is_remote || !has_display {
            return Self::None;
        }
        let words: &[&str] = if cfg!(windows) {
            &["rundll32", "url.dll,FileProtocolHandler"]
        } else if cfg!(target_os = "macos") {
            &["open"]
        } else {
            &["xdg-open"]
        };
        Self::Command(words.iter().map(|word| (*word).to_owned()).collect())
    }

    /// Starts the browser with `url` and returns at once. Returns false if no browser could be started.
    pub(super) fn open(&self, url: &str) -> bool {
        let Self::Command(words) = self else {
            return false;
        };
        let Some((program, arguments)) = words.split_first() else {
            return false;
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // The browser may outlive this process, so its `Child` is not kept.
        spawn_to_stay(&mut command).is_ok()
    }
}

#[cfg(not(windows))]
fn spawn_to_stay(command: &mut Command) -> io::Result<Child> {
    command.spawn()
}

/// Starts the command outside this process's job object, unless the parent's job forbids it.
#[cfg(windows)]
fn spawn_to_stay(command: &mut Command) -> io::Result<Child> {
    use std::os::windows::process::CommandExt as _;
    const CREATE_BREAKAWAY_FROM_JOB: u32 = 0x0100_0000;
    command
        .creation_flags(CREATE_BREAKAWAY_FROM_JOB)
        .spawn()
        .or_else(|_| command.creation_flags(0).spawn())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_opens_where_somebody_sits() {
        let browser = |variables: &[(&str, &str)]| {
            Browser::of(&Environment::from_iter(variables.iter().copied()))
        };
        let command = |words: &[&str]| {
            Browser::Command(words.iter().map(|word| (*word).to_owned()).collect())
        };
        assert_eq!(
            browser(&[("MCPZIP_BROWSER", "none"), ("DISPLAY", ":0")]),
            Browser::None
        );
        assert_eq!(
            browser(&[("MCPZIP_BROWSER", "firefox --new-tab")]),
            command(&["firefox", "--new-tab"])
        );
        assert_eq!(
            browser(&[("SSH_CONNECTION", "1 2 3 4"), ("DISPLAY", ":0")]),
            Browser::None
        );
        #[cfg(target_os = "linux")]
        {
            assert_eq!(browser(&[]), Browser::None);
            assert_eq!(
                browser(&[("WAYLAND_DISPLAY", "wayland-0")]),
                command(&["xdg-open"])
            );
        }
    }
}
