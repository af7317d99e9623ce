//! How near two servers that run the same program or URL are to each other.

use super::servers::Servers;
use super::{Found, Node};
use crate::config::safe_name;

/// How near a server of a client's own is to another one, if it runs the same program or URL: with the same arguments, variables and
/// secrets, as far as they are known; or else by the same name. One of which the program is not known is that of its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Nearness {
    Program,
    Name,
    Equal,
}

impl Nearness {
    pub(super) fn of(own: &Found, other: &Found, servers: &Servers) -> Option<Self> {
        let is_it = |name: &String| name.eq_ignore_ascii_case(&own.name);
        let has_name = is_it(&other.name)
            || safe_name(&own.name) == other.name
            || other.origins.iter().any(is_it);
        match (&own.form, &other.form) {
            (Some(form), Some(there)) if servers.is_equal(form, there) => Some(Self::Equal),
            (Some(form), Some(there)) if !servers.is_same_program(form, there) => None,
            (Some(_), Some(_)) if !has_name => Some(Self::Program),
            _ => has_name.then_some(Self::Name),
        }
    }

    /// How near a server of mcpzip is to another one with the program.
    pub(super) fn here(node: &Node, other: &Found, servers: &Servers) -> Option<Self> {
        let form = other.form.as_ref()?;
        match servers.is_equal(node, form) {
            true => Some(Self::Equal),
            false => servers.is_same_program(node, form).then_some(Self::Program),
        }
    }
}
