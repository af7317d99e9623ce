//! `mcpzip store`: the database that replicas share. Other commands open it here, too.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::json;

use super::diagnostics::Exit;
use super::output::Output;
use crate::config::{Config, Environment, Paths, StoreOptions};
use crate::telemetry;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Update the store's schema to this program's version; `serve --http` does this when it starts
    #[command(after_help = "Examples:
  mcpzip store migrate
  mcpzip store migrate --to 0

A lower number restores that earlier schema, and removes the data that it cannot hold: 0 empties the store.")]
    Migrate {
        /// Number of the schema [default: the latest of this program]
        #[arg(long, value_name = "NUMBER")]
        to: Option<i32>,
    },
    /// Check that the store can be used, and show what is in it
    #[command(
        after_help = "Exit codes: 0 it can be used, 3 it is not configured, 4 it does not answer.

Examples:
  mcpzip store check
  mcpzip store check --json"
    )]
    Check,
    /// Write a copy of tokens, people, keys, logins, approved tools and statistics; secrets in it stay encrypted
    #[command(after_help = "Examples:
  mcpzip store export store.jsonl
  mcpzip store export - | gpg -e -r backup > store.gpg

Audit logs are not in it; `pg_dump` copies all tables.")]
    Export {
        /// File to write, `-` for stdout
        file: PathBuf,
    },
    /// Put a copy of `store export`, or the files of this machine, into the store
    #[command(after_help = "Examples:
  mcpzip store import store.jsonl
  mcpzip store import --from-files

`--from-files` takes over the tokens, people and keys of the state directory; people log in again at servers.")]
    Import {
        /// File to read
        #[arg(required_unless_present = "from_files")]
        file: Option<PathBuf>,
        /// Take over the tokens, people and keys of the state directory
        #[arg(long, conflicts_with_all = ["file", "replace"])]
        from_files: bool,
        /// Remove what the store has
        #[arg(long)]
        replace: bool,
    },
}

/// How a command uses the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// It serves clients, and waits a while for the store.
    Serve,
    /// It reads and changes it.
    Use,
    /// It works without it, too, and says what is wrong with it.
    Look,
}

/// The variables of a command, with the store that its configuration names.
///
/// # Errors
/// When the store cannot be used, unless the command only looks.
pub(super) async fn attach(
    paths: &Paths,
    environment: Environment,
    opening: Opening,
) -> Result<Environment, Exit> {
    let config = match Config::load_or_default(paths, &environment) {
        Ok(config) => config,
        // The command says what is wrong with it.
        Err(_) => return Ok(environment),
    };
    telemetry::hide(&config.masker);
    let options = match config.store {
        Ok(None) => return Ok(environment),
        Ok(Some(options)) => options,
        Err(_) if opening == Opening::Look => return Ok(environment),
        Err(fault) => return Err(Exit::of_setting(&fault)),
    };
    match open(&options, opening).await {
        Ok(store) => Ok(environment.with_store(store)),
        Err(_) if opening == Opening::Look => Ok(environment),
        Err(exit) => Err(exit),
    }
}

/// A look at the store, which changes nothing.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// The gateways with a fault: their URLs, and the faults.
    pub(super) faulty: Vec<(String, &'static str)>,
    /// The servers that run at one gateway for all: their names, the URLs of the gateways, and the number of processes.
    pub(super) placed: Vec<(String, String, i64)>,
}

/// Looks at the store of the configuration, or says why it cannot be used. `None` if there is none.
pub(super) async fn look(paths: &Paths, environment: &Environment) -> Option<Result<Look, String>> {
    // Another check says what is wrong with the configuration.
    let config = Config::load_or_default(paths, environment).ok()?;
    let options = match config.store {
        Ok(options) => options?,
        Err(fault) => return Some(Err(fault.to_string())),
    };
    let looked = kind::look(&options).await;
    Some(looked.map_err(|exit| format!("{exit}")))
}

#[cfg(not(feature = "postgres"))]
mod kind {
    use super::*;
    use crate::store::Records;

    fn absent() -> Exit {
        Exit::of_setting(
            &"this mcpzip was built without the feature `postgres`, so it has no `store`",
        )
    }

    pub(super) async fn open(_: &StoreOptions, _: Opening) -> Result<Arc<dyn Records>, Exit> {
        Err(absent())
    }

