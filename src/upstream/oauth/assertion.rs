//! A signed assertion of the client's identity, in place of a secret (RFC 7523, section 3).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::now;
use crate::config::PrivateKey;
use crate::secret::random_token;

/// The value of `client_assertion_type`.
pub(super) const TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The grant by which an authorization server takes an assertion about a person (RFC 7523, section 2.1).
pub(super) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// The lifetime, in seconds.
const LIFE: u64 = 300;

/// Signs the assertion that we are `client_id`, for `issuer`. It is valid once, and for a few minutes.
pub(super) fn signed(client_id: &str, issuer: &str, key: &PrivateKey) -> String {
    let now = now();
    let head = json!({ "alg": key.algorithm().as_str(), "typ": "JWT" });
    let claims = json!({
        "iss": client_id, "sub": client_id, "aud": issuer, "iat": now, "exp": now + LIFE, "jti": random_token(),
    });
    let encoded = |part: &[u8]| URL_SAFE_NO_PAD.encode(part);
    let message = format!(
        "{}.{}",
        encoded(head.to_string().as_bytes()),
        encoded(claims.to_string().as_bytes())
    );
    let signature = encoded(&key.sign(message.as_bytes()));
    format!("{message}.{signature}")
}
