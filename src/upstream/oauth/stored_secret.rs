//! Serialization of secrets for the login's file, the only text that shows them.

/// A secret that is always present.
pub(super) mod plain {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::secret::Secret;

    pub(in super::super) fn serialize<S: Serializer>(
        secret: &Secret<String>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(secret.expose())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Secret<String>, D::Error> {
        String::deserialize(from).map(Secret::new)
    }
}

/// A secret that may be absent.
pub(super) mod hidden {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use crate::secret::Secret;

    pub(in super::super) fn serialize<S: Serializer>(
        secret: &Option<Secret<String>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        secret.as_ref().map(Secret::expose).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Secret<String>>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(Secret::new))
    }
}
