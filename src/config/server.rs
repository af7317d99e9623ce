//! Converts a server's written entry to a [`Server`]: variables expanded, paths absolute, the transport decided.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf, is_separator};

use http::{HeaderName, HeaderValue};

use super::env::{Environment, LOGIN_KEY, SECRET_KEY, is_inherited};
use super::error::{ConfigWarning, EntryError};
use super::file::{Entry, Words};
use super::identity_provider::{IdentityProvider, IdpEntry};
use super::oauth::{Grant, HeadersCommand, OAuth, PrivateKey};
use super::openapi::{DescriptionLocation, OpenApi, OpenApiEntry};
use super::policy::Policy;
use super::projects::Projects;
use super::reader::{At, Read, Report};
use super::sandbox::SandboxEntry;
use super::secrets::{secret_arguments, secret_parameters, secret_values};
use super::sections::OAuthEntry;
use super::upstream_identity::{self, IdentityEntry, UpstreamIdentity};
use super::{
    Certificates, CommandLine, ConfigHash, Folder, Holds, KnownPackage, OwnExposure, OwnIdleBounds,
    Placement, Proxy, Remote, Sandbox, Server, Stdio, Transport, Trust, expand,
};
use crate::secret::{Masker, Secret, is_secret_name};

/// The context in which entries are read, and the secrets found on the way.
pub(super) struct Resolver<'a> {
    pub(super) environment: &'a Environment,
    /// The directory of the file, to which its paths are relative.
    directory: &'a Path,
    pub(super) report: &'a Report,
    pub(super) secrets: Vec<Secret<String>>,
    /// For servers without their own setting. A fault in it affects only the servers that need it.
    proxy: Result<Proxy, At<EntryError>>,
    certificates: Read<Certificates>,
}

type Texts = BTreeMap<String, At<String>>;
type Secrets = BTreeMap<String, Secret<String>>;

/// The values of `type`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
    Sse,
}

/// The members of an entry that decide its transport.
struct Target {
    /// The value of `type`, also as it is written.
    kind: Option<(Kind, String)>,
    command: Option<At<String>>,
    args: Vec<At<String>>,
    env: Texts,
    cwd: Option<At<String>>,
    command_line: Option<CommandLine>,
    sandbox: Option<SandboxEntry>,
    fetch: Option<bool>,
    url: Option<At<String>>,
    openapi: Option<OpenApiEntry>,
    skills: Option<At<String>>,
    headers: Texts,
    headers_command: Option<Words>,
    proxy: Option<At<String>>,
    ca_file: Option<At<String>>,
    oauth: Option<OAuthEntry>,
    identity: Option<At<IdentityEntry>>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(
        environment: &'a Environment,
        directory: &'a Path,
        report: &'a Report,
    ) -> Self {
        let (proxy, certificates) = (Ok(Proxy::default()), Ok(None));
        Self {
            environment,
            directory,
            report,
            secrets: Vec::new(),
            proxy,
            certificates,
        }
    }

    /// Sets the proxy and the certificates of servers without their own.
    pub(super) fn set_defaults(&mut self, proxy: Read<At<String>>, ca_file: Read<At<String>>) {
        self.proxy = proxy.and_then(|written| {
            written.map_or(Ok(Proxy::default()), |written| self.proxy(&written))
        });
        self.certificates =
            ca_file.and_then(|path| path.map(|path| self.certificates(&path)).transpose());
    }

