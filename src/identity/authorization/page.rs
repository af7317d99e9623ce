//! The pages of the authorization server.

use std::fmt::Write as _;

use crate::identity::html::{Page, escaped};

/// The style of all pages.
const STYLE: &str = "body{font:1.05em/1.5 system-ui,sans-serif;max-width:34em;margin:4em auto;padding:0 1em;color-scheme:light dark}\
h1{font-size:1.3em}dt{opacity:.7}dd{margin:0 0 .6em;overflow-wrap:anywhere}button{font:inherit;padding:.4em 1.2em;margin-right:.8em}";

/// The page with a sentence.
pub(super) fn message(status: u16, title: &str, sentence: &str) -> Page {
    page(status, title, &format!("<p>{}</p>", escaped(sentence)))
}

/// The page that asks whether a client may act for a person.
pub(super) fn consent(
    client: &str,
    person: &str,
    facts: &[(&str, String)],
    (flow, proof): (&str, &str),
) -> Page {
    let mut body = format!(
        "<p><strong>{}</strong> asks to use the tools of this server as <strong>{}</strong>. Allow it only if you have just started it yourself: \
         the name is the client's own, and anyone can choose it.</p><dl>",
        escaped(client),
        escaped(person)
    );
    for (name, value) in facts {
        // Writing to a text cannot fail.
        let _ = write!(
            body,
            "<dt>{}</dt><dd>{}</dd>",
            escaped(name),
            escaped(value)
        );
    }
    let _ = write!(
        body,
        "</dl><form method=\"post\" action=\"/oauth/consent\"><input type=\"hidden\" name=\"flow\" value=\"{}\">\
         <input type=\"hidden\" name=\"proof\" value=\"{}\"><button name=\"decision\" value=\"allow\">Allow</button>\
         <button name=\"decision\" value=\"deny\">Deny</button></form>",
        escaped(flow),
        escaped(proof)
    );
    page(200, "Allow this client?", &body)
}

/// The page of an invitation.
pub(super) fn invitation(person: &str, path: &str, proof: &str) -> Page {
    let body = format!(
        "<p>This link makes you <strong>{}</strong> in this browser. It works once.</p><form method=\"post\" action=\"{}\">\
         <input type=\"hidden\" name=\"proof\" value=\"{}\"><button>I am {}</button></form>",
        escaped(person),
        escaped(path),
        escaped(proof),
        escaped(person)
    );
    page(200, "Invitation", &body)
}

fn page(status: u16, title: &str, body: &str) -> Page {
    Page::new(status, title, STYLE, body)
}
