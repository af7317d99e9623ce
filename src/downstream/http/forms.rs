//! The content types that the `Accept` header of a request permits.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// The content types that a client accepts for a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Forms {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Forms {
    /// Parses `Accept`; without the header, everything is accepted. `None` if it permits no type that we send.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut forms = Self {
            json: false,
            events: false,
        };
        let mut is_there = false;
        for value in headers.get_all(ACCEPT) {
            is_there = true;
            for part in value.to_str().unwrap_or_default().split(',') {
                let kind = part
                    .split(';')
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_ascii_lowercase();
                forms.json |= matches!(
                    kind.as_str(),
                    "application/json" | "application/*" | "*/*" | "*"
                );
                forms.events |=
                    matches!(kind.as_str(), "text/event-stream" | "text/*" | "*/*" | "*");
            }
        }
        if !is_there {
            return Some(Self {
                json: true,
                events: true,
            });
        }
        (forms.json || forms.events).then_some(forms)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn what_a_client_accepts_is_read_leniently() {
        #[track_caller]
        fn check(accept: &str, expected: Option<(bool, bool)>) {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_str(accept).unwrap())]);
            assert_eq!(
                Forms::of(&headers).map(|forms| (forms.json, forms.events)),
                expected,
                "{accept}"
            );
        }
        check("application/json, text/event-stream", Some((true, true)));
        check(
            "TEXT/EVENT-STREAM;q=0.9,application/json; charset=utf-8",
            Some((true, true)),
        );
        check("application/json", Some((true, false)));
        check("text/event-stream", Some((false, true)));
        check("*/*", Some((true, true)));
        check("text/html", None);
        assert!(Forms::of(&HeaderMap::new()).is_some());
    }
}
