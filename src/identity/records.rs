//! Tokens, and the people and clients of the authorization server, as records of the store: one for each, so that a change writes little.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::tokens::{Grant, Known, People, Stored};
use crate::store::{Change, Table};

const TOKEN: &str = "token/";
const INVITATION: &str = "invitation/";
const BROWSER: &str = "browser/";
const GRANT: &str = "grant/";
const REVOKED: &str = "revoked/";

/// The tokens and people of all records.
///
/// # Errors
/// When a record cannot be read.
pub(super) fn read(table: &Table) -> io::Result<(Vec<Stored>, People)> {
    let mut tokens: Vec<Stored> = Vec::new();
    let mut people = People::default();
    for (key, body) in table {
        if key.starts_with(TOKEN) {
            tokens.push(parsed(key, body)?);
        } else if key.starts_with(INVITATION) {
            people.invitations.push(parsed(key, body)?);
        } else if key.starts_with(BROWSER) {
            people.browsers.push(parsed(key, body)?);
        } else if key.starts_with(GRANT) {
            people.grants.push(parsed(key, body)?);
        } else if let Some(name) = key.strip_prefix(REVOKED) {
            people.revoked.insert(name.to_owned(), parsed(key, body)?);
        } else {
            return Err(io::Error::other(format!("`{key}` is not known here")));
        }
    }
    // Keys are random, and lists have the oldest first.
    tokens.sort_by_key(|one| one.created);
    people.invitations.sort_by_key(|one: &Known| one.created);
    people.browsers.sort_by_key(|one: &Known| one.created);
    people.grants.sort_by_key(|one: &Grant| one.created);
    Ok((tokens, people))
}

fn parsed<T: DeserializeOwned>(key: &str, body: &[u8]) -> io::Result<T> {
    // The text of an error could have a part of the record.
    serde_json::from_slice(body).map_err(|_| io::Error::other(format!("`{key}` cannot be read")))
}

/// The differences between the records and these tokens and people.
pub(super) fn changes(before: &Table, tokens: &[Stored], people: &People) -> Vec<Change> {
    let mut after: Vec<(String, Vec<u8>)> = Vec::new();
    let mut add =
        |prefix: &str, id: &str, body: Vec<u8>| after.push((format!("{prefix}{id}"), body));
    for one in tokens {
        add(TOKEN, &one.id, json(one));
    }
    for one in &people.invitations {
        add(INVITATION, &one.id, json(one));
    }
    for one in &people.browsers {
        add(BROWSER, &one.id, json(one));
    }
    for one in &people.grants {
        add(GRANT, &one.id, json(one));
    }
    for (name, at) in &people.revoked {
        add(REVOKED, name, json(at));
    }
    let mut gone: Table = before.clone();
    let mut changes = Vec::new();
    for (key, body) in after {
        if gone.remove(&key).is_none_or(|known| *known != body[..]) {
            changes.push((key, Some(body)));
        }
    }
    changes.extend(gone.into_keys().map(|key| (key, None)));
    changes
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("texts and numbers are JSON")
}