    /// Converts the entry `name` at `offset` to a server.
    pub(super) fn server(
        &mut self,
        name: &str,
        offset: usize,
        entry: Entry,
    ) -> Result<Server, At<EntryError>> {
        let target = Target {
            kind: entry
                .kind?
                .map(|written| kind(&written).map(|kind| (kind, written.value)))
                .transpose()?,
            args: entry.args?.unwrap_or_default(),
            env: entry.env?.unwrap_or_default(),
            cwd: entry.cwd?,
            command_line: entry.command_line?,
            sandbox: entry.sandbox?,
            fetch: entry.fetch?,
            headers: entry.headers?.unwrap_or_default(),
            headers_command: {
                // Both are read, so that a fault in either is reported; ours takes precedence.
                let (ours, other) = (entry.headers_command?, entry.headers_helper?);
                ours.or(other)
            },
            proxy: entry.proxy?,
            ca_file: entry.ca_file?,
            oauth: entry.oauth?,
            identity: entry.identity?,
            command: entry.command?,
            url: entry.url?,
            openapi: entry.openapi?,
            skills: entry.skills?,
        };
        let trust = match (entry.added_by?, entry.trust?) {
            (Some(()), _) => Trust::Unstarted,
            (None, trust) => trust.unwrap_or_default(),
        };
        let transport = self.transport(name, offset, target)?;
        let placement = self.placement(name, entry.placement?, &transport);
        let expose = match entry.expose? {
            Some(exposed) => OwnExposure {
                prompts: exposed.prompts?,
                resources: exposed.resources?,
            },
            None => OwnExposure::default(),
        };
        let tools = entry.tools?.unwrap_or_default();
        let overrides = self.overrides(tools.overrides)?.into();
        let tools = Policy::read(tools.rules)?;
        let environment = self.environment;
        let home = |text: &str| expand::home(text, environment);
        let projects = entry.projects?.unwrap_or_default();
        let projects = Projects::read(projects, home, |key, written| self.plain(key, written))?;
        // The server runs without it as well.
        let registry = self
            .report
            .value(entry.registry, "no update from there")
            .flatten();
        Ok(Server {
            expose,
            tools,
            overrides,
            trust,
            share: entry.share?.unwrap_or_default(),
            placement,
            client_capabilities: entry.client_capabilities?,
            projects,
            package: KnownPackage::of(&transport),
            hash: ConfigHash::of(&transport),
            transport,
            disabled: entry.disabled?.unwrap_or(false),
            timeout: entry.timeout?,
            idle_timeout: entry.idle_timeout?,
            idle_bounds: OwnIdleBounds {
                shortest: entry.min_idle_timeout?,
                longest: entry.max_idle_timeout?,
            },
            max_concurrent: entry.max_concurrent?,
            era: entry.era?.unwrap_or_default(),
            registry,
            description: entry
                .description?
                .map(|text| text.value)
                .filter(|text| !text.trim().is_empty()),
        })
    }

    /// The replicas that run the server; only a process can be at one replica for all.
    fn placement(
        &self,
        name: &str,
        written: Option<At<Placement>>,
        transport: &Transport,
    ) -> Placement {
        let Some(written) = written else {
            return Placement::default();
        };
        let target = match transport {
            Transport::Stdio(stdio) if stdio.command_line.is_none() => return written.value,
            Transport::Stdio(_) => "cli",
            Transport::Http(_) | Transport::Sse(_) => "url",
            Transport::Folder(_) => "skills",
        };
        if written.value != Placement::default() {
            let key = format!("mcpServers.{name}.placement");
            let warning = ConfigWarning::Unused { key, target };
            self.report.add(written.offset, warning);
        }
        Placement::default()
    }

