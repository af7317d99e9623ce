//! All settings, and their conversion from a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::level_filters::LevelFilter;

use super::edit::LARGEST_FILE;
use super::error::{ConfigWarning, EntryError, Error, ServerFault, Warning};
use super::names::safe_names;
use super::options::CREDENTIALS_EXPECTED;
use super::paths::is_inline;
use super::policy::{Judgement, RenamedTools};
use super::reader::{At, Lines, Read, Report};
use super::roles::GrantedProfile;
use super::saved_scripts;
use super::sections;
use super::server::{self, Resolver};
use super::{
    ApprovalOptions, AuditCopies, AuditOptions, BUILT_IN_SERVER, Credentials, DaemonOptions,
    Environment, Exposure, HealthCheck, Holds, HttpOptions, IdleBounds, IdleTimeout, Inspected,
    Limits, LogOptions, Management, MetricsExport, OwnIdleBounds, Paths, Policy, Preset, Profiles,
    RemoteServer, ResultForm, ResultOptions, Roles, ScriptOptions, SearchOptions, SecretFault,
    SecretName, Server, StoreOptions, Subject, SurfaceOptions, Traces, Transport, Trust, Verdict,
    any_program, duration, env, file, limits, profiles, remote_server, roles, secrets_file,
};
use crate::files::read_regular;
use crate::secret::Masker;
use crate::tool::{Hints, QualifiedName, ServerName, ToolName};

/// The official registry.
const REGISTRY: &str = "https://registry.modelcontextprotocol.io";

const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// The default of `catalog.max_age`.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// All settings.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// The file they were read from.
    pub path: Option<PathBuf>,
    /// The source of the servers if there is no such file.
    pub stand_in: Option<StandIn>,
    /// The usable servers, including disabled ones.
    pub servers: BTreeMap<ServerName, Server>,
    /// The servers whose `trust` is stricter than their entries say, each with the entry of the same program or URL that has it.
    pub raised_trust: BTreeMap<ServerName, ServerName>,
    /// The names in the file of servers whose names had to be changed.
    pub renamed: BTreeMap<ServerName, String>,
    /// The unusable entries, in the file's order; they are shown as failed servers.
    pub faults: Vec<ServerFault>,
    /// The names of all entries, as written and as used, including faulty ones.
    pub names: BTreeSet<String>,
    /// The warnings about the file, in its order.
    pub warnings: Vec<Warning>,
    /// The time limit of a call for servers without `timeout`.
    pub call_timeout: Duration,
    /// When an unused connection is closed, for servers without their own setting.
    pub idle_timeout: IdleTimeout,
    /// The bounds of an adaptive idle time, where its server does not say.
    pub idle_bounds: IdleBounds,
    /// How often open connections over HTTP are checked.
    pub health_check: HealthCheck,
    /// The age at which a server's list is renewed.
    pub max_age: Duration,
    /// How clients see the servers' tools.
    pub surface: SurfaceOptions,
    /// The options of the search.
    pub search: SearchOptions,
    /// The options for results.
    pub results: ResultOptions,
    /// The calls that wait for an approval.
    pub approvals: ApprovalOptions,
    /// Whether notifications on the desktop say that something waits for the user.
    pub notify: bool,
    /// The audit log.
    pub audit: AuditOptions,
    /// The targets of copies of its lines.
    pub audit_copies: AuditCopies,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// Whether clients see prompts and resources, for servers without their own setting.
    pub expose: Exposure,
    /// The rules for the tools of all servers.
    pub tools: Policy,
    /// The profiles.
    pub profiles: Profiles,
    /// The rules of the profiles that this configuration is narrowed to, by name.
    pub profile_rules: Vec<(String, Policy)>,
    /// The roles of people.
    pub roles: Roles,
    /// The limits of clients over HTTP; a fault in them refuses every call.
    pub limits: Limits,
    /// The profiles that the roles of its person give: any of them may permit a tool. Empty without limits.
    pub role_profiles: Vec<GrantedProfile>,
    /// The caller that its rules judge for.
    pub subject: Subject,
    /// The permission of agents to change `mcpzip` itself.
    pub management: Management,
    /// Whether agents run scripts, and of which calls.
    pub scripts: ScriptOptions,
    /// The storage of logins.
    pub credentials: Credentials,
    /// The database that replicas share; a fault in it keeps them from being served without it.
    pub store: Result<Option<StoreOptions>, EntryError>,
    /// The address of the registry that is searched for servers.
    pub registry: String,
    /// The log level, if no flag or variable sets one.
    pub log: Option<LevelFilter>,
    /// How logs are written and kept.
    pub logs: LogOptions,
    /// The process that sessions share.
    pub daemon: DaemonOptions,
    /// Whether figures for Prometheus are served over HTTP.
    pub metrics: bool,
    /// How clients are served over HTTP; a fault in it keeps that from being done without what was configured.
    pub http: Result<HttpOptions, EntryError>,
    /// The destination of traces, if there is one.
    pub traces: Option<Traces>,
    /// The destination of metrics, if there is one.
    pub metrics_export: Option<MetricsExport>,
    /// Hides the secrets among the values above, including those in arguments and URLs.
    pub masker: Masker,
}

