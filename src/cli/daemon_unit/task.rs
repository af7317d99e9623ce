//! A task of Windows' Task Scheduler, which serves HTTP clients from the login on. Sessions over stdio run their own servers
//! on Windows.

use std::path::PathBuf;

use super::super::diagnostics::Exit;
use super::service::{Encoding, Installed, MARK, Program, Service, ServiceFile, xml};
use crate::config::{Environment, Paths};

const NAME: &str = "mcpzip";

/// # Errors
/// When the variables do not name the user, without whom a task would be for all users.
pub(super) fn service(
    program: &Program<'_>,
    paths: &Paths,
    environment: &Environment,
) -> Result<Service, Exit> {
    let user = environment.get("USERNAME").filter(|name| !name.is_empty());
    let user = user.ok_or_else(|| {
        Exit::failed(
            "the task's user is not known: USERNAME and USERDOMAIN are variables of Windows",
        )
    })?;
    let user = match environment.get("USERDOMAIN") {
        Some(domain) if !domain.is_empty() => format!("{domain}\\{user}"),
        _ => user.to_owned(),
    };
    // conhost runs it without the console window that the Task Scheduler would open.
    let words = program.words(&["serve", "--http"]);
    let words: Vec<String> = words.into_iter().map(quoted).collect();
    let text = format!(
        r#"<?xml version="1.0" encoding="UTF-16"?>
<!-- {MARK} -->
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>mcpzip: one set of MCP servers for all HTTP clients</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <UserId>{user}</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>{user}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>3</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>conhost.exe</Command>
      <Arguments>--headless {}</Arguments>
    </Exec>
  </Actions>
</Task>
"#,
        xml(&words.join(" ")),
        user = xml(&user),
    );
    let path = path(paths);
    let start = format!(
        "`schtasks /Create /TN {NAME} /XML \"{}\"` registers it, and `schtasks /Run /TN {NAME}` starts it, as does the next login; it serves HTTP clients, and sessions over stdio run their own servers",
        path.display()
    );
    Ok(Service {
        files: vec![ServiceFile {
            path,
            text,
            encoding: Encoding::Utf16,
        }],
        socket: None,
        log_directory: None,
        start,
    })
}

pub(super) fn installed(paths: &Paths) -> Installed {
    Installed {
        files: vec![path(paths)],
        end: format!(
            "`schtasks /End /TN {NAME}` ends what runs, and `schtasks /Delete /TN {NAME} /F` removes the task"
        ),
    }
}

/// The file from which the task is registered.
fn path(paths: &Paths) -> PathBuf {
    paths.state_dir.join("mcpzip-task.xml")
}

/// A word of a command line; a plain one stays as it is. Paths of Windows have no quotes.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if word.bytes().all(is_plain) {
        return word.to_owned();
    }
    // A backslash before the closing quote would escape it.
    let slashes = word.len() - word.trim_end_matches('\\').len();
    format!("\"{word}{}\"", "\\".repeat(slashes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_that_of_its_user_and_has_the_whole_command_line() {
        let environment = Environment::from_iter([("USERNAME", "ann"), ("USERDOMAIN", "A&B")]);
        let program = Program {
            path: r"C:\Program Files\mcpzip\mcpzip.exe".to_owned(),
            config_file: r"C:\Users\ann\a & b\config.json",
            cache_dir: r"C:\cache\",
            state_dir: r"C:\state",
        };
        let paths = Paths {
            config_file: program.config_file.into(),
            cache_dir: program.cache_dir.into(),
            state_dir: program.state_dir.into(),
        };
        let service = service(&program, &paths, &environment).unwrap();
        let file = &service.files[0];
        assert_eq!(
            file.text,
            include_str!("expected-task.xml").replace("\r\n", "\n")
        );
        let document = roxmltree::Document::parse(&file.text).unwrap();
        let text = |tag: &str| -> String {
            let mut nodes = document.descendants();
            let node = nodes.find(|node| node.tag_name().name() == tag);
            node.and_then(|node| node.text())
                .unwrap_or_default()
                .to_owned()
        };
        assert_eq!(text("UserId"), r"A&B\ann");
        assert_eq!(
            text("Arguments"),
            r#"--headless "C:\Program Files\mcpzip\mcpzip.exe" serve --http --config "C:\Users\ann\a & b\config.json" --cache-dir "C:\cache\\" --state-dir "C:\state""#
        );
        let bytes = file.bytes();
        assert_eq!(bytes[..4], [0xFF, 0xFE, b'<', 0]);
        assert!(super::super::service::is_ours(&bytes));
        assert!(super::service(&program, &paths, &Environment::default()).is_err());
    }
}
