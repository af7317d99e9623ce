//! The scripted server: it answers a handshake, lists a given number of tools, and returns results of a given size.
//!
//! It is part of every figure, so it is as fast as a plain program can be: it searches lines instead of parsing them,
//! and answers all requests of one read in one write.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use memchr::{memchr, memmem};

use crate::tools;

/// The tool that returns `bytes` bytes of text after `delay` milliseconds.
pub(crate) const PAYLOAD: &str = "payload";

const PAYLOAD_DEFINITION: &str = r#"{"name":"payload","description":"Gives a text of so many bytes.","inputSchema":{"type":"object","properties":{"bytes":{"type":"integer"},"delay":{"type":"integer"}},"required":["bytes"]},"annotations":{"readOnlyHint":true}}"#;

/// A line of the returned text with an escaped line break, as in real texts.
const LINE: &str =
    r"The quick brown fox jumps over the lazy dog while nobody looks at the clock.\n";

struct Server {
    number: usize,
    tools: usize,
    /// The texts by size.
    texts: HashMap<usize, String>,
    output: Arc<Mutex<File>>,
}

/// Serves stdin until it ends.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (mut tools, mut number) = (0, 0);
    for pair in arguments.chunks(2) {
        match pair {
            [name, value] if name == "--tools" => tools = value.parse()?,
            [name, value] if name == "--server" => number = value.parse()?,
            _ => bail!("usage: mcpzip-bench upstream [--tools N] [--server N]"),
        }
    }
    let output = Arc::new(Mutex::new(standard_output()?));
    let mut server = Server {
        number,
        tools,
        texts: HashMap::new(),
        output,
    };
    let mut input = std::io::stdin().lock();
    let (mut buffer, mut filled) = (vec![0; 64 * 1024], 0);
    let mut answers = Vec::new();
    loop {
        if filled == buffer.len() {
            buffer.resize(2 * filled, 0);
        }
        let length = input.read(&mut buffer[filled..])?;
        if length == 0 {
            return Ok(());
        }
        filled += length;
        let mut start = 0;
        while let Some(end) = memchr(b'\n', &buffer[start..filled]) {
            server.answer(&buffer[start..start + end], &mut answers)?;
            start += end + 1;
        }
        buffer.copy_within(start..filled, 0);
        filled -= start;
        if !answers.is_empty() {
            locked(&server.output).write_all(&answers)?;
            answers.clear();
            // A large buffer is not kept for ever.
            answers.shrink_to(1024 * 1024);
        }
    }
}

/// Stdout without buffering.
fn standard_output() -> Result<File> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd as _;
        Ok(std::io::stdout().as_fd().try_clone_to_owned()?.into())
    }
    #[cfg(windows)]
    {
        use std::os::windows::io::AsHandle as _;
        Ok(std::io::stdout().as_handle().try_clone_to_owned()?.into())
    }
}

fn locked(output: &Mutex<File>) -> std::sync::MutexGuard<'_, File> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    fn answer(&mut self, line: &[u8], answers: &mut Vec<u8>) -> Result<()> {
        let Some(id) = member(line, b"\"id\":") else {
            return Ok(());
        };
        let method = member(line, b"\"method\":").context("a request without a method")?;
        answers.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        answers.extend_from_slice(id);
        match method {
            br#""tools/call""# => {
                let bytes = number(line, b"\"bytes\":").unwrap_or(100);
                let text = self.texts.entry(bytes).or_insert_with(|| text_of(bytes));
                answers.extend_from_slice(br#","result":{"content":[{"type":"text","text":""#);
                answers.extend_from_slice(text.as_bytes());
                answers.extend_from_slice(b"\"}]}}\n");
                if let Some(delay) = number(line, b"\"delay\":") {
                    let (late, output) = (std::mem::take(answers), self.output.clone());
                    std::thread::spawn(move || {
                        std::thread::sleep(Duration::from_millis(delay as u64));
                        // The client may have left.
                        let _ = locked(&output).write_all(&late);
                    });
                }
            }
            br#""tools/list""# => {
                let own = (0..self.tools).map(|at| tools::definition(self.number, at));
                let all: Vec<String> = std::iter::once(PAYLOAD_DEFINITION.to_owned())
                    .chain(own)
                    .collect();
                write!(answers, r#","result":{{"tools":[{}]}}}}"#, all.join(","))?;
                answers.push(b'\n');
            }
            br#""initialize""# => answers.extend_from_slice(
                concat!(
                    r#","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"#,
                    r#""serverInfo":{"name":"scripted","version":"1"}}}"#,
                    "\n"
                )
                .as_bytes(),
            ),
            br#""ping""# => answers.extend_from_slice(b",\"result\":{}}\n"),
            _ => answers.extend_from_slice(
                b",\"error\":{\"code\":-32601,\"message\":\"unknown method\"}}\n",
            ),
        }
        Ok(())
    }
}

fn text_of(bytes: usize) -> String {
    let mut text = LINE.repeat(bytes / LINE.len());
    text.push_str(&"x".repeat(bytes - text.len()));
    text
}

/// The text of [`text_of`], before it is written as JSON.
pub(crate) fn plain_text_of(bytes: usize) -> String {
    text_of(bytes).replace(r"\n", "\n")
}

/// The first value of a member as it is written: a number, or a string without a comma.
fn member<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value = line[memmem::find(line, name)? + name.len()..].trim_ascii_start();
    let end = value
        .iter()
        .position(|byte| matches!(byte, b',' | b'}' | b' '))?;
    Some(&value[..end])
}

fn number(line: &[u8], name: &[u8]) -> Option<usize> {
    std::str::from_utf8(member(line, name)?).ok()?.parse().ok()
}