/// The servers that are served without a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StandIn {
    /// The built-in server alone.
    Nothing,
    /// The servers of mcpzip 0.1 in this file, which is only read.
    Older(PathBuf),
}

impl Config {
    /// The advice for the user while there is no configuration.
    #[must_use]
    pub(crate) fn advice(&self) -> Option<String> {
        let path = self.path.as_deref().unwrap_or(Path::new("")).display();
        Some(match self.stand_in.as_ref()? {
            StandIn::Nothing => format!(
                "mcpzip has no configuration yet: there is no `{path}`. Tell the user to run `mcpzip init` in a terminal, or \
                 `mcpzip add`; the servers are here as soon as that file is."
            ),
            StandIn::Older(older) => format!(
                "These servers are those of mcpzip 0.1, read from `{}`. Tell the user to run `mcpzip migrate --from mcpzip-0.1` in a \
                 terminal, which takes them over into `{path}`.",
                older.display()
            ),
        })
    }

    /// The warnings about keys in the entry of the server `name`.
    pub(crate) fn warnings_about(&self, name: &str) -> impl Iterator<Item = String> {
        let warnings = self.warnings.iter();
        warnings
            .filter(move |warning| warning.kind.is_about(name))
            .map(|warning| warning.kind.to_string())
    }

    /// The decision of all rules on a tool.
    #[must_use]
    pub(crate) fn judge(&self, name: &QualifiedName, hints: Hints) -> Verdict {
        let own = self
            .servers
            .get(&name.server)
            .map_or(Verdict::Allowed, |entry| entry.tools.judge_own(name, hints));
        let profiles = self.profile_rules.iter();
        let profiles = profiles.map(|(_, rules)| rules.judge(name, hints));
        let all = profiles.fold(own.max(self.tools.judge(name, hints)), Verdict::max);
        let roles = self.judgement_of_roles(name, hints, None);
        roles.map_or(all, |(judgement, _)| all.max(judgement.verdict))
    }

    /// The mildest judgement of the profiles that roles give, and the profile; `None` without such limits.
    fn judgement_of_roles(
        &self,
        name: &QualifiedName,
        hints: Hints,
        call: Option<&Inspected<'_>>,
    ) -> Option<(Judgement, &GrantedProfile)> {
        let granted = self.role_profiles.iter();
        let granted = granted.filter(|profile| profile.has(&name.server));
        let judged = granted.map(|profile| (profile.rules.judgement(name, hints, call), profile));
        judged.min_by_key(|(judgement, _)| judgement.verdict)
    }

    /// The form of results for the client with this name: the tool's `own`, else that of the client's entry, else that of
    /// all results.
    #[must_use]
    pub(crate) fn result_form(&self, own: Option<ResultForm>, client: &str) -> ResultForm {
        own.or_else(|| self.surface.form_for(client))
            .unwrap_or(self.results.form)
    }

