//! Fills in the variables in the values of overrides.

use std::collections::BTreeMap;

use super::adaptation::{Override, OverrideEntry, Overrides, Piece, Preset, PresetEntry};
use super::error::EntryError;
use super::reader::At;
use super::server::Resolver;
use crate::mcp::object::quoted;
use crate::secret::Secret;

impl Resolver<'_> {
    /// Expands the variables in the values of overrides. The value of each variable is a secret, by any name.
    pub(super) fn overrides(
        &mut self,
        entries: Vec<OverrideEntry>,
    ) -> Result<Overrides, At<EntryError>> {
        let mut overrides = Overrides::new();
        for entry in entries {
            let key = format!("tools.override.{}", entry.tool.value);
            let mut arguments = BTreeMap::new();
            for (argument, written) in entry.arguments {
                let key = format!("{key}.arguments.{argument}");
                let preset = match written {
                    PresetEntry::Hidden => Preset::Hidden,
                    PresetEntry::Fixed(pieces) => Preset::Fixed(self.joined(&key, pieces)?.0),
                    PresetEntry::Default(pieces) => {
                        let (json, shown) = self.joined(&key, pieces)?;
                        Preset::Default { json, shown }
                    }
                };
                arguments.insert(argument, preset);
            }
            let adapted = Override {
                name: entry.name,
                description: entry.description,
                arguments,
                select: entry.select,
                budget: entry.budget,
                form: entry.form,
            };
            overrides.insert(entry.tool.value, adapted);
        }
        Ok(overrides)
    }

    /// The JSON of a value, and whether it has no variable.
    fn joined(
        &mut self,
        key: &str,
        pieces: Vec<Piece>,
    ) -> Result<(Secret<String>, bool), At<EntryError>> {
        let (mut json, mut is_plain) = (String::new(), true);
        for piece in pieces {
            match piece {
                Piece::Json(text) => json.push_str(&text),
                Piece::Text(text) => {
                    is_plain &= !text.value.contains("${");
                    json.push_str(&quoted(&self.secret(key, &text)?));
                }
            }
        }
        Ok((Secret::new(json), is_plain))
    }
}