    pub(super) async fn look(_: &StoreOptions) -> Result<Look, Exit> {
        Err(absent())
    }

    pub(in crate::cli) async fn run(
        _: &Arguments,
        _: &Paths,
        _: &Environment,
        _: &Output,
    ) -> Result<(), Exit> {
        Err(absent())
    }
}

#[cfg(feature = "postgres")]
mod kind {
    use std::path::Path;

    use super::*;
    use crate::config::StoreKey;
    use crate::files;
    use crate::identity::authorization::KeyFile;
    use crate::identity::{TokenFile, check_records};
    use crate::secret::{Masker, Secret};
    use crate::store::{Copied, Keys, LATEST, Records, State, Store, StoreError, StoreUrl};

    /// How long `serve` waits for a store that does not answer.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// The time between two attempts.
    const AGAIN: Duration = Duration::from_millis(500);

    /// The largest file of a key, and of a copy, in bytes.
    const LARGEST_KEY: u64 = 4096;
    const LARGEST_COPY: u64 = 1024 * 1024 * 1024;

    /// The exit of a store that cannot be used.
    fn exit(error: &StoreError) -> Exit {
        match error {
            StoreError::Url(_) | StoreError::Key => Exit::of_setting(error),
            error if error.is_unavailable() => {
                Exit::unavailable(format!("the store cannot be used: {error}"))
            }
            error => Exit::failed(error.to_string()),
        }
    }

    fn key(key: &StoreKey) -> Result<Secret<String>, Exit> {
        match key {
            StoreKey::Text(text) => Ok(text.clone()),
            StoreKey::File(path) => match files::read_regular(path, LARGEST_KEY) {
                Ok(bytes) => Ok(Secret::new(String::from_utf8_lossy(&bytes).into_owned())),
                Err(error) => Err(Exit::of_setting(&format!(
                    "the key of the store cannot be read from `{}`: {error}",
                    path.display()
                ))),
            },
        }
    }

    fn keys(options: &StoreOptions) -> Result<Keys, Exit> {
        let current = options.key.as_ref().ok_or_else(|| {
            Exit::of_setting(
                &"`store` needs `MCPZIP_STORE_KEY` or `MCPZIP_STORE_KEY_FILE`: the key that encrypts secrets in it, 32 bytes in base64url",
            )
        })?;
        let previous = options.previous.as_ref().map(key).transpose()?;
        Keys::parse(&key(current)?, previous.as_ref())
            .map_err(|fault| Exit::of_setting(&format!("the key of the store is wrong: {fault}")))
    }

    /// Prepares connections.
    fn connect(options: &StoreOptions) -> Result<(StoreUrl, Keys), Exit> {
        let url = StoreUrl::parse(options.url.expose());
        let url = url.map_err(|fault| Exit::of_setting(&fault))?;
        telemetry::hide(&Masker::new(url.secrets()));
        Ok((url, keys(options)?))
    }

    pub(super) async fn open(
        options: &StoreOptions,
        opening: Opening,
    ) -> Result<Arc<dyn Records>, Exit> {
        let (url, keys) = connect(options)?;
        if opening == Opening::Look {
            let store = Store::connect(&url, keys).map_err(|error| exit(&error))?;
            return Ok(Arc::new(store));
        }
        let until = Instant::now() + PATIENCE;
        loop {
            match Store::open(&url, keys.clone()).await {
                Ok(store) => {
                    tracing::info!(%url, replica = store.id().as_str(), "the store is open");
                    return Ok(Arc::new(store));
                }
                Err(error)
                    if opening == Opening::Serve
                        && error.is_unavailable()
                        && Instant::now() < until =>
                {
                    tracing::warn!(%error, "the store does not answer yet");
                    tokio::time::sleep(AGAIN).await;
                }
                Err(error) => return Err(exit(&error)),
            }
        }
    }