    /// The permission for a tool, or for this call of it, and the rule that decides, as it stands in the file.
    #[must_use]
    pub(crate) fn decide(
        &self,
        name: &QualifiedName,
        hints: Hints,
        call: Option<&Inspected<'_>>,
    ) -> (Verdict, Option<String>) {
        let mut decided = (Verdict::Allowed, None);
        for (policy, judgement, scope) in self.judgements(name, hints, call) {
            let rule = policy.rule_of(judgement).map(|rule| match scope {
                None => rule,
                Some((key, name)) => format!("{key}.{name}.{rule}"),
            });
            if judgement.verdict > decided.0 || decided.1.is_none() {
                decided = (judgement.verdict.max(decided.0), rule);
            }
        }
        decided
    }

    /// Whether the tools of this server are scripts that the user has saved.
    #[must_use]
    pub(crate) fn has_scripts(&self, server: &ServerName) -> bool {
        self.servers.get(server).and_then(Server::holds) == Some(Holds::Scripts)
    }

    /// Gives its servers the strictest `trust` of their program, after servers were added.
    pub(crate) fn share_trust(&mut self) {
        self.raised_trust = share_trust(&mut self.servers);
    }

    /// The masker for what a server sends, if the user sets arguments of its tools: it may repeat them.
    #[must_use]
    pub(crate) fn masker_of(&self, server: &ServerName) -> Option<Masker> {
        let entry = self.servers.get(server)?;
        let mut presets = entry
            .overrides
            .values()
            .flat_map(|wanted| wanted.arguments.values());
        let has_values = presets.any(|preset| *preset != Preset::Hidden);
        has_values.then(|| self.masker.clone())
    }

    /// The secrets that servers need and that cannot be read now.
    pub(crate) fn unread_secrets(&self) -> impl Iterator<Item = &SecretName> {
        self.faults.iter().filter_map(|fault| match &fault.fault {
            EntryError::Secret {
                name,
                fault: SecretFault::Unavailable { .. },
                ..
            } => Some(name),
            _ => None,
        })
    }

    /// The working directory in a server's entry.
    #[must_use]
    pub(crate) fn directory_of(&self, server: &ServerName) -> Option<PathBuf> {
        match &self.servers.get(server)?.transport {
            Transport::Stdio(stdio) => stdio.cwd.clone(),
            Transport::Http(_) | Transport::Sse(_) | Transport::Folder(_) => None,
        }
    }

    /// Whether a rule looks at the arguments of this server's tools.
    #[must_use]
    pub(crate) fn inspects(&self, server: &ServerName) -> bool {
        let own = self.servers.get(server);
        let mut profiles = self.profile_rules.iter();
        self.tools.inspects()
            || profiles.any(|(_, rules)| rules.inspects())
            || self.role_profiles.iter().any(|part| part.rules.inspects())
            || own.is_some_and(|entry| entry.tools.inspects())
    }

