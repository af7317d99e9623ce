//! Encryption with a key of 256 bits: ChaCha20-Poly1305 with a random nonce, and a context as authenticated data.
//!
//! Decryption fails for data that was changed or moved to another context.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::HEXLOWER;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::secret::{Secret, random_bytes};

/// The key.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    bytes: Secret<[u8; 32]>,
    /// The id that distinguishes it from other keys.
    id: String,
}

/// Encrypted data.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sealed {
    key: String,
    nonce: String,
    text: String,
}

impl Sealed {
    /// All of it in one word, which may stand in a URL.
    pub(crate) fn to_text(&self) -> String {
        format!("{}.{}.{}", self.key, self.nonce, self.text)
    }

    /// Reads the form of [`Sealed::to_text`]. `None` if it is another.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (key, rest) = text.split_once('.')?;
        let (nonce, text) = rest.split_once('.')?;
        Some(Self {
            key: key.to_owned(),
            nonce: nonce.to_owned(),
            text: text.to_owned(),
        })
    }
}

impl Key {
    /// Creates a random key.
    ///
    /// # Panics
    /// When the system has no randomness.
    pub(crate) fn random() -> Self {
        Self::of(random_bytes())
    }

    /// Reads the form of [`Key::to_text`]. `None` if it is another.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        Some(Self::of(
            URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?,
        ))
    }

    /// The key of these bytes, which are random or were made of a passphrase.
    pub(crate) fn of(bytes: [u8; 32]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"mcpzip key id");
        hash.update(bytes);
        let id = HEXLOWER.encode(&hash.finalize()[..6]);
        Self {
            bytes: Secret::new(bytes),
            id,
        }
    }

    /// The key in base64url.
    pub(crate) fn to_text(&self) -> Secret<String> {
        Secret::new(URL_SAFE_NO_PAD.encode(self.bytes.expose()))
    }

    /// The key itself.
    pub(crate) fn bytes(&self) -> &[u8; 32] {
        self.bytes.expose()
    }

    /// The id that distinguishes the key from others.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Whether data was encrypted with this key.
    pub(crate) fn has_sealed(&self, sealed: &Sealed) -> bool {
        self.id == sealed.key
    }

    fn cipher(&self) -> LessSafeKey {
        LessSafeKey::new(
            UnboundKey::new(&CHACHA20_POLY1305, self.bytes.expose()).expect("the key has 32 bytes"),
        )
    }

    /// Encrypts `plain` for `context` only.
    ///
    /// # Panics
    /// When the system has no randomness.
    pub(crate) fn seal(&self, context: &str, plain: &[u8]) -> Sealed {
        let nonce = random_bytes::<NONCE_LEN>();
        let mut text = plain.to_vec();
        self.cipher()
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(context),
                &mut text,
            )
            .expect("what is kept is far smaller than the cipher can take");
        Sealed {
            key: self.id.clone(),
            nonce: URL_SAFE_NO_PAD.encode(nonce),
            text: URL_SAFE_NO_PAD.encode(text),
        }
    }

    /// Decrypts data that was encrypted for `context`. `None` if it was changed, or is for another context or key.
    pub(crate) fn open(&self, context: &str, sealed: &Sealed) -> Option<Vec<u8>> {
        let nonce: [u8; NONCE_LEN] = URL_SAFE_NO_PAD
            .decode(&sealed.nonce)
            .ok()?
            .try_into()
            .ok()?;
        let mut text = URL_SAFE_NO_PAD.decode(&sealed.text).ok()?;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let plain = self
            .cipher()
            .open_in_place(nonce, Aad::from(context), &mut text)
            .ok()?;
        Some(plain.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> Key {
        Key::parse(URL_SAFE_NO_PAD.encode([byte; 32]).as_bytes()).unwrap()
    }

    #[test]
    fn what_is_sealed_opens_with_its_key_for_its_context_only() {
        let sealed = key(1).seal("a", b"the-access-token");
        assert_eq!(key(1).open("a", &sealed).unwrap(), b"the-access-token");
        assert!(key(1).open("b", &sealed).is_none() && key(2).open("a", &sealed).is_none());
        let text = sealed.to_text();
        let opened = |text: &str| key(1).open("a", &Sealed::parse(text)?);
        assert_eq!(opened(&text).unwrap(), b"the-access-token");
        for text in [
            format!("{text}A"),
            format!("{text}.A"),
            "AAAA".into(),
            "!.!.!".into(),
        ] {
            assert!(opened(&text).is_none(), "{text}");
        }
        assert_ne!(key(1).id, key(2).id);
        assert_ne!(key(1).seal("a", b"x").text, key(1).seal("a", b"x").text);
        for text in [&b""[..], b"AAAA", b"\xff"] {
            assert!(Key::parse(text).is_none(), "{text:?}");
        }
        let shown = format!("{:?}", key(7));
        assert!(!shown.contains('7') || !shown.contains("[7"), "{shown}");
    }
}
