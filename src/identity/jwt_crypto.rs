//! The signatures of JWTs, checked and made by `ring`, which the program already uses for TLS. `jsonwebtoken` leaves
//! the choice of a library to its user. HMAC is not among the algorithms, so that a public key cannot be used as a secret.

use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtSigner, JwtVerifier};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{Error as SignatureError, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, RsaPublicKeyComponents, UnparsedPublicKey};

/// The algorithms that are accepted.
pub(super) const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// The choice of `ring`.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    jwk_utils: JwkUtils::new_unimplemented(),
};

/// A key and the algorithm that checks a signature with it.
struct ByRing {
    algorithm: Algorithm,
    key: DecodingKey,
}

/// Chooses `ring` for the process. Another choice, made before, stays and is as good.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

/// A key pair that signs with ES256.
struct Signing(EcdsaKeyPair);

/// Only the authorization server of mcpzip signs, and with ES256.
fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    let refused = || Error::from(ErrorKind::InvalidAlgorithm);
    if *algorithm != Algorithm::ES256 || key.family() != AlgorithmFamily::Ec {
        return Err(refused());
    }
    let random = SystemRandom::new();
    let pair = EcdsaKeyPair::from_pkcs8(
        &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
        key.inner(),
        &random,
    );
    Ok(Box::new(Signing(pair.map_err(|_| refused())?)))
}

impl Signer<Vec<u8>> for Signing {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, SignatureError> {
        let signed = self.0.sign(&SystemRandom::new(), message);
        let signed = signed.map_err(|_| SignatureError::new())?;
        Ok(signed.as_ref().to_vec())
    }
}

impl JwtSigner for Signing {
    fn algorithm(&self) -> Algorithm {
        Algorithm::ES256
    }
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    match family(*algorithm) {
        Some(family) if family == key.family() => Ok(Box::new(ByRing {
            algorithm: *algorithm,
            key: key.clone(),
        })),
        _ => Err(Error::from(ErrorKind::InvalidAlgorithm)),
    }
}

/// The kind of key of an accepted algorithm.
pub(super) fn family(algorithm: Algorithm) -> Option<AlgorithmFamily> {
    Some(match algorithm {
        Algorithm::ES256 | Algorithm::ES384 => AlgorithmFamily::Ec,
        Algorithm::EdDSA => AlgorithmFamily::Ed,
        Algorithm::RS256
        | Algorithm::RS384
        | Algorithm::RS512
        | Algorithm::PS256
        | Algorithm::PS384
        | Algorithm::PS512 => AlgorithmFamily::Rsa,
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => return None,
    })
}

impl Verifier<Vec<u8>> for ByRing {
    fn verify(&self, message: &[u8], signed: &Vec<u8>) -> Result<(), SignatureError> {
        let unequal = |_| SignatureError::new();
        let rsa = match self.algorithm {
            Algorithm::RS256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Algorithm::RS384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            Algorithm::RS512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            Algorithm::PS256 => &signature::RSA_PSS_2048_8192_SHA256,
            Algorithm::PS384 => &signature::RSA_PSS_2048_8192_SHA384,
            Algorithm::PS512 => &signature::RSA_PSS_2048_8192_SHA512,
            Algorithm::ES256 => {
                return self.by(&signature::ECDSA_P256_SHA256_FIXED, message, signed);
            }
            Algorithm::ES384 => {
                return self.by(&signature::ECDSA_P384_SHA384_FIXED, message, signed);
            }
            Algorithm::EdDSA => return self.by(&signature::ED25519, message, signed),
            Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => {
                return Err(SignatureError::new());
            }
        };
        match self.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => RsaPublicKeyComponents { n, e }
                .verify(rsa, message, signed)
                .map_err(unequal),
            DecodingKeyKind::SecretOrDer(_) => Err(SignatureError::new()),
        }
    }
}

impl ByRing {
    fn by(
        &self,
        algorithm: &'static dyn signature::VerificationAlgorithm,
        message: &[u8],
        signed: &[u8],
    ) -> Result<(), SignatureError> {
        match self.key.kind() {
            DecodingKeyKind::SecretOrDer(key) => UnparsedPublicKey::new(algorithm, key)
                .verify(message, signed)
                .map_err(|_| SignatureError::new()),
            DecodingKeyKind::RsaModulusExponent { .. } => Err(SignatureError::new()),
        }
    }
}

impl JwtVerifier for ByRing {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