    /// The judgements of the rules for all servers and of those in the server's entry, each with the place of its rules in the file.
    fn judgements<'s>(
        &'s self,
        name: &'s QualifiedName,
        hints: Hints,
        call: Option<&'s Inspected<'s>>,
    ) -> impl Iterator<Item = (&'s Policy, Judgement, Option<(&'static str, &'s str)>)> {
        let all = (&self.tools, self.tools.judgement(name, hints, call), None);
        let own = self.servers.get(&name.server).map(|entry| {
            let judgement = entry.tools.own_judgement(name, hints, call);
            let scope = ("mcpServers", name.server.as_str());
            (&entry.tools, judgement, Some(scope))
        });
        let profiles = self.profile_rules.iter().map(move |(profile, rules)| {
            let judgement = rules.judgement(name, hints, call);
            (rules, judgement, Some(("profiles", &profile[..])))
        });
        let roles = self.judgement_of_roles(name, hints, call);
        let roles = roles.map(|(judgement, profile)| {
            let scope = ("profiles", profile.name());
            (&profile.rules, judgement, Some(scope))
        });
        std::iter::once(all).chain(own).chain(profiles).chain(roles)
    }

    /// The servers that a client in `directories` (without symbolic links) does not see.
    #[must_use]
    pub(crate) fn unseen(&self, directories: &[PathBuf]) -> BTreeSet<ServerName> {
        let unseen = self
            .servers
            .iter()
            .filter(|(_, entry)| !entry.projects.admit(directories));
        unseen.map(|(server, _)| server.clone()).collect()
    }

    /// A copy without some servers.
    #[must_use]
    pub(crate) fn without(&self, servers: &BTreeSet<ServerName>) -> Self {
        let mut config = self.clone();
        config.servers.retain(|server, _| !servers.contains(server));
        config
    }

    /// Whether calls are counted for those who watch the process.
    #[must_use]
    pub(crate) fn counts_calls(&self) -> bool {
        self.metrics || self.metrics_export.is_some()
    }

    /// Whether clients see the prompts and resources of a server; neither for one that is not used.
    #[must_use]
    pub(crate) fn exposes(&self, server: &ServerName) -> Exposure {
        let entry = self.servers.get(server).filter(|entry| !entry.disabled);
        entry.map_or(Exposure::NOTHING, |entry| entry.expose.or(self.expose))
    }

    /// Whether clients may see prompts and resources of any server, including future ones.
    #[must_use]
    pub(crate) fn exposes_any(&self) -> Exposure {
        self.servers
            .keys()
            .map(|server| self.exposes(server))
            .fold(self.expose, |all, one| Exposure {
                prompts: all.prompts || one.prompts,
                resources: all.resources || one.resources,
            })
    }

    /// Merges, in this order, flags and variables (both in `paths`), the file, and the defaults.
    ///
    /// # Errors
    /// When there is no file, or it is not usable at all.
    pub(crate) fn load(paths: &Paths, environment: &Environment) -> Result<Self, Error> {
        let text = Self::text(paths, environment)?;
        Self::parse(&text, &paths.config_file, environment)
    }

    /// Like [`Config::load`], with more servers; with one at least, the file may be missing.
    ///
    /// # Errors
    /// When there is nothing to serve, or nothing in the file can be used.
    pub(crate) fn load_with(
        servers: &[RemoteServer],
        paths: &Paths,
        environment: &Environment,
    ) -> Result<Self, Error> {
        if servers.is_empty() {
            return Self::load(paths, environment);
        }
        let text = match Self::text(paths, environment) {
            Err(Error::Missing { .. }) => "{}".to_owned(),
            text => text?,
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        // A text that cannot be changed cannot be read either, and the reader says why.
        let changed = remote_server::added(text, servers);
        let text = changed.as_deref().unwrap_or(text);
        Self::parse(text, &paths.config_file, environment)
    }

    /// The configuration as it is written.
    pub(crate) fn text(paths: &Paths, environment: &Environment) -> Result<String, Error> {
        let path = paths.config_file.clone();
        if is_inline(&path) {
            let text = environment.get(env::CONFIG_JSON.name).unwrap_or_default();
            return Ok(text.to_owned());
        }
        Self::text_of(path)
    }

    /// The text of a file of configuration.
    ///
    /// # Errors
    /// When it is not there, cannot be read, or is not UTF-8.
    pub(crate) fn text_of(path: PathBuf) -> Result<String, Error> {
        match read_regular(&path, LARGEST_FILE) {
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| Error::Encoding { path }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Error::absent(&path)),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// Like [`Config::load`], but a missing file gives the settings of variables and defaults.
    ///
    /// # Errors
    /// When the file is not usable at all.
    pub(crate) fn load_or_default(paths: &Paths, environment: &Environment) -> Result<Self, Error> {
        match Self::load(paths, environment) {
            Err(Error::Missing { path }) => Self::parse("{}", &path, environment),
            loaded => loaded,
        }
    }

    /// Reads `text`, the content of the file at the absolute `path`.
    ///
    /// # Errors
    /// When the text is not JSON, or not an object of servers and settings.
    pub(crate) fn parse(text: &str, path: &Path, environment: &Environment) -> Result<Self, Error> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = Lines::new(text);
        let report = Report::default();
        let root = file::parse(text).map_err(|error| Error::Syntax {
            path: path.to_owned(),
            position: lines.position(error.range().start),
            problem: lower_first(&error.kind().to_string()),
        })?;
        let root = root.ok_or_else(|| Error::Empty {
            path: path.to_owned(),
        })?;
        let shape = |at: At<EntryError>| Error::Shape {
            path: path.to_owned(),
            position: lines.position(at.offset),
            fault: Box::new(at.value),
        };
        let file = file::read(&root, &report).map_err(shape)?;
        let mut tools = Policy::read(file.tools).map_err(shape)?;
        let registry = registry(environment, file.registry).map_err(shape)?;
        let defaults = Self::default();
        let directory = path.parent().unwrap_or(Path::new(""));
        let with_secrets = secrets_file::with_secrets(path, environment)?;
        let mut resolver = Resolver::new(&with_secrets, directory, &report);
        resolver.set_defaults(file.proxy, file.ca_file);
        let written: Vec<&str> = file
            .servers
            .iter()
            .map(|at| at.name.value.as_str())
            .collect();
        let mut names: BTreeSet<String> = safe_names(&written).into_iter().collect();
        names.extend(written.into_iter().map(str::to_owned));
        let (mut servers, renamed, mut faults) = servers(file.servers, &mut resolver, &lines);
        let raised_trust = share_trust(&mut servers);
        faults.iter_mut().for_each(|fault| explain(fault, &report));
        for (name, written) in &renamed {
            tools.know_as(name, written);
        }
        let scripts = setting(file.scripts, defaults.scripts, ScriptOptions::text, &report);
        if scripts.is_on
            && let Some((name, server)) = saved_scripts::saved_scripts(path)
            && !names.contains(name.as_str())
        {
            names.insert(name.as_str().to_owned());
            servers.insert(name, server);
        }
        let mut profiles = profiles::of(file.profiles, &names, &renamed, environment, &report);
        let renamed_tools: RenamedTools = servers.iter().flat_map(tools_renamed_in).collect();
        for (name, server) in &mut servers {
            // Only its own, since another entry's are not a change of this one.
            let own = tools_renamed_in((name, server)).collect();
            server.tools.know_renamed(&own);
        }
        tools.know_renamed(&renamed_tools);
        let parts = profiles.iter_mut().flat_map(BTreeMap::values_mut).flatten();
        parts.for_each(|part| part.tools.know_renamed(&renamed_tools));
        let search = search(file.search, defaults.search, &mut resolver);
        let otlp = resolver.otlp(file.otlp);
        let audit = AuditOptions::of(file.audit, otlp.logs.as_ref(), &report);
        let (audit, audit_copies) = audit.map_err(shape)?;
        let (http, metrics) = resolver.http(file.http);
        let store = StoreOptions::of(environment, file.store, &mut resolver);
        Ok(Self {
            path: Some(path.to_owned()),
            stand_in: None,
            servers,
            raised_trust,
            renamed,
            faults,
            names,
            masker: Masker::new(resolver.secrets),
            call_timeout: setting(
                file.call_timeout,
                defaults.call_timeout,
                duration::text,
                &report,
            ),
            idle_timeout: setting(
                file.idle_timeout,
                defaults.idle_timeout,
                IdleTimeout::text,
                &report,
            ),
            idle_bounds: idle_bounds(file.min_idle_timeout, file.max_idle_timeout, &report),
            health_check: setting(
                file.health_check,
                defaults.health_check,
                HealthCheck::text,
                &report,
            ),
            max_age: max_age(file.catalog, defaults.max_age, &report),
            search,
            surface: SurfaceOptions::of(file.surface, file.show, file.clients, &report),
            results: ResultOptions::of(file.results, &report),
            approvals: ApprovalOptions::of(file.approvals, &report),
            notify: simple_setting(file.notify, defaults.notify, &report),
            audit,
            audit_copies,
            home: environment.home(),
            // One that cannot be read could have been the strictest.
            management: file.management.map_or_else(
                |fault| {
                    report.refuse(
                        fault,
                        "agents can neither read nor change the state of mcpzip",
                    );
                    Management::Off
                },
                |written| written.unwrap_or(defaults.management),
            ),
            scripts,
            expose: exposure(file.expose, defaults.expose, &report),
            tools,
            profiles,
            profile_rules: Vec::new(),
            roles: roles::of(file.roles, &report),
            limits: limits::of(file.limits, &report),
            role_profiles: Vec::new(),
            subject: Subject::default(),
            credentials: credentials(environment, file.credentials, &report),
            store,
            registry,
            log: level(file.log, &report),
            logs: LogOptions::of(file.logs, environment, &report),
            metrics,
            http,
            daemon: DaemonOptions::of(environment, file.daemon, &report),
            traces: otlp.traces,
            metrics_export: otlp.metrics,
            warnings: report.into_warnings(&lines),
        })
    }
}