    /// Looks at the store, and changes nothing.
    pub(super) async fn look(options: &StoreOptions) -> Result<Look, Exit> {
        let (url, keys) = connect(options)?;
        let looked = async {
            let store = Store::connect(&url, keys)?;
            let schema = store.schema().await?;
            if schema.oldest > LATEST {
                return Err(StoreError::Newer {
                    found: schema.version,
                    oldest: schema.oldest,
                    known: LATEST,
                });
            }
            if schema.version == 0 {
                return Ok(Look::default());
            }
            store.check_key().await?;
            let replicas = store.replicas().await?;
            let faulty = replicas.iter();
            let faulty = faulty.filter_map(|one| Some((one.peer_url.clone(), one.fault()?)));
            let placed = store.placed().await?.into_iter();
            let placed = placed.map(|one| (one.server, one.peer_url, one.processes));
            Ok(Look {
                faulty: faulty.collect(),
                placed: placed.collect(),
            })
        };
        looked.await.map_err(|error| exit(&error))
    }

    pub(in crate::cli) async fn run(
        arguments: &Arguments,
        paths: &Paths,
        environment: &Environment,
        output: &Output,
    ) -> Result<(), Exit> {
        let config = Config::load_or_default(paths, environment)?;
        telemetry::hide(&config.masker);
        let options = config.store.map_err(|fault| Exit::of_setting(&fault))?;
        let options = options.ok_or_else(|| {
            Exit::of_setting(
                &"there is no store: `store` of the configuration or `MCPZIP_STORE` is the URL of a PostgreSQL database",
            )
        })?;
        let (url, keys) = connect(&options)?;
        let store = Store::connect(&url, keys).map_err(|error| exit(&error))?;
        let done = match &arguments.command {
            Command::Migrate { to } => migrate(&store, *to, output).await,
            Command::Check => check(&store, output).await,
            Command::Export { file } => return export(&store, file, output).await,
            Command::Import {
                file,
                from_files,
                replace,
            } => {
                let ready = async {
                    store.migrate(None).await?;
                    store.take_key().await
                };
                ready.await.map_err(|error| exit(&error))?;
                match file {
                    Some(file) if !from_files => {
                        return import(&store, file, *replace, output).await;
                    }
                    _ => return take_over(store, paths, output).await,
                }
            }
        };
        done.map_err(|error| exit(&error))
    }

    async fn migrate(store: &Store, to: Option<i32>, output: &Output) -> Result<(), StoreError> {
        let live = match to {
            Some(to) if store.schema().await?.version > to => store.replicas().await?.len(),
            _ => 0,
        };
        let (before, after) = store.migrate(to).await?;
        let (before, after) = (before.version, after.version);
        if after > 0 {
            store.take_key().await?;
        }
        if output.is_json() {
            output.json(
                &json!({ "before": before, "after": after, "known": LATEST, "gateways": live }),
            );
        } else if before == after {
            output.line(format!("the store has schema {after} already"));
        } else {
            output.line(format!(
                "the store had schema {before}, and has {after} now"
            ));
        }
        if live > 0 {
            output.note(&format!(
                "{live} gateways use the store: end those whose version needs a later schema"
            ));
        }
        Ok(())
    }

    async fn check(store: &Store, output: &Output) -> Result<(), StoreError> {
        let begun = Instant::now();
        let schema = store.schema().await?;
        let took = begun.elapsed();
        if schema.oldest > LATEST {
            return Err(StoreError::Newer {
                found: schema.version,
                oldest: schema.oldest,
                known: LATEST,
            });
        }
        let (contents, replicas) = match schema.version {
            0 => (None, Arc::default()),
            _ => {
                store.check_key().await?;
                (Some(store.contents().await?), store.replicas().await?)
            }
        };
        if output.is_json() {
            let replicas = replicas.iter().map(|one| {
                json!({ "id": one.id.as_str(), "peer_url": one.peer_url, "version": one.build, "seen_seconds_ago": one.age, "reaches_itself": one.reached })
            });
            output.json(&json!({
                "store": store.url().to_string(),
                "schema": schema.version,
                "known": LATEST,
                "answer_ms": took.as_secs_f64() * 1000.0,
                "contents": contents,
                "replicas": replicas.collect::<Vec<_>>(),
            }));
            return Ok(());
        }
        output.row("store", store.url().to_string());
        output.row(
            "answers",
            format!("in {:.1} ms", took.as_secs_f64() * 1000.0),
        );
        let schema = match schema.version {
            0 => {
                "none yet: `mcpzip store migrate`, or the first `serve --http`, makes it".to_owned()
            }
            version if version == LATEST => format!("{version}"),
            version => format!("{version}; this program knows {LATEST}"),
        };
        output.row("schema", schema);
        if let Some(contents) = contents {
            for (kind, count) in &contents.records {
                output.row(kind, format!("{count} records"));
            }
            output.row("logins", contents.logins.to_string());
            match contents.sealed_with_previous_key {
                0 => {}
                count => output.row(
                    "previous key",
                    format!(
                        "{count} keys and logins still need it: leave MCPZIP_STORE_KEY_PREVIOUS set"
                    ),
                ),
            }
            match contents.sealed_with_unknown_key {
                0 => {}
                count => output.row(
                    "unknown key",
                    format!("{count} keys and logins were sealed with a key that is not set here"),
                ),
            }
            for (kind, count) in &contents.kept {
                output.row(kind, format!("{count} kept for a time"));
            }
            output.row("statistics", format!("{} days", contents.usage_days));
        }
        for one in replicas.iter() {
            let seen = format!(
                "{} at {}, seen {:.0} s ago",
                one.build, one.peer_url, one.age
            );
            let fault = one.fault().map(|fault| format!("; {fault}"));
            let fault = fault.unwrap_or_default();
            output.row("replica", format!("{} {seen}{fault}", one.id.as_str()));
        }
        Ok(())
    }

