//! Refusals of an authorization server, as errors without secrets.

use serde::Deserialize;

use super::error::LoginError;
use super::fetcher::FetchedResponse;
use crate::secret::{Masker, Secret};

/// The longest quotation of a description, in characters.
const QUOTED: usize = 200;

/// RFC 6749, section 5.2.
#[derive(Deserialize)]
struct Problem {
    error: String,
    error_description: Option<String>,
}

/// The error for an authorization server's answer `answer`, without the `secrets` that were sent.
pub(super) fn refusal(
    issuer: &str,
    answer: &FetchedResponse,
    secrets: &[Secret<String>],
) -> LoginError {
    let (code, words) = match serde_json::from_slice::<Problem>(&answer.body) {
        Ok(Problem {
            error,
            error_description,
        }) => (error, error_description.unwrap_or_default()),
        Err(_) if answer.status.is_success() => (String::new(), "it gave no token".to_owned()),
        Err(_) => (String::new(), format!("HTTP {}", answer.status.as_u16())),
    };
    refused(issuer, &code, &words, secrets)
}

/// Whether an authorization server refused a request because of the client id, which its form did not have.
pub(super) fn misses_client_id(answer: &FetchedResponse) -> bool {
    let Ok(problem) = serde_json::from_slice::<Problem>(&answer.body) else {
        return false;
    };
    let words = problem.error_description.unwrap_or_default().to_lowercase();
    let is_about_the_client = matches!(&*problem.error, "invalid_client" | "invalid_request");
    let is_named = words.contains("client_id") || words.contains("client id");
    !answer.status.is_success() && is_about_the_client && is_named
}

/// The error for a refusal with `code` and `words` in the redirect.
pub(super) fn refused(
    issuer: &str,
    code: &str,
    words: &str,
    secrets: &[Secret<String>],
) -> LoginError {
    let masker = Masker::new(secrets.iter().cloned());
    let words: Vec<&str> = words.split_whitespace().collect();
    let colon = if code.is_empty() || words.is_empty() {
        ""
    } else {
        ": "
    };
    let reason = format!("{code}{colon}{}", words.join(" "));
    let reason: String = masker
        .mask(&reason)
        .chars()
        .filter(|c| !c.is_control())
        .take(QUOTED)
        .collect();
    LoginError::Refused {
        issuer: issuer.to_owned(),
        code: code.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_tells_no_secret() {
        let error = refused(
            "https://a",
            "invalid_grant",
            "token  hunter2-and-more\nis bad",
            &["hunter2-and-more".to_owned().into()],
        );
        assert_eq!(
            error.to_string(),
            "`https://a` refused: invalid_grant: token *** is bad"
        );
    }
}