/// Turns a missing `command` or `url` that is present but misspelt into one fault, not a fault and a warning.
fn explain(fault: &mut ServerFault, report: &Report) {
    if fault.fault == EntryError::NoTarget
        && let Some((written, meant)) = report.take_misspelt(&fault.name, &["command", "url"])
    {
        fault.fault = EntryError::MisspeltTarget { written, meant };
    }
}

/// The tools to which a server's entry gives another name.
fn tools_renamed_in<'e>(
    (server, entry): (&'e ServerName, &'e Server),
) -> impl Iterator<Item = (QualifiedName, ToolName)> + 'e {
    entry.overrides.iter().filter_map(|(own, wanted)| {
        let own = QualifiedName {
            server: server.clone(),
            tool: ToolName::new(own).ok()?,
        };
        Some((own, wanted.name.clone()?))
    })
}

/// The settings of an empty file.
impl Default for Config {
    fn default() -> Self {
        Self {
            path: None,
            stand_in: None,
            servers: BTreeMap::new(),
            raised_trust: BTreeMap::new(),
            renamed: BTreeMap::new(),
            faults: Vec::new(),
            names: BTreeSet::new(),
            warnings: Vec::new(),
            call_timeout: CALL_TIMEOUT,
            idle_timeout: IdleTimeout::default(),
            idle_bounds: IdleBounds::default(),
            health_check: HealthCheck::default(),
            max_age: MAX_AGE,
            surface: SurfaceOptions::default(),
            search: SearchOptions::default(),
            results: ResultOptions::default(),
            approvals: ApprovalOptions::default(),
            notify: false,
            audit: AuditOptions::default(),
            audit_copies: AuditCopies::default(),
            home: None,
            expose: Exposure::default(),
            tools: Policy::default(),
            profiles: Ok(BTreeMap::new()),
            profile_rules: Vec::new(),
            roles: Ok(None),
            limits: Ok(Vec::new()),
            role_profiles: Vec::new(),
            subject: Subject::default(),
            management: Management::default(),
            scripts: ScriptOptions::default(),
            credentials: Credentials::default(),
            store: Ok(None),
            registry: REGISTRY.to_owned(),
            log: None,
            logs: LogOptions::default(),
            daemon: DaemonOptions::default(),
            metrics: false,
            http: Ok(HttpOptions::default()),
            traces: None,
            metrics_export: None,
            masker: Masker::default(),
        }
    }
}

