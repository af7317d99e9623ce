//! The rights that each method and action in the window of a gateway needs. This is the only list: anything not listed is refused.

use super::actions::ACTIONS;

/// The right that a method or an action needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    /// Everyone has it, about what is theirs.
    Own,
    /// A role with `manage` gives it.
    Manage,
    /// It is about the machine, whose user has a window of their own (`mcpzip ui`).
    Machine,
}

use Right::{Machine, Manage, Own};

/// The methods of the control interface.
pub(crate) const METHODS: &[(&str, Right)] = &[
    ("daemon.status", Own),
    ("daemon.stop", Machine),
    ("daemon.restart", Machine),
    ("daemon.reload", Machine),
    ("daemon.pause", Machine),
    ("daemon.resume", Machine),
    ("servers.list", Own),
    ("servers.stop", Manage),
    ("servers.restart", Manage),
    ("approvals.list", Manage),
    ("approvals.allow", Manage),
    ("approvals.deny", Manage),
    ("ui.open", Machine),
    ("ui.close", Own),
    ("ui.offered", Own),
    ("events.list", Own),
    ("events.subscribe", Machine),
];

/// The actions that a gateway has; all others are about the machine.
const AT_GATEWAY: &[(&str, Right)] = &[
    ("status", Own),
    ("list", Own),
    ("tools", Own),
    ("search", Own),
    ("describe", Own),
    ("call", Own),
    ("audit", Own),
    ("stats", Own),
    ("gain", Manage),
    ("logs", Manage),
    ("enable", Manage),
    ("disable", Manage),
    ("differences", Manage),
    ("approve", Manage),
    ("reject", Manage),
    ("approvals", Manage),
    ("allow", Manage),
    ("deny", Manage),
];

impl Right {
    /// The right to a method.
    pub(super) fn to_method(name: &str) -> Self {
        of(METHODS, name)
    }

    /// The right to an action.
    pub(super) fn to_action(name: &str) -> Self {
        of(AT_GATEWAY, name)
    }

    /// Whether a person has it.
    pub(super) const fn is_of(self, manages: bool) -> bool {
        match self {
            Own => true,
            Manage => manages,
            Machine => false,
        }
    }

    /// The refusal for a person who does not have it.
    pub(super) const fn refusal(self) -> &'static str {
        match self {
            Own | Manage => {
                "only a role with `manage` may do this at this gateway, by a login in the browser or a token made with `--manage`"
            }
            Machine => {
                "this is about the machine of the gateway, and is done there: `mcpzip ui` or the command"
            }
        }
    }
}

fn of(list: &[(&str, Right)], name: &str) -> Right {
    let found = list.iter().find(|(known, _)| *known == name);
    found.map_or(Machine, |(_, right)| *right)
}

/// The names in a list that a person has the right to.
fn offered(list: &[(&'static str, Right)], manages: bool) -> Vec<&'static str> {
    let offered = list.iter().filter(|(_, right)| right.is_of(manages));
    offered.map(|(name, _)| *name).collect()
}

/// The methods and actions that a window offers to the person who looks at it.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Offered {
    /// The person, at a gateway; absent in the window of the machine's own user.
    #[serde(skip_serializing_if = "Option::is_none")]
    person: Option<Person>,
    /// The methods of this interface that the person may use.
    methods: Vec<&'static str>,
    /// The actions that the person may use.
    actions: Vec<&'static str>,
}

/// A person at a gateway.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Person {
    /// The name, as rules have it.
    pub(crate) name: String,
    /// The names of the roles.
    pub(crate) roles: Vec<String>,
    /// Whether a role lets the person manage the gateway.
    pub(crate) manages: bool,
}

impl Offered {
    /// Everything, for the user of the machine.
    #[must_use]
    pub(crate) fn everything() -> Self {
        Self {
            person: None,
            methods: METHODS.iter().map(|(name, _)| *name).collect(),
            actions: ACTIONS.iter().map(|action| action.name).collect(),
        }
    }

    pub(super) fn at_gateway(person: Person) -> Self {
        let manages = person.manages;
        Self {
            person: Some(person),
            methods: offered(METHODS, manages),
            actions: offered(AT_GATEWAY, manages),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_of_a_gateway_is_one() {
        for (name, _) in AT_GATEWAY {
            assert!(ACTIONS.iter().any(|action| action.name == *name), "{name}");
        }
        for (name, right) in METHODS.iter().chain(AT_GATEWAY) {
            assert!(!Machine.is_of(true), "{name}");
            assert_eq!(right.is_of(false), *right == Own, "{name}");
        }
        assert_eq!(Right::to_action("config_write"), Machine);
        assert_eq!(Right::to_method("nothing"), Machine);
    }
}
