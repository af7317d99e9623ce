//! The pages as HTML.

use axum::http::StatusCode;
use axum::response::Response;

use crate::config::without_commands;
use crate::downstream::http::page::shown;
use crate::identity::html::{Page, escaped};
use crate::upstream::oauth::LoginStatus;

const STYLE: &str = "body{font:1em/1.5 system-ui,sans-serif;max-width:44em;margin:3em auto;padding:0 1em;color-scheme:light dark}\
table{border-collapse:collapse;width:100%}td{padding:.5em .5em .5em 0;border-top:1px solid #8888;vertical-align:top}\
form{display:inline}.wanted{font-weight:bold}.problem{color:#c33}input[type=password]{width:100%;font:inherit}button{font:inherit}";

/// A server on the page, with the person's login there or the reason why it cannot be read.
pub(super) struct Row {
    pub(super) server: String,
    /// Whether the person was sent here for it.
    pub(super) is_wanted: bool,
    pub(super) state: Result<Option<LoginStatus>, String>,
}

/// The page with the servers of a person; `mark` is that of its forms.
pub(super) fn list(name: &str, is_in_session: bool, rows: &[Row], mark: &str) -> Response {
    let mut html = format!("<p>You are <b>{}</b> here.</p>", escaped(name));
    if is_in_session {
        html += &format!(
            "<form method=post action=\"logins/leave\"><input type=hidden name=mark value=\"{}\"><button>Leave this page</button></form>",
            escaped(mark)
        );
    }
    if rows.is_empty() {
        html += "<p>No server asks for a login of your own.</p>";
        return page(StatusCode::OK, &html);
    }
    html += "<p>These servers are used in your name. You log in there yourself; the gateway keeps each login encrypted, for you alone.</p><table>";
    for row in rows {
        let class = if row.is_wanted { " class=wanted" } else { "" };
        let (state, is_there) = state(row);
        html += &format!(
            "<tr><td{class}>{}</td><td>{state}</td><td>",
            escaped(&row.server)
        );
        let button = |action: &str, words: &str| {
            format!(
                "<form method=post action=\"logins/{action}\"><input type=hidden name=mark value=\"{}\"><input type=hidden name=server value=\"{}\"><button>{words}</button></form> ",
                escaped(mark),
                escaped(&row.server)
            )
        };
        html += &button("begin", if is_there { "Log in again" } else { "Log in" });
        if is_there {
            html += &button("end", "Log out");
        }
        html += "</td></tr>";
    }
    html += "</table>";
    page(StatusCode::OK, &html)
}

fn state(row: &Row) -> (String, bool) {
    match &row.state {
        Ok(None) => ("not logged in".to_owned(), false),
        Err(reason) => (format!("<span class=problem>{}</span>", told(reason)), true),
        Ok(Some(status)) => {
            let mut text = format!("logged in at {}", escaped(&status.issuer));
            if !status.scopes.is_empty() {
                text += &format!("<br>scopes: {}", escaped(&status.scopes.join(" ")));
            }
            if !status.missing_scopes.is_empty() {
                let missing = escaped(&status.missing_scopes.join(" "));
                text +=
                    &format!("<br><span class=problem>the server also asks for: {missing}</span>");
            }
            if status.expires_in == Some(0) && !status.refreshable {
                text += "<br><span class=problem>it has ended</span>";
            }
            (text, true)
        }
    }
}

/// The entrance of this page, with what is wrong with the last attempt. `has_login` says whether people log in at the gateway's own
/// authorization server.
pub(super) fn entrance(has_login: bool, server: Option<&str>, problem: &str) -> Response {
    // Relative: to the page itself, or to the answer of its form.
    let base = if problem.is_empty() { "logins/" } else { "" };
    let server = server.map_or(String::new(), |server| {
        format!(
            "<input type=hidden name=server value=\"{}\">",
            escaped(server)
        )
    });
    let html = ways_in(has_login, base, &server, problem);
    page(StatusCode::UNAUTHORIZED, &html)
}

/// The entrance of the window, with what is wrong with the last attempt.
pub(in crate::downstream::http) fn of_window(has_login: bool, problem: &str) -> Response {
    let html = ways_in(has_login, "", "", problem);
    let status = StatusCode::UNAUTHORIZED.as_u16();
    shown(&Page::new(
        status,
        "The window of this gateway",
        STYLE,
        &html,
    ))
}

/// A link to the login, if there is one, and the form for a token with these further fields.
fn ways_in(has_login: bool, base: &str, fields: &str, problem: &str) -> String {
    let problem = match problem {
        "" => String::new(),
        problem => format!("<p class=problem>{}</p>", escaped(problem)),
    };
    let ways = match has_login {
        true => format!("<a href=\"{base}login\">Log in</a>, or show a token:"),
        false => "Show who you are: the token by which your client uses this gateway.".to_owned(),
    };
    format!(
        "{problem}<p>{ways}</p><form method=post action=\"{base}enter\">{fields}<label>Token<br><input type=password name=token autocomplete=off required></label> <button>Go on</button></form>"
    )
}

/// The page from which a person goes to the login of a server.
pub(super) fn onward(server: &str, issuer: &str, url: &str) -> Response {
    let html = format!(
        "<p>You log in to <b>{}</b> at</p><p><b>{}</b></p><p>Go on only if you want this gateway to act there in your name.</p>\
         <p><a href=\"{}\" rel=noreferrer>Go on to the login</a> or <a href=\"../logins\">go back</a></p>",
        escaped(server),
        escaped(issuer),
        escaped(url)
    );
    page(StatusCode::OK, &html)
}

/// The page after a logout that left tokens valid; `left` says which, and why.
pub(super) fn logged_out(server: &str, left: &str) -> Response {
    let html = format!(
        "<p>You are logged out of <b>{}</b> here.</p><p class=problem>But {}.</p><p><a href=\"../logins\">Go back</a></p>",
        escaped(server),
        told(left)
    );
    page(StatusCode::OK, &html)
}

/// A page with one sentence.
pub(in crate::downstream::http) fn note(status: StatusCode, text: &str) -> Response {
    page(status, &format!("<p>{}</p>", told(text)))
}

/// A text as HTML, without the commands that it names: no one runs them in a browser.
fn told(text: &str) -> String {
    escaped(&without_commands(text, None))
}

fn page(status: StatusCode, body: &str) -> Response {
    shown(&Page::new(status.as_u16(), "Logins", STYLE, body))
}