/// Separates the usable entries from the others.
fn servers(
    entries: Vec<file::Named>,
    resolver: &mut Resolver<'_>,
    lines: &Lines<'_>,
) -> (
    BTreeMap<ServerName, Server>,
    BTreeMap<ServerName, String>,
    Vec<ServerFault>,
) {
    let (mut servers, mut renamed) = (BTreeMap::new(), BTreeMap::new());
    let mut faults = Vec::new();
    let written: Vec<&str> = entries
        .iter()
        .map(|entry| entry.name.value.as_str())
        .collect();
    let names = safe_names(&written);
    for (name, entry) in names.into_iter().zip(entries) {
        let file::Named {
            name: At {
                offset,
                value: written,
            },
            entry,
            again,
        } = entry;
        let entry = match again.is_empty() {
            true => entry,
            false => {
                let offsets = std::iter::once(offset).chain(again);
                let places = offsets.map(|offset| lines.position(offset)).collect();
                Err(At::new(offset, EntryError::Repeated { places }))
            }
        };
        let is_disabled = entry
            .as_ref()
            .is_ok_and(|entry| matches!(entry.disabled, Ok(Some(true))));
        let server = server_name(&written, &name)
            .map_err(|fault| At::new(offset, fault))
            .and_then(|name| Ok((name, resolver.server(&written, offset, entry?)?)));
        match server {
            Ok((name, mut server)) => {
                if name.as_str() != written {
                    server.tools.know_as(&name, &written);
                    renamed.insert(name.clone(), written.clone());
                    let name = name.clone();
                    resolver
                        .report
                        .add(offset, ConfigWarning::Renamed { written, name });
                }
                servers.insert(name, server);
            }
            Err(at) if is_disabled => {
                resolver.report.add(
                    at.offset,
                    ConfigWarning::Disabled {
                        name: written,
                        fault: at.value,
                    },
                );
            }
            Err(at) => {
                let position = lines.position(at.offset);
                faults.push(ServerFault {
                    name: written,
                    position,
                    fault: at.value,
                });
            }
        }
    }
    (servers, renamed, faults)
}

