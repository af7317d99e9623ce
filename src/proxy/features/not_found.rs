//! A name or URI that means no prompt or resource, or several.

use crate::proxy::Reply;

/// A name or URI that does not mean exactly one prompt or resource.
#[derive(Debug, thiserror::Error)]
pub(in crate::proxy) enum NotFound {
    /// No prompt has this name.
    #[error("there is no prompt `{name}`: {}", advice(nearest))]
    Prompt { name: String, nearest: Vec<String> },
    /// Prompts of several servers have this name.
    #[error("the prompt `{name}` could be {}: say which", names.join(" or "))]
    SeveralPrompts { name: String, names: Vec<String> },
    /// No server has this template.
    #[error("there is no resource template `{uri}`")]
    Template { uri: String },
    /// Several servers have this URI; each of `uris` means one of them.
    #[error("several servers have `{uri}`; say which by `{}`", uris.join("` or `"))]
    SeveralResources { uri: String, uris: Vec<String> },
}

fn advice(nearest: &[String]) -> String {
    match nearest {
        [] => "see prompts/list".to_owned(),
        nearest => format!("did you mean {}?", nearest.join(", ")),
    }
}

impl From<NotFound> for Reply {
    fn from(error: NotFound) -> Self {
        Self::invalid_params(error.to_string())
    }
}
