//! Moments as RFC 3339 text, in files and in answers.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The moment as text, to the second.
pub(super) fn written(moment: OffsetDateTime) -> String {
    let whole = moment.truncate_to_second();
    // Only a year beyond 9999 or an offset with seconds cannot be written so; neither can be read from an argument.
    whole.format(&Rfc3339).unwrap_or_else(|_| whole.to_string())
}

/// Used by `#[serde(with = "moment")]`.
pub(super) fn serialize<S: Serializer>(
    moment: &OffsetDateTime,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    written(*moment).serialize(serializer)
}

/// Used by `#[serde(with = "moment")]`.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<OffsetDateTime, D::Error> {
    let text = String::deserialize(deserializer)?;
    OffsetDateTime::parse(&text, &Rfc3339).map_err(D::Error::custom)
}