/// Gives entries that run the same program or URL the strictest `trust` that one of them has, so that no second name is a way around it. A
/// server that an agent added makes no other stricter. A server whose program is not known may run each one, and makes none stricter. Only a folder
/// with `report` has resources. Returns the entries that are stricter now than they say, each with the one that made it so.
pub(super) fn share_trust(
    servers: &mut BTreeMap<ServerName, Server>,
) -> BTreeMap<ServerName, ServerName> {
    let mut strictest: BTreeMap<String, (Trust, ServerName)> = BTreeMap::new();
    let any = any_program();
    let is_strict = |server: &Server| matches!(server.trust, Trust::Pin | Trust::Quarantine);
    for (name, server) in servers.iter().filter(|(_, server)| is_strict(server)) {
        let own = (server.trust, name.clone());
        for program in server.transport.programs() {
            if program == any {
                continue;
            }
            let known = strictest.entry(program).or_insert_with(|| own.clone());
            if own.0 > known.0 {
                *known = own.clone();
            }
        }
    }
    let mut raised = BTreeMap::new();
    for (name, server) in servers {
        let programs = match strictest.is_empty() {
            true => BTreeSet::new(),
            false => server.transport.programs(),
        };
        let is_any = programs.contains(&any);
        let known = strictest
            .iter()
            .filter(|(it, _)| is_any || programs.contains(*it));
        let known = known.map(|(_, known)| known);
        if let Some((trust, by)) = known.max_by_key(|(trust, _)| *trust)
            && *trust > server.trust
        {
            server.trust = *trust;
            raised.insert(name.clone(), by.clone());
        }
        if let Transport::Folder(folder) = &mut server.transport {
            folder.has_resources = server.trust.is_report();
        }
    }
    raised
}

fn server_name(written: &str, name: &str) -> Result<ServerName, EntryError> {
    if written.eq_ignore_ascii_case(BUILT_IN_SERVER) {
        return Err(EntryError::Reserved);
    }
    Ok(ServerName::new(name)?)
}

/// The value of a setting. An invalid setting gives a warning and its default, so that the user's servers stay usable.
pub(super) fn setting<T: Copy>(
    read: Read<T>,
    default: T,
    text: impl FnOnce(T) -> String,
    report: &Report,
) -> T {
    match read {
        Ok(value) => value.unwrap_or(default),
        Err(fault) => {
            report.fall_back(fault, text(default));
            default
        }
    }
}

/// The value of a setting whose text in the file is that of `Display`; see [`setting`].
pub(super) fn simple_setting<T: Copy + Display>(read: Read<T>, default: T, report: &Report) -> T {
    setting(read, default, |value| value.to_string(), report)
}

