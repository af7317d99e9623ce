//! An agent of launchd, which serves HTTP clients from the login on. Sessions over stdio run their own servers on macOS.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::super::diagnostics::Exit;
use super::service::{
    Encoding, Installed, MARK, Program, Service, ServiceFile, directory_of, homeless, xml,
};
use crate::app::LOGS;
use crate::config::Environment;
use crate::daemon;

const LABEL: &str = "mcpzip.daemon";

/// # Errors
/// When there is no home directory.
pub(super) fn service(program: &Program<'_>, environment: &Environment) -> Result<Service, Exit> {
    let path = path(environment)?;
    let arguments =
        program
            .words(&["serve", "--http"])
            .into_iter()
            .fold(String::new(), |mut all, word| {
                // Writing to memory cannot fail.
                let _ = writeln!(all, "    <string>{}</string>", xml(word));
                all
            });
    // launchd starts agents with a `PATH` in which neither npx nor uvx is.
    let variables = environment.get("PATH").map_or_else(String::new, |path| {
        format!(
            "  <key>EnvironmentVariables</key>\n  <dict>\n    <key>PATH</key>\n    <string>{}</string>\n  </dict>\n",
            xml(path)
        )
    });
    let log_directory = format!("{}/{LOGS}", program.state_dir);
    let log = format!("{log_directory}/{}", daemon::STDERR);
    let text = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!-- {MARK} -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array>
{arguments}  </array>
{variables}  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>30</integer>
  <key>StandardErrorPath</key>
  <string>{}</string>
</dict>
</plist>
"#,
        xml(&log)
    );
    let start = format!(
        "`launchctl bootstrap gui/$(id -u) '{}'` starts it, and so does the next login; it serves HTTP clients, and sessions over stdio run their own servers",
        path.display()
    );
    Ok(Service {
        files: vec![ServiceFile {
            path,
            text,
            encoding: Encoding::Utf8,
        }],
        socket: None,
        log_directory: Some(log_directory.into()),
        start,
    })
}

/// # Errors
/// When there is no home directory.
pub(super) fn installed(environment: &Environment) -> Result<Installed, Exit> {
    Ok(Installed {
        files: vec![path(environment)?],
        end: format!("`launchctl bootout gui/$(id -u)/{LABEL}` ends what runs"),
    })
}

fn path(environment: &Environment) -> Result<PathBuf, Exit> {
    let home = directory_of(environment, "HOME").ok_or_else(homeless)?;
    let directory = home.join("Library/LaunchAgents");
    Ok(directory.join(format!("{LABEL}.plist")))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn an_agent_names_the_program_with_all_that_its_paths_have() {
        let environment =
            Environment::from_iter([("HOME", "/Users/a"), ("PATH", "/usr/bin:/b & c")]);
        let program = Program {
            path: "/Applications/A <b>/mcpzip".to_owned(),
            config_file: "/Users/a/Library/Application Support/mcpzip/config.json",
            cache_dir: "/c\"d",
            state_dir: "/s",
        };
        let service = service(&program, &environment).unwrap();
        let file = &service.files[0];
        assert_eq!(
            file.path,
            PathBuf::from("/Users/a/Library/LaunchAgents/mcpzip.daemon.plist")
        );
        assert_eq!(
            file.text,
            include_str!("expected.plist").replace("\r\n", "\n")
        );
        let options = roxmltree::ParsingOptions {
            allow_dtd: true,
            ..roxmltree::ParsingOptions::default()
        };
        let document = roxmltree::Document::parse_with_options(&file.text, options).unwrap();
        let texts = |tag: &str| -> Vec<String> {
            let elements = document.descendants().filter(|node| node.has_tag_name(tag));
            elements
                .map(|node| node.text().unwrap_or_default().to_owned())
                .collect()
        };
        let strings = texts("string");
        assert_eq!(
            strings[1..10],
            [
                "/Applications/A <b>/mcpzip",
                "serve",
                "--http",
                "--config",
                "/Users/a/Library/Application Support/mcpzip/config.json",
                "--cache-dir",
                "/c\"d",
                "--state-dir",
                "/s",
            ]
        );
        assert_eq!(strings[10], "/usr/bin:/b & c");
        // Each key of a dictionary has one value after it.
        for dictionary in document
            .descendants()
            .filter(|node| node.has_tag_name("dict"))
        {
            let members: Vec<_> = dictionary
                .children()
                .filter(|node| node.is_element())
                .collect();
            assert!(members.chunks(2).all(|pair| pair.len() == 2
                && pair[0].has_tag_name("key")
                && !pair[1].has_tag_name("key")));
        }
    }
}
