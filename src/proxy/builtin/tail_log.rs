use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::mcp::Object;
use crate::proxy::{Proxy, Reply};

/// Lines that are shown when nothing else is said, and at most.
const LINES: usize = 50;
const MOST_LINES: usize = 500;

/// What of a file is looked at, from its end, in bytes.
const LOOKED_AT: u64 = 512 * 1024;

/// A longer line is cut there, in characters.
const LONGEST_LINE: usize = 400;

impl Proxy {
    /// The last lines of a server's log: `{server, lines?}`.
    pub(super) async fn tail_log(&self, arguments: &Object<'_>) -> Reply {
        let Some(name) = arguments.text("server") else {
            return Reply::tool_error("tail_log needs the name of a `server`");
        };
        let server = match self.configured(&name) {
            Ok(server) => server,
            Err(refusal) => return refusal,
        };
        let wanted = arguments.get("lines").and_then(|raw| raw.get().parse().ok()).unwrap_or(LINES);
        let Some(logs) = self.logs.clone() else { return Reply::tool_error("no logs are kept in this run") };
        let path = logs.join(format!("{server}.log"));
        let tail = self.tasks.spawn_blocking(move || {
            let (mut text, is_whole) = end_of(&path)?;
            if is_whole && text.lines().count() < wanted {
                // It may have just begun anew.
                text = format!("{}{text}", end_of(&path.with_extension("log.1"))?.0);
            }
            Ok::<_, io::Error>(text)
        });
        let text = match tail.await {
            Ok(Ok(text)) => text,
            Ok(Err(error)) => {
                tracing::warn!(%server, %error, "the log cannot be read");
                return Reply::tool_error(&format!("the log of server `{server}` cannot be read"));
            }
            Err(_) => return Reply::tool_error(&format!("the log of server `{server}` cannot be read")),
        };
        // Before it is cut: a part of a secret would not be known.
        let text = self.masked(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(wanted.clamp(1, MOST_LINES))..];
        if last.is_empty() {
            return Reply::text(&format!("server `{server}` has written nothing to stderr"));
        }
        Reply::text(&last.iter().map(|line| shortened(line)).collect::<Vec<_>>().join("\n"))
    }
}

/// The end of the file, from the start of a line on, and whether that is all of it; nothing of a file that is not there.
fn end_of(path: &Path) -> io::Result<(String, bool)> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((String::new(), true)),
        Err(error) => return Err(error),
    };
    let start = file.metadata()?.len().saturating_sub(LOOKED_AT);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(LOOKED_AT).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole_lines = if start == 0 { &text } else { text.split_once('\n').map_or("", |(_, rest)| rest) };
    Ok((whole_lines.to_owned(), start == 0))
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