fn search(
    read: Read<sections::SearchEntry>,
    default: SearchOptions,
    resolver: &mut Resolver<'_>,
) -> SearchOptions {
    let usual = default.default_limit.to_string();
    match resolver.report.value(read, usual).flatten() {
        None => default,
        Some(entry) => {
            let limit = simple_setting(entry.default_limit, default.default_limit, resolver.report);
            let llm = entry.llm.and_then(|entry| {
                entry
                    .map(|entry| resolver.language_model(entry))
                    .transpose()
            });
            let llm = resolver.report.value(llm, "no language model").flatten();
            let semantic = simple_setting(entry.semantic, default.semantic, resolver.report);
            let learn = simple_setting(entry.learn, default.learn, resolver.report);
            SearchOptions {
                default_limit: limit,
                semantic,
                learn,
                llm,
            }
        }
    }
}

/// The setting; the variable takes precedence over the file. A variable that cannot be read could have been the strictest.
fn credentials(
    environment: &Environment,
    written: Option<Credentials>,
    report: &Report,
) -> Credentials {
    match environment
        .get(env::CREDENTIALS.name)
        .map(str::trim)
        .filter(|word| !word.is_empty())
    {
        None => written.unwrap_or_default(),
        Some(word) => Credentials::parse(word).unwrap_or_else(|| {
            let strictest = Credentials::Keychain;
            let (name, used) = (env::CREDENTIALS.name, strictest.text());
            report.add(
                0,
                ConfigWarning::Variable {
                    name,
                    expected: CREDENTIALS_EXPECTED,
                    used,
                },
            );
            strictest
        }),
    }
}

/// The setting; the variable takes precedence over the file.
///
/// # Errors
/// When the file names another thing than a URL: the official registry has servers that a private one leaves out.
fn registry(
    environment: &Environment,
    written: Option<At<String>>,
) -> Result<String, At<EntryError>> {
    if let Some(At { offset, value }) = &written
        && !server::is_url(value, &["http", "https"])
    {
        let expected = "the URL of a registry, with `http://` or `https://`";
        let fault = EntryError::value("registry", expected, format!("`\"{value}\"`"));
        return Err(At::new(*offset, fault));
    }
    let named = environment
        .get(env::REGISTRY.name)
        .map(str::trim)
        .filter(|url| !url.is_empty())
        .map(str::to_owned);
    let written = written.map(|at| at.value);
    Ok(named.or(written).unwrap_or_else(|| REGISTRY.to_owned()))
}

fn exposure(read: Read<sections::Exposed>, default: Exposure, report: &Report) -> Exposure {
    // One that cannot be read could have been a restriction.
    let one = |read: Read<bool>, default: bool| match read {
        Ok(written) => written.unwrap_or(default),
        Err(fault) => {
            report.refuse(fault, "clients see none of them");
            false
        }
    };
    match read {
        Ok(None) => default,
        Ok(Some(exposed)) => Exposure {
            prompts: one(exposed.prompts, default.prompts),
            resources: one(exposed.resources, default.resources),
        },
        Err(fault) => {
            report.refuse(fault, "clients see neither prompts nor resources");
            Exposure::NOTHING
        }
    }
}

fn level(read: Read<LevelFilter>, report: &Report) -> Option<LevelFilter> {
    report.value(read, "the usual").flatten()
}

fn idle_bounds(shortest: Read<Duration>, longest: Read<Duration>, report: &Report) -> IdleBounds {
    let default = IdleBounds::default();
    let time = |read: Read<Duration>, default: Duration| {
        let is_written = matches!(read, Ok(Some(_)));
        let time = setting(read, default, duration::text, report);
        is_written.then_some(time)
    };
    OwnIdleBounds {
        shortest: time(shortest, default.shortest),
        longest: time(longest, default.longest),
    }
    .or(default)
}

fn max_age(read: Read<sections::CatalogEntry>, default: Duration, report: &Report) -> Duration {
    match read {
        Ok(entry) => entry.map_or(default, |entry| {
            setting(entry.max_age, default, duration::text, report)
        }),
        Err(fault) => {
            let default = format!("lists are renewed after {}", duration::text(default));
            report.fall_back(fault, default);
            MAX_AGE
        }
    }
}

pub(super) fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_lowercase().chain(chars).collect())
        .unwrap_or_default()
}