    async fn export(store: &Store, file: &Path, output: &Output) -> Result<(), Exit> {
        let all = store.export().await.map_err(|error| exit(&error))?;
        let lines = all.iter().map(serde_json::to_string);
        let lines: Result<Vec<String>, _> = lines.collect();
        let mut text = lines
            .map_err(|error| Exit::failed(error.to_string()))?
            .join("\n");
        let count = all.len() - 2;
        if file == Path::new("-") {
            output.verbatim(&text);
            return Ok(());
        }
        text.push('\n');
        if file.exists() && !file.is_file() {
            let shown = file.display();
            return Err(Exit::failed(format!(
                "`{shown}` is not a regular file; `-` writes to stdout"
            )));
        }
        // It may be in a directory of others.
        files::replace_in_place_for_owner(file, text.as_bytes()).map_err(|error| {
            Exit::failed(format!("`{}` cannot be written: {error}", file.display()))
        })?;
        report(output, "exported", count, &file.display().to_string());
        Ok(())
    }

    async fn import(
        store: &Store,
        file: &Path,
        replaces: bool,
        output: &Output,
    ) -> Result<(), Exit> {
        let unreadable = |problem: String| {
            Exit::failed(format!("`{}` cannot be read: {problem}", file.display()))
        };
        let bytes = files::read_regular(file, LARGEST_COPY);
        let bytes = bytes.map_err(|error| unreadable(error.to_string()))?;
        let lines = bytes.split(|byte| *byte == b'\n').enumerate();
        let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
        let lines = lines.map(|(index, line)| {
            let line = serde_json::from_slice::<Copied>(line);
            line.map_err(|_| unreadable(format!("line {} is wrong", index + 1)))
        });
        let copy = lines.collect::<Result<Vec<_>, _>>()?;
        let count = store.import(copy, replaces, check_records).await;
        let count = count.map_err(|error| exit(&error))?;
        report(output, "imported", count, &file.display().to_string());
        Ok(())
    }

    /// Takes over the files of this machine.
    async fn take_over(store: Store, paths: &Paths, output: &Output) -> Result<(), Exit> {
        let shared: Arc<dyn Records> = Arc::new(store);
        let files = TokenFile::below(&paths.state_dir);
        let state = State {
            directory: paths.state_dir.clone(),
            shared: Some(shared),
        };
        let keys = KeyFile::next_to(&TokenFile::of(&state)).take_over(&KeyFile::next_to(&files));
        keys.map_err(|fault| Exit::failed(fault.to_string()))?;
        let taken = TokenFile::of(&state).take_over(&files);
        let count = taken.map_err(|error| Exit::failed(error.to_string()))?;
        report(
            output,
            "imported",
            count,
            &paths.state_dir.display().to_string(),
        );
        Ok(())
    }

    fn report(output: &Output, done: &str, count: usize, place: &str) {
        match output.is_json() {
            true => output.json(&json!({ done: count, "file": place })),
            false => output.line(format!("{count} records {done}: `{place}`")),
        }
    }
}

use kind::open;
pub(super) use kind::run;
