//! The key of a passphrase: Argon2id (RFC 9106).

use argon2::{Algorithm, Argon2, Block, Params, Version};
use serde::{Deserialize, Serialize};

use crate::sealing::Key;
use crate::secret::Secret;

/// The cost of a key, as it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cost {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

impl Cost {
    /// The second recommended option of RFC 9106, section 4: about 0.2 s.
    pub(super) const RECOMMENDED: Self = Self {
        memory_kib: 64 * 1024,
        passes: 3,
        lanes: 4,
    };

    /// Whether a file may ask for this cost. A higher one is damage, or a trap.
    pub(super) fn is_bearable(self) -> bool {
        (8 * 1024..=1024 * 1024).contains(&self.memory_kib)
            && (1..=16).contains(&self.passes)
            && (1..=16).contains(&self.lanes)
    }

    /// The key of `passphrase`. `None` if the cost is not valid.
    pub(super) fn derive(self, passphrase: &Secret<String>, salt: &[u8]) -> Option<Key> {
        let params = Params::new(self.memory_kib, self.passes, self.lanes, Some(32)).ok()?;
        let mut memory = vec![Block::new(); params.block_count()];
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let mut bytes = [0; 32];
        let passphrase = passphrase.expose().as_bytes();
        argon2
            .hash_password_into_with_memory(passphrase, salt, &mut bytes, &mut memory)
            .ok()?;
        Some(Key::of(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key is that of argon2-cffi 25, which has the reference program.
    #[test]
    fn the_key_is_that_of_the_reference_program() {
        let cost = Cost {
            memory_kib: 8 * 1024,
            passes: 1,
            lanes: 1,
        };
        let passphrase = Secret::new("passphrase".to_owned());
        let key = cost.derive(&passphrase, b"sixteen-bytes-of").unwrap();
        assert_eq!(data_encoding::HEXLOWER.encode(key.bytes()), REFERENCE);
    }

    const REFERENCE: &str = "b0a2d6a407a42b165a71070a05398631f7fb16e0ae28c3c4243a6d237732e6cd";
}
