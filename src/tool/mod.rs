//! What a tool is called and what its server says of it.
//!
//! [`ServerName`] and [`ToolName`] are checked once, where they enter; everything below passes them on as they are.
//! The joined form `server__tool`, which agents see, is printed and parsed only here.

mod definition;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod hidden;
mod name;
mod shown;
mod signature;

pub use definition::{Definition, DefinitionError, Hints, Parameter, ToolHash};
pub use hidden::is_hidden;
pub use name::{NameError, QualifiedName, SEPARATOR, ServerName, ToolName};
pub use shown::shown_to_models;
pub use signature::{
    Signature, first_sentence, local_pointer, render_hit, render_hits, tokens_of, type_expression,
};
