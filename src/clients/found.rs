//! A server as a client's file has it.

use super::entry::is_mcpzip;
use super::model::{Approval, Invocation};
use super::{ConfigLocation, Found, Node, reading};

impl Found {
    /// The server `name` at `location`, whose entry is `node`.
    pub(super) fn read(location: ConfigLocation, name: &str, node: &Node) -> Self {
        let (client, project) = (location.client, location.project.as_deref());
        let entry = reading::read(client, node, project);
        let written = reading::written(client, node);
        let part = reading::part(client, node, project);
        let (switch, of_part) = part
            .map(|part| (part.switch, part.tool_rules))
            .unwrap_or_default();
        Self {
            form: match &entry {
                Ok(entry) => Some(entry.to_node()),
                Err(_) => form_of(&written),
            },
            tool_rules: match &entry {
                Ok(entry) => entry.tool_rules.clone(),
                Err(_) => of_part,
            },
            is_switched_off: switch.is_some(),
            is_off: switch.is_some(),
            switch,
            origins: Vec::new(),
            is_mcpzip: entry.as_ref().is_ok_and(|entry| is_mcpzip(name, entry)),
            location,
            name: name.to_owned(),
            entry,
            written,
            approval: Approval::Given,
        }
    }
}

/// The program or URL of an entry that cannot be converted. `None` if it is not known, also because of a reference.
fn form_of(written: &Invocation) -> Option<Node> {
    let form = match written {
        Invocation::Command(words) => {
            let (command, args) = words.split_first()?;
            let args = Node::List(args.to_vec());
            Node::map([("command", command.clone()), ("args", args)])
        }
        Invocation::Url(url) => Node::map([("url", Node::text(url))]),
        Invocation::Unknown => return None,
    };
    (!form.any_text(|text| text.contains(['$', '{']))).then_some(form)
}