    /// Decides the transport. Members that it does not use are reported.
    fn transport(
        &mut self,
        name: &str,
        offset: usize,
        mut target: Target,
    ) -> Result<Transport, At<EntryError>> {
        let known = self.secrets.len();
        let unused = |keys: &[(&str, bool)], target| {
            for (key, _) in keys.iter().filter(|(_, is_there)| *is_there) {
                let key = format!("mcpServers.{name}.{key}");
                let warning = ConfigWarning::Unused { key, target };
                self.report.add(offset, warning);
            }
        };
        let other = |kind, wanted, found| {
            let error = EntryError::OtherTarget {
                kind,
                wanted,
                found,
            };
            Err(At::new(offset, error))
        };
        let no_sandbox = |problem| {
            let key = "sandbox".to_owned();
            EntryError::Unusable { key, problem }
        };
        // It would restrict nothing, and its author believes that it does.
        if let Some(sandbox) = &target.sandbox {
            let problem = match (&target.command, &target.command_line) {
                (None, _) => "is for a server with a `command`",
                (Some(_), Some(_)) => "does not go with `cli`",
                (Some(_), None) => "",
            };
            if !problem.is_empty() {
                return Err(At::new(sandbox.offset, no_sandbox(problem)));
            }
        }
        if target.url.is_none() && target.openapi.is_none() {
            upstream_identity::without_url(target.identity.as_ref())?;
        }
        if let Some(path) = target.skills.take() {
            return self.skills(offset, &path, &target, &unused);
        }
        let (url, openapi) = match &target.openapi {
            None => (target.url.clone(), None),
            Some(written) => {
                let key = if written.is_graphql {
                    "graphql"
                } else {
                    "openapi"
                };
                let taken = [
                    ("command", target.command.is_some()),
                    ("url", target.url.is_some()),
                ];
                if let Some((other, _)) = taken.into_iter().find(|(_, is_there)| *is_there) {
                    return Err(At::new(offset, EntryError::OpenApiAndTarget { key, other }));
                }
                let written = target.openapi.take().expect("it is there");
                let (url, openapi) = self.openapi(written)?;
                (Some(url), Some(Box::new(openapi)))
            }
        };
        let Target {
            kind,
            command,
            args,
            env,
            cwd,
            command_line,
            sandbox,
            fetch,
            url: _,
            openapi: _,
            skills: _,
            headers,
            headers_command,
            proxy,
            ca_file,
            oauth,
            identity,
        } = target;
        match (command, url, kind) {
            (Some(_), Some(_), _) => Err(At::new(offset, EntryError::BothTargets)),
            (None, None, _) => Err(At::new(offset, EntryError::NoTarget)),
            (Some(_), None, Some((Kind::Http | Kind::Sse, kind))) => other(kind, "url", "command"),
            (None, Some(_), Some((Kind::Stdio, kind))) => other(kind, "command", "url"),
            (Some(command), None, None | Some((Kind::Stdio, _))) => {
                let remote_only = [
                    ("headers", !headers.is_empty()),
                    ("headers_command", headers_command.is_some()),
                    ("proxy", proxy.is_some()),
                    ("ca_file", ca_file.is_some()),
                    ("oauth", oauth.is_some()),
                ];
                unused(&remote_only, "command");
                let mut stdio = self.stdio(&command, args, env, cwd)?;
                stdio.command_line = command_line;
                stdio.fetch = fetch;
                stdio.sandbox = sandbox
                    .map(|sandbox| self.sandbox(sandbox).map(Box::new))
                    .transpose()?;
                Ok(Transport::Stdio(stdio))
            }
            (None, Some(url), kind) => {
                let local_only = [
                    ("args", !args.is_empty()),
                    ("env", !env.is_empty()),
                    ("cwd", cwd.is_some()),
                    ("cli", command_line.is_some()),
                    ("fetch", fetch.is_some()),
                ];
                unused(
                    &local_only,
                    if openapi.is_some() { "openapi" } else { "url" },
                );
                let oauth = oauth.unwrap_or_default();
                let mut remote = self.remote(&url, headers, proxy, ca_file, oauth)?;
                remote.openapi = openapi;
                remote.headers_command = headers_command
                    .map(|words| self.headers_command(words))
                    .transpose()?;
                remote.identity = self.identity(identity, &remote)?;
                remote.masker = Masker::new(self.secrets[known..].iter().cloned());
                Ok(match kind {
                    Some((Kind::Sse, _)) => Transport::Sse(remote),
                    _ => Transport::Http(remote),
                })
            }
        }
    }

