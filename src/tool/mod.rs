//! The names and definitions of tools.
//!
//! [`ServerName`] and [`ToolName`] are validated once, on input. The joined form `server__tool`, which agents see, is
//! printed and parsed only here.

mod definition;
mod effect;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod guess;
mod hidden;
mod name;
mod shown;
mod signature;

pub(crate) use definition::DefinitionError;
pub use definition::{Definition, Parameter, ToolHash};
pub(crate) use definition::{FAULT, Hints, SKILL};
pub use effect::Effect;
pub(crate) use hidden::{is_hidden, selects_nothing};
pub(crate) use name::{NameError, QualifiedName, SEPARATOR};
pub use name::{ServerName, ToolName};
pub use shown::shown_to_models;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use signature::first_sentence;
pub(crate) use signature::{Signature, local_pointer, type_expression};
pub use signature::{render_hit, render_hits, tokens_of};
