//! The difference between two configurations, in words for the audit log: names of servers and of settings, never values.

use std::collections::BTreeSet;

use super::Config;

impl Config {
    /// The servers that are new, gone or changed since `before`, and whether rules or other settings are.
    #[must_use]
    pub(crate) fn difference(&self, before: &Self) -> String {
        let names = |config: &Self| config.servers.keys().cloned().collect::<BTreeSet<_>>();
        let (then, now) = (names(before), names(self));
        let list = |label: &str, names: Vec<&str>| {
            (!names.is_empty()).then(|| format!("{label}: {}", names.join(", ")))
        };
        let changed = then.intersection(&now).filter(|name| {
            let entry = |config: &Self| {
                let server = &config.servers[*name];
                // The hash has the secrets, the other text everything else.
                format!("{} {server:?}", server.hash)
            };
            entry(before) != entry(self)
        });
        let parts = [
            list(
                "servers added",
                now.difference(&then).map(|name| name.as_str()).collect(),
            ),
            list(
                "servers removed",
                then.difference(&now).map(|name| name.as_str()).collect(),
            ),
            list(
                "servers changed",
                changed.map(|name| name.as_str()).collect(),
            ),
            (format!("{:?}", before.tools) != format!("{:?}", self.tools))
                .then(|| "rules changed".to_owned()),
            (before.profiles != self.profiles).then(|| "profiles changed".to_owned()),
            (before.roles != self.roles).then(|| "roles changed".to_owned()),
            (before.http != self.http).then(|| "http changed".to_owned()),
            (before.limits != self.limits).then(|| "limits changed".to_owned()),
            (before.scripts != self.scripts).then(|| "scripts changed".to_owned()),
            (before.management != self.management).then(|| "management changed".to_owned()),
            (before.audit != self.audit || before.audit_copies != self.audit_copies)
                .then(|| "audit changed".to_owned()),
            (before.notify != self.notify).then(|| "notify changed".to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            true => "no server and no rule changed".to_owned(),
            false => parts.join("; "),
        }
    }
}