    /// The folder of skills at `path`. No other member of the entry decides what is in it.
    fn skills(
        &mut self,
        offset: usize,
        path: &At<String>,
        target: &Target,
        unused: &impl Fn(&[(&str, bool)], &'static str),
    ) -> Result<Transport, At<EntryError>> {
        let others = [
            ("command", target.command.is_some()),
            ("url", target.url.is_some()),
            ("openapi", target.openapi.is_some()),
        ];
        if let Some((other, _)) = others.into_iter().find(|(_, is_there)| *is_there) {
            let key = "skills";
            return Err(At::new(offset, EntryError::OpenApiAndTarget { key, other }));
        }
        let rest = [
            ("type", target.kind.is_some()),
            ("args", !target.args.is_empty()),
            ("env", !target.env.is_empty()),
            ("cwd", target.cwd.is_some()),
            ("cli", target.command_line.is_some()),
            ("headers", !target.headers.is_empty()),
            ("headers_command", target.headers_command.is_some()),
            ("proxy", target.proxy.is_some()),
            ("ca_file", target.ca_file.is_some()),
            ("oauth", target.oauth.is_some()),
        ];
        unused(&rest, "skills");
        let path = self.path("skills", path)?;
        Ok(Transport::Folder(Folder {
            path: tidy(&self.directory.join(path)),
            holds: Holds::Skills,
            has_resources: false,
        }))
    }

    fn stdio(
        &mut self,
        command: &At<String>,
        args: Vec<At<String>>,
        env: Texts,
        cwd: Option<At<String>>,
    ) -> Result<Stdio, At<EntryError>> {
        let command = self.path("command", command)?;
        let named = args
            .into_iter()
            .enumerate()
            .map(|(index, arg)| (format!("args[{index}]"), arg));
        let args = named
            .map(|(key, arg)| self.plain(&key, &arg))
            .collect::<Result<Vec<_>, _>>()?;
        self.secrets.extend(secret_arguments(&command, &args));
        let mut env = env;
        env.retain(|_, written| !is_unset(&written.value, self.environment));
        let env = self.values("env", env, |name, _| {
            (name.is_empty() || name.contains(['=', '\0']))
                .then_some("is not a valid name of a variable")
        })?;
        let cwd = cwd
            .map(|cwd| self.path("cwd", &cwd))
            .transpose()?
            .map(|cwd| self.directory.join(cwd));
        // A program without a separator is searched in `PATH`.
        let command = if command.contains(is_separator) {
            self.absolute(&command)
        } else {
            command
        };
        Ok(Stdio {
            command,
            args,
            env,
            cwd: cwd.map(|cwd| tidy(&cwd)),
            command_line: None,
            sandbox: None,
            fetch: None,
        })
    }

    fn sandbox(&mut self, entry: SandboxEntry) -> Result<Sandbox, At<EntryError>> {
        let mut paths = |key: &str, written: Vec<At<String>>| {
            let paths = written.into_iter().enumerate().map(|(index, written)| {
                let key = format!("sandbox.{key}[{index}]");
                let path = self.path(&key, &written)?;
                let path = tidy(&self.directory.join(path));
                let is_up = |part| part == std::path::Component::ParentDir;
                if path.components().any(is_up) {
                    let problem = "has `..`: write the path without";
                    return Err(At::new(
                        written.offset,
                        EntryError::Unusable { key, problem },
                    ));
                }
                Ok(path)
            });
            paths.collect::<Result<Vec<_>, _>>()
        };
        let (read, write) = (paths("read", entry.read)?, paths("write", entry.write)?);
        let env = entry.env.into_iter().enumerate().map(|(index, written)| {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if written.value.is_empty() || !written.value.chars().all(is_name) {
                let (key, problem) = (
                    format!("sandbox.env[{index}]"),
                    "is not a valid name of a variable",
                );
                return Err(At::new(
                    written.offset,
                    EntryError::Unusable { key, problem },
                ));
            }
            let keys = [LOGIN_KEY.name, SECRET_KEY.name];
            if keys
                .iter()
                .any(|key| written.value.eq_ignore_ascii_case(key))
            {
                let key = format!("sandbox.env[{index}]");
                let problem = "is a key of mcpzip's own secrets, which no server gets";
                return Err(At::new(
                    written.offset,
                    EntryError::Unusable { key, problem },
                ));
            }
            Ok(written.value)
        });
        let env = env.collect::<Result<_, _>>()?;
        let image = entry.image.map(|written| {
            let image = self.plain("sandbox.image", &written)?;
            if image.is_empty() || image.starts_with('-') || image.contains(char::is_whitespace) {
                let (key, problem) = (
                    "sandbox.image".to_owned(),
                    "is not a valid name of an image",
                );
                return Err(At::new(
                    written.offset,
                    EntryError::Unusable { key, problem },
                ));
            }
            Ok(image)
        });
        Ok(Sandbox {
            preset: entry.preset,
            read,
            write,
            has_network: entry.has_network,
            env,
            image: image.transpose()?,
        })
    }

    fn remote(
        &mut self,
        url: &At<String>,
        headers: Texts,
        proxy: Option<At<String>>,
        ca_file: Option<At<String>>,
        oauth: OAuthEntry,
    ) -> Result<Remote, At<EntryError>> {
        let offset = url.offset;
        let url = self.url("url", url)?;
        let headers = self.values("headers", headers, header_problem)?;
        let proxy = match proxy {
            Some(written) => self.proxy(&written)?,
            None => self.proxy.clone()?,
        };
        let certificates = match ca_file {
            Some(path) => Some(self.certificates(&path)?),
            None => self.certificates.clone()?,
        };
        let oauth = self.oauth(oauth, offset)?;
        Ok(Remote {
            url,
            headers,
            headers_command: None,
            proxy,
            certificates,
            openapi: None,
            oauth,
            identity: UpstreamIdentity::Shared,
            masker: Masker::default(),
        })
    }

    /// A URL of a server. The variables in its user, its password and its query are secrets.
    fn url(&mut self, key: &str, written: &At<String>) -> Result<String, At<EntryError>> {
        let text = written.value.as_str();
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        let authority = place.split('/').nth(2).unwrap_or_default();
        let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
        let mut hidden = expand::variables_in(user);
        hidden.extend(expand::variables_in(query));
        let is_hidden = |name: &str| !is_inherited(name) && hidden.iter().any(|one| one == name);
        let url = self.fill_in(key, written, |name| is_secret_name(name) || is_hidden(name))?;
        let url = url.trim().to_owned();
        if !is_url(&url, &["http", "https"]) {
            return Err(At::new(written.offset, EntryError::Url));
        }
        self.secrets.extend(secret_parameters(&url));
        Ok(url)
    }

    /// The URL of the interface that a description describes, and the description.
    fn openapi(&mut self, entry: OpenApiEntry) -> Result<(At<String>, OpenApi), At<EntryError>> {
        let offset = entry.description.offset;
        let is_at_url = entry.is_graphql || entry.description.value.contains("://");
        let description = if entry.is_graphql {
            DescriptionLocation::Introspection
        } else if is_at_url {
            DescriptionLocation::Url(self.url("openapi", &entry.description)?)
        } else {
            let path = self.path("openapi", &entry.description)?;
            DescriptionLocation::File(tidy(&self.directory.join(path)))
        };
        let has_base_url = entry.base_url.is_some() || entry.is_graphql;
        let url = match entry.base_url {
            Some(url) => url,
            None if is_at_url => entry.description,
            None => {
                let problem = "is missing: a description in a file does not decide where requests and credentials go";
                let key = "base_url".to_owned();
                return Err(At::new(offset, EntryError::Unusable { key, problem }));
            }
        };
        let origins = entry
            .origins
            .into_iter()
            .enumerate()
            .map(|(index, written)| {
                let key = format!("origins[{index}]");
                let origin = self
                    .plain(&key, &written)?
                    .trim()
                    .trim_end_matches('/')
                    .to_owned();
                let rest = origin.split_once("://").map_or("", |(_, rest)| rest);
                if !is_url(&origin, &["http", "https"]) || rest.contains(['/', '?', '#', '@']) {
                    let problem = "must be the origin of a URL, like `https://uploads.example.com`";
                    return Err(At::new(
                        written.offset,
                        EntryError::Unusable { key, problem },
                    ));
                }
                Ok(origin)
            });
        let origins = origins.collect::<Result<_, _>>()?;
        let openapi = OpenApi {
            description,
            has_base_url,
            include: entry.include,
            exclude: entry.exclude,
            origins,
        };
        Ok((url, openapi))
    }

    /// Reads the command; a text is a line for the shell, which expands variables itself.
    fn headers_command(&mut self, words: Words) -> Result<HeadersCommand, At<EntryError>> {
        let key = "headers_command";
        let (program, words) = match words {
            Words::Line(line) if line.value.trim().is_empty() => {
                return Err(At::new(
                    line.offset,
                    EntryError::Empty {
                        key: key.to_owned(),
                    },
                ));
            }
            Words::Line(line) => return Ok(HeadersCommand::shell(line.value)),
            Words::Program(program, words) => (program, words),
        };
        let program = self.path(key, &program)?;
        let program = if program.contains(is_separator) {
            self.absolute(&program)
        } else {
            program
        };
        let args = words
            .into_iter()
            .enumerate()
            .map(|(index, word)| self.plain(&format!("{key}[{}]", index + 1), &word));
        let args = args.collect::<Result<Vec<_>, _>>()?;
        self.secrets.extend(secret_arguments(&program, &args));
        Ok(HeadersCommand { program, args })
    }

    /// Reads `oauth`; `offset` is that of the entry's URL, for errors about missing keys.
    fn oauth(&mut self, entry: OAuthEntry, offset: usize) -> Result<OAuth, At<EntryError>> {
        let mut text = |key: &str, written: Option<At<String>>| {
            let text = written
                .map(|written| self.plain(&format!("oauth.{key}"), &written))
                .transpose();
            // An empty variable is not an identity.
            text.map(|text| text.filter(|text| !text.trim().is_empty()))
        };
        let metadata_offset = entry
            .client_metadata_url
            .as_ref()
            .map_or(offset, |at| at.offset);
        let issuer_offset = entry.issuer.as_ref().map_or(offset, |at| at.offset);
        let issuer = text("issuer", entry.issuer)?.map(|issuer| issuer.trim().to_owned());
        let client_id = text("client_id", entry.client_id)?;
        let client_secret = text("client_secret", entry.client_secret)?.map(Secret::new);
        let metadata_url = text("client_metadata_url", entry.client_metadata_url)?;
        if issuer
            .as_deref()
            .is_some_and(|url| !is_url(url, &["https", "http"]) || url.contains(['?', '#']))
        {
            let problem = "must be the issuer's URL, without a query or a fragment";
            return Err(At::new(
                issuer_offset,
                EntryError::Unusable {
                    key: "oauth.issuer".to_owned(),
                    problem,
                },
            ));
        }
        if metadata_url
            .as_deref()
            .is_some_and(|url| !is_url(url, &["https"]))
        {
            let problem = "must begin with `https://` and name a host";
            return Err(At::new(
                metadata_offset,
                EntryError::Unusable {
                    key: "oauth.client_metadata_url".to_owned(),
                    problem,
                },
            ));
        }
        self.secrets.extend(client_secret.clone());
        let private_key = entry
            .private_key_file
            .map(|written| self.private_key(&written))
            .transpose()?;
        let scopes = entry.scopes.unwrap_or_default().into_iter().enumerate();
        let scopes =
            scopes.map(|(index, scope)| self.plain(&format!("oauth.scopes[{index}]"), &scope));
        let scopes = scopes
            .collect::<Result<Vec<_>, _>>()?
            .iter()
            .flat_map(|text| text.split_whitespace())
            .map(str::to_owned)
            .collect();
        let grant = entry.grant.unwrap_or_default();
        if grant == Grant::ClientCredentials
            && (client_id.is_none() || client_secret.is_none() && private_key.is_none())
        {
            let problem = "\"client_credentials\" needs a `client_id`, and a `client_secret` or a `private_key_file`";
            return Err(At::new(
                offset,
                EntryError::Unusable {
                    key: "oauth.grant".to_owned(),
                    problem,
                },
            ));
        }
        let (needs_idp, idp) = (grant == Grant::IdJag, entry.idp);
        let problem = match &idp {
            Some(_) if !needs_idp => Some("is for \"id-jag\" only, and there is an `idp`"),
            None if needs_idp => Some("\"id-jag\" needs an `idp`"),
            Some(_) if client_id.is_none() && metadata_url.is_none() => {
                Some("\"id-jag\" needs a `client_id` or a `client_metadata_url`")
            }
            _ => None,
        };
        if let Some(problem) = problem {
            let key = "oauth.grant".to_owned();
            return Err(At::new(offset, EntryError::Unusable { key, problem }));
        }
        let idp = idp.map(|entry| self.identity_provider(entry)).transpose()?;
        Ok(OAuth {
            grant,
            idp: idp.map(Box::new),
            issuer,
            client_id,
            client_secret,
            client_metadata_url: metadata_url,
            private_key,
            scopes,
            redirect_port: entry.redirect_port,
        })
    }

    fn identity_provider(&mut self, entry: IdpEntry) -> Result<IdentityProvider, At<EntryError>> {
        let offset = entry.issuer.as_ref().map_or(entry.offset, |at| at.offset);
        let mut text = |key: &str, written: Option<At<String>>| {
            let filled = written.map(|written| self.plain(&format!("oauth.idp.{key}"), &written));
            let filled = filled.transpose()?.map(|text| text.trim().to_owned());
            Ok::<_, At<EntryError>>(filled.filter(|text| !text.is_empty()))
        };
        let issuer = text("issuer", entry.issuer)?.unwrap_or_default();
        let client_id = text("client_id", entry.client_id)?.unwrap_or_default();
        let client_secret = text("client_secret", entry.client_secret)?.map(Secret::new);
        let is_issuer = is_url(&issuer, &["https", "http"]) && !issuer.contains(['?', '#']);
        if !is_issuer || client_id.is_empty() {
            let problem =
                "needs the issuer's URL, without a query or a fragment, and a `client_id`";
            let key = "oauth.idp".to_owned();
            return Err(At::new(offset, EntryError::Unusable { key, problem }));
        }
        self.secrets.extend(client_secret.clone());
        let scopes = entry.scopes.iter().enumerate();
        let scopes =
            scopes.map(|(index, scope)| self.plain(&format!("oauth.idp.scopes[{index}]"), scope));
        let scopes = scopes.collect::<Result<Vec<_>, _>>()?;
        let scopes = scopes.iter().flat_map(|text| text.split_whitespace());
        Ok(IdentityProvider {
            issuer,
            client_id,
            client_secret,
            scopes: scopes.map(str::to_owned).collect(),
        })
    }

    fn private_key(&mut self, written: &At<String>) -> Result<PrivateKey, At<EntryError>> {
        let path = PathBuf::from(
            self.path("oauth.private_key_file", written)
                .map(|path| self.absolute(&path))?,
        );
        PrivateKey::read(&path)
            .map_err(|problem| At::new(written.offset, EntryError::PrivateKey { path, problem }))
    }

    fn proxy(&mut self, written: &At<String>) -> Result<Proxy, At<EntryError>> {
        let url = self.plain("proxy", written)?.trim().to_owned();
        if url == "none" {
            return Ok(Proxy::None);
        }
        if !is_url(
            &url,
            &["http", "https", "socks4", "socks4a", "socks5", "socks5h"],
        ) {
            return Err(At::new(written.offset, EntryError::Proxy));
        }
        self.secrets.extend(secret_parameters(&url));
        Ok(Proxy::Url(url))
    }

    fn certificates(&mut self, written: &At<String>) -> Result<Certificates, At<EntryError>> {
        let path = PathBuf::from(
            self.path("ca_file", written)
                .map(|path| self.absolute(&path))?,
        );
        let unusable = |problem| {
            At::new(
                written.offset,
                EntryError::Certificates {
                    path: path.clone(),
                    problem,
                },
            )
        };
        Certificates::read(&path).map_err(unusable)
    }

    /// The values of `env` or `headers`, all of which may be secrets. `problem` checks a name and its value.
    fn values(
        &mut self,
        key: &str,
        texts: Texts,
        problem: impl Fn(&str, &str) -> Option<&'static str>,
    ) -> Result<Secrets, At<EntryError>> {
        let mut values = BTreeMap::new();
        for (name, written) in texts {
            let (key, offset) = (format!("{key}.{name}"), written.offset);
            // A variable that every process inherits, such as the home directory, is not a secret.
            let text = self.fill_in(&key, &written, |variable| !is_inherited(variable))?;
            if let Some(problem) = problem(&name, &text) {
                return Err(At::new(offset, EntryError::Unusable { key, problem }));
            }
            if !is_inherited_alone(&written.value) {
                self.secrets
                    .extend(secret_values(&name, &text, key.starts_with("headers")));
            }
            values.insert(name, text.into());
        }
        Ok(values)
    }

    /// A text that is displayed as it is, unless a variable in it looks like a secret.
    pub(super) fn plain(
        &mut self,
        key: &str,
        written: &At<String>,
    ) -> Result<String, At<EntryError>> {
        self.fill_in(key, written, is_secret_name)
    }

    /// A text in which the value of each variable is a secret.
    pub(super) fn secret(
        &mut self,
        key: &str,
        written: &At<String>,
    ) -> Result<String, At<EntryError>> {
        self.fill_in(key, written, |_| true)
    }

    /// The absolute path of a file that is named relative to the configuration.
    pub(super) fn file(
        &mut self,
        key: &str,
        written: &At<String>,
    ) -> Result<String, At<EntryError>> {
        self.path(key, written).map(|path| self.absolute(&path))
    }

    fn path(&mut self, key: &str, written: &At<String>) -> Result<String, At<EntryError>> {
        let offset = written.offset;
        let text = self.plain(key, written)?;
        if text.trim().is_empty() {
            return Err(At::new(
                offset,
                EntryError::Empty {
                    key: key.to_owned(),
                },
            ));
        }
        if expand::home_relative(&text).is_none() {
            return Ok(text);
        }
        let no_home = || {
            At::new(
                offset,
                EntryError::NoHome {
                    key: key.to_owned(),
                },
            )
        };
        expand::home(&text, self.environment).ok_or_else(no_home)
    }

    fn fill_in(
        &mut self,
        key: &str,
        written: &At<String>,
        is_secret: impl Fn(&str) -> bool,
    ) -> Result<String, At<EntryError>> {
        let at = |fault| At::new(written.offset, fault);
        let expanded = expand::variables(key, &written.value, self.environment).map_err(at)?;
        if expanded.text.contains('\0') {
            return Err(at(EntryError::Unusable {
                key: key.to_owned(),
                problem: "has a NUL character",
            }));
        }
        self.secrets.extend(expanded.secrets);
        let secrets = expanded
            .variables
            .into_iter()
            .filter(|(name, _)| is_secret(name));
        self.secrets
            .extend(secrets.map(|(_, value)| Secret::new(value)));
        Ok(expanded.text)
    }

    fn absolute(&self, path: &str) -> String {
        tidy(&self.directory.join(path))
            .to_string_lossy()
            .into_owned()
    }
}

/// Whether a value is `${NAME}` of a variable that every process inherits.
fn is_inherited_alone(written: &str) -> bool {
    let inner = written
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(is_inherited)
}

/// Whether a value is `${NAME:-}` of a variable that has no value. The program gets no variable then, instead of an empty one.
fn is_unset(written: &str, environment: &Environment) -> bool {
    let inner = written
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix(":-}"));
    inner.is_some_and(|name| {
        !name.contains(['}', ':']) && environment.get(name).is_none_or(str::is_empty)
    })
}

