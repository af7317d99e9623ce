//! A terminal with a user: `tmux` shows the screen and types.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::client::until;
use super::tool;

/// A terminal of 100 × 30 characters, or of another width.
pub(crate) struct Terminal {
    directory: TempDir,
}

impl Terminal {
    /// Runs `command` in a new terminal, with its variables only. The terminal stays open after the command ends.
    /// `None` if the test is skipped.
    #[track_caller]
    pub(crate) fn run(command: &Command) -> Option<Self> {
        Self::run_in(command, 100)
    }

    /// Runs `command` in a terminal with this many columns.
    #[track_caller]
    pub(crate) fn run_in(command: &Command, columns: u16) -> Option<Self> {
        if !tool::has("tmux", "tmux") {
            return None;
        }
        let terminal = Self {
            directory: TempDir::new().unwrap(),
        };
        let quoted =
            |text: &std::ffi::OsStr| format!("'{}'", text.to_str().unwrap().replace('\'', r"'\''"));
        let variables = command
            .get_envs()
            .filter_map(|(name, value)| Some(format!("{}={}", name.to_str()?, quoted(value?))));
        let words = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(quoted);
        let line = std::iter::once("env -i TERM=screen-256color LANG=C.UTF-8".to_owned())
            .chain(variables)
            .chain(words);
        let script = terminal.directory.path().join("run");
        let directory = command.get_current_dir().unwrap_or(Path::new("/"));
        let text = format!(
            "cd {}\ntrap : INT\n{}\necho \"[exit $?]\"\nsleep 600\n",
            quoted(directory.as_os_str()),
            line.collect::<Vec<_>>().join(" ")
        );
        std::fs::write(&script, text).unwrap();
        let started = terminal
            .tmux(&[
                "-f",
                "/dev/null",
                "new-session",
                "-d",
                "-x",
                &columns.to_string(),
                "-y",
                "30",
                &format!("sh {}", script.display()),
            ])
            .stdin(Stdio::null())
            .status()
            .unwrap();
        assert!(started.success(), "tmux did not start");
        Some(terminal)
    }

    /// The visible text. Lines that the terminal wrapped are joined.
    pub(crate) fn screen(&self) -> String {
        let seen = self
            .tmux(&["capture-pane", "-p", "-J", "-S", "-100"])
            .output()
            .unwrap();
        String::from_utf8_lossy(&seen.stdout).trim_end().to_owned()
    }

    /// The visible lines, each at most as wide as the terminal.
    pub(crate) fn lines(&self) -> Vec<String> {
        let seen = self
            .tmux(&["capture-pane", "-p", "-S", "-100"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&seen.stdout).trim_end().to_owned();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until `text` is visible. Returns the screen.
    #[track_caller]
    pub(crate) fn shows(&self, text: &str) -> String {
        until(&format!("`{text}` on the screen"), || {
            Some(self.screen()).filter(|screen| screen.contains(text))
        })
    }

    /// Types a line.
    pub(crate) fn types(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]).status().unwrap();
        self.tmux(&["send-keys", "Enter"]).status().unwrap();
    }

    /// Presses a key, by tmux's name for it.
    pub(crate) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]).status().unwrap();
    }

    /// The id of the process of this name in the terminal.
    #[track_caller]
    pub(crate) fn process(&self, program: &str) -> String {
        let tty = self
            .tmux(&["display-message", "-p", "#{pane_tty}"])
            .output();
        let tty = String::from_utf8(tty.unwrap().stdout).unwrap();
        let listed = Command::new("ps")
            .args(["-t", tty.trim(), "-o", "pid=,comm="])
            .output();
        let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
        let process = listed.lines().find_map(|line| {
            let (process, command) = line.trim().split_once(' ')?;
            command.ends_with(program).then(|| process.to_owned())
        });
        process.unwrap_or_else(|| panic!("no {program} in:\n{listed}"))
    }

    /// Sends a signal to the program of this name in the terminal.
    #[track_caller]
    pub(crate) fn signals(&self, program: &str, signal: &str) {
        let process = self.process(program);
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &process])
            .status();
        assert!(sent.unwrap().success(), "{signal} to {process}");
    }

    /// Whether the cursor is shown.
    #[track_caller]
    pub(crate) fn has_cursor(&self) -> bool {
        let mut shown = self.tmux(&["display-message", "-p", "#{cursor_flag}"]);
        shown.output().unwrap().stdout.starts_with(b"1")
    }

    fn tmux(&self, arguments: &[&str]) -> Command {
        let socket: PathBuf = self.directory.path().join("socket");
        let mut command = Command::new("tmux");
        command
            .arg("-u")
            .arg("-S")
            .arg(socket)
            .args(arguments)
            .env_remove("TMUX")
            .env("LANG", "C.UTF-8");
        command
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The server may have ended.
        let _ = self.tmux(&["kill-server"]).stderr(Stdio::null()).status();
    }
}
