//! Reads secrets: from a terminal without echo, or from stdin.

use std::io::{self, IsTerminal as _, Read as _};

use console::Term;

use super::super::diagnostics::Exit;
use super::super::output::Output;
use crate::keyring::LARGEST_SECRET;
use crate::secret::Secret;

/// The least length of a passphrase, in characters.
const SHORTEST_PASSPHRASE: usize = 8;

/// A value. One line break at the end of stdin is left out, which `echo` adds.
pub(super) fn value(question: &str, output: &Output) -> Result<Secret<String>, Exit> {
    if io::stdin().is_terminal() {
        output.note(&format!("{question}:"));
        return checked(Term::stderr().read_secure_line()?);
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(LARGEST_SECRET).unwrap_or(u64::MAX);
    io::stdin().take(limit + 3).read_to_end(&mut bytes)?;
    let mut text = String::from_utf8(bytes).map_err(|_| Exit::failed("the value is not UTF-8"))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    checked(text)
}

fn checked(text: String) -> Result<Secret<String>, Exit> {
    let problem = if text.is_empty() {
        "no value was given"
    } else if text.contains('\0') {
        "the value has a NUL character, which neither variables nor headers can have"
    } else if text.len() > LARGEST_SECRET {
        "the value is larger than 64 kB"
    } else {
        return Ok(Secret::new(text));
    };
    Err(Exit::failed(problem))
}

/// Checks that there is a terminal to ask for a passphrase.
pub(super) fn check_passphrase() -> Result<(), Exit> {
    match Term::stderr().is_term() {
        true => Ok(()),
        false => Err(Exit::failed(
            "the file of secrets is locked, and there is no terminal to ask for its passphrase: run `mcpzip secret unlock` in a terminal, or set \
             MCPZIP_SECRET_KEY",
        )),
    }
}

/// Checks that there is a terminal to ask for a new passphrase.
pub(super) fn check_new_passphrase() -> Result<(), Exit> {
    match Term::stderr().is_term() {
        true => Ok(()),
        false => Err(Exit::failed(
            "the encrypted file has no key yet, and there is no terminal to ask for a passphrase: set a key first, which you need from then on, by \
             `export MCPZIP_SECRET_KEY=$(mcpzip secret key)`",
        )),
    }
}

/// A passphrase of the person at the terminal, also if stdin is a pipe.
pub(super) fn passphrase(question: &str) -> Result<Secret<String>, Exit> {
    check_passphrase()?;
    let terminal = Term::stderr();
    terminal.write_line(&format!("{question} (not shown):"))?;
    Ok(Secret::new(terminal.read_secure_line()?))
}

/// A new passphrase, asked for twice.
pub(super) fn new_passphrase(output: &Output) -> Result<Secret<String>, Exit> {
    check_new_passphrase()?;
    output.note("the secret goes to an encrypted file; choose its passphrase");
    let first = passphrase(&format!(
        "new passphrase of at least {SHORTEST_PASSPHRASE} characters"
    ))?;
    if first.expose().chars().count() < SHORTEST_PASSPHRASE {
        return Err(Exit::failed(format!(
            "a passphrase needs at least {SHORTEST_PASSPHRASE} characters"
        )));
    }
    match passphrase("the same again")? == first {
        true => Ok(first),
        false => Err(Exit::failed(
            "the two passphrases differ; nothing was stored",
        )),
    }
}