/// Removes the `.` in `directory/./program`.
fn tidy(path: &Path) -> PathBuf {
    path.components().collect()
}

fn kind(written: &At<String>) -> Result<Kind, At<EntryError>> {
    let plain: String = written
        .value
        .chars()
        .filter(|c| !matches!(c, '-' | '_'))
        .collect();
    match plain.to_ascii_lowercase().as_str() {
        "stdio" => Ok(Kind::Stdio),
        "http" | "streamablehttp" => Ok(Kind::Http),
        "sse" => Ok(Kind::Sse),
        _ => {
            let found = format!("`\"{}\"`", written.value);
            Err(At::new(
                written.offset,
                EntryError::value("type", "\"stdio\", \"http\" or \"sse\"", found),
            ))
        }
    }
}

/// Why HTTP cannot carry a header. A token read from a file often ends in a line break.
fn header_problem(name: &str, value: &str) -> Option<&'static str> {
    if HeaderName::from_bytes(name.as_bytes()).is_err() {
        Some("is not a valid name of a header")
    } else if HeaderValue::from_bytes(value.as_bytes()).is_err() {
        Some("has a line break or another control character")
    } else {
        None
    }
}

/// Whether `url` has one of the schemes and a host.
pub(super) fn is_url(url: &str, schemes: &[&str]) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    schemes
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
        && !host.is_empty()
        && !host.starts_with(':')
        && !url.contains(|c: char| c.is_whitespace() || c.is_control())
}
