//! The OAuth settings of a server. All are optional, because most servers announce what they need.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RsaKeyPair};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;

use super::error::PemError;
use super::identity_provider::IdentityProvider;
use crate::secret::Secret;

/// The `oauth` of a server's entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OAuth {
    /// The party that logs in: a person, or this program.
    pub grant: Grant,
    /// The only authorization server at which a login is made.
    pub issuer: Option<String>,
    /// The id of a client that was registered by hand.
    pub client_id: Option<String>,
    /// The client's secret.
    pub client_secret: Option<Secret<String>>,
    /// The URL of a document that describes this client and is its identity (2025-11-25, basic/authorization).
    pub client_metadata_url: Option<String>,
    /// The key that signs in place of a secret (RFC 7523).
    pub private_key: Option<PrivateKey>,
    /// Scopes to request in addition to those that the server names.
    pub scopes: Vec<String>,
    /// The identity provider, with [`Grant::IdJag`] alone.
    pub idp: Option<Box<IdentityProvider>>,
    /// The port of the redirect URL, for an authorization server that accepts one port only.
    pub redirect_port: Option<u16>,
}

/// A user's command that prints headers, for example `Authorization`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct HeadersCommand {
    /// The program: an absolute path, or a bare name to look for in `PATH`.
    pub program: String,
    /// The arguments of the program.
    pub args: Vec<String>,
}

impl HeadersCommand {
    /// A command line for the system's shell, as other clients run it.
    pub(super) fn shell(line: String) -> Self {
        let (program, options): (&str, &[&str]) = if cfg!(windows) {
            ("cmd", &["/d", "/s", "/c"])
        } else {
            ("/bin/sh", &["-c"])
        };
        let args = options
            .iter()
            .map(|option| (*option).to_owned())
            .chain([line])
            .collect();
        Self {
            program: program.to_owned(),
            args,
        }
    }
}

/// The party that logs in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Grant {
    /// A person, in a browser.
    #[default]
    AuthorizationCode,
    /// The client itself, with its own credentials.
    ClientCredentials,
    /// A person, at the identity provider of an enterprise, whose assertions the authorization server takes (ID-JAG).
    IdJag,
}

/// A key that signs client assertions: PKCS #8, P-256 or RSA.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PrivateKey {
    der: Secret<Arc<[u8]>>,
    algorithm: SigningAlgorithm,
}

/// The algorithm of a [`PrivateKey`] (RFC 7518, section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SigningAlgorithm {
    /// ECDSA over P-256 with SHA-256.
    Es256,
    /// RSA (PKCS #1) with SHA-256.
    Rs256,
}

impl PrivateKey {
    /// Reads the key of a PEM file.
    ///
    /// # Errors
    /// When the file cannot be read, or has no usable key.
    pub(super) fn read(path: &Path) -> Result<Self, PemError> {
        let der =
            PrivateKeyDer::from_pem_slice(&PemError::read(path)?).map_err(|_| PemError::NoKey)?;
        let PrivateKeyDer::Pkcs8(key) = &der else {
            return Err(PemError::Form);
        };
        let key = key.secret_pkcs8_der();
        let random = SystemRandom::new();
        let algorithm =
            if EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key, &random).is_ok() {
                SigningAlgorithm::Es256
            } else if RsaKeyPair::from_pkcs8(key).is_ok() {
                SigningAlgorithm::Rs256
            } else {
                return Err(PemError::Algorithm);
            };
        Ok(Self {
            der: Secret::new(key.into()),
            algorithm,
        })
    }

    /// The algorithm of this key.
    #[must_use]
    pub(crate) fn algorithm(&self) -> SigningAlgorithm {
        self.algorithm
    }

    /// The signature of `message`.
    ///
    /// # Panics
    /// When the system has no randomness.
    #[must_use]
    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        const READ: &str = "the key was read before";
        const SIGNED: &str = "a good key signs any bytes";
        let (key, random) = (self.der.expose(), SystemRandom::new());
        match self.algorithm {
            SigningAlgorithm::Es256 => {
                let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key, &random)
                    .expect(READ);
                pair.sign(&random, message).expect(SIGNED).as_ref().to_vec()
            }
            SigningAlgorithm::Rs256 => {
                let pair = RsaKeyPair::from_pkcs8(key).expect(READ);
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(
                    &ring::signature::RSA_PKCS1_SHA256,
                    &random,
                    message,
                    &mut signature,
                )
                .expect(SIGNED);
                signature
            }
        }
    }
}

impl SigningAlgorithm {
    /// The name in a token's header.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
        }
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({})", self.algorithm.as_str())
    }
}
