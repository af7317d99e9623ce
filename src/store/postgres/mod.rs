//! A database of PostgreSQL that replicas share.
//!
//! A [`Store`] has a thread of its own with a runtime, in which all its connections live. Its functions can be awaited in any runtime, and
//! [`Store::wait`] runs one for code that does not await. Each has a time limit. The [`Breaker`] fails at once while PostgreSQL does
//! not answer, so that nothing piles up.

mod backup;
mod breaker;
mod connecting;
mod error;
mod key_check;
mod keys;
mod migrations;
mod notifications;
mod records;
mod replicas;
mod shelves;
mod tidying;
mod url;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use parking_lot::RwLock;
use tokio::runtime::Handle;
use tokio::sync::broadcast;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::shutdown;
pub(crate) use backup::Copied;
use breaker::Breaker;
use connecting::Connector;
pub(crate) use error::StoreError;
pub(crate) use keys::Keys;
pub(crate) use migrations::LATEST;
pub(crate) use notifications::Signal;
use records::Mirrors;
pub(crate) use replicas::{PlacedAt, Replica, ReplicaId};
pub(crate) use url::StoreUrl;

/// The time limit of a connection attempt, of the wait for a connection, and of a statement.
const LIMIT: Duration = Duration::from_secs(2);

/// The time after which a statement is given up here, if PostgreSQL has not ended it at its limit.
const GIVEN_UP: Duration = Duration::from_millis(2500);

/// The most time that code which does not await waits for the store.
const WAIT: Duration = Duration::from_secs(10);

/// The most connections of a replica, in addition to the one that listens.
const CONNECTIONS: usize = 8;

/// Signals that wait for a slow receiver; it reads everything again if it has missed some.
const SIGNALS: usize = 1024;

/// An open store. Clones share its connections.
#[derive(Debug, Clone)]
pub(crate) struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    url: StoreUrl,
    connector: Connector,
    pool: Pool,
    keys: Keys,
    breaker: Breaker,
    runtime: Handle,
    signals: broadcast::Sender<Signal>,
    id: ReplicaId,
    alive: RwLock<Arc<[Replica]>>,
    mirrors: Mirrors,
    /// The schemas before and after the update at the start.
    migrated: OnceLock<(i32, i32)>,
    /// Whether this replica reaches itself at its URL.
    reached: RwLock<Option<bool>>,
    /// Whether this replica has left the others, and gives no more signs of life.
    has_retired: AtomicBool,
    /// Ends the thread with the last clone.
    _stop: DropGuard,
}

impl Store {
    /// Opens the store at `url`, brings its schema up to date and begins to listen. It takes at most a few seconds.
    ///
    /// # Errors
    /// When PostgreSQL cannot be reached, or its schema is for a newer program.
    pub(crate) async fn open(url: &StoreUrl, keys: Keys) -> Result<Self, StoreError> {
        let store = Self::connect(url, keys)?;
        store.check_encoding().await?;
        let (before, after) = store.migrate(None).await?;
        if before != after {
            let (before, after) = (before.version, after.version);
            tracing::info!(
                before,
                after,
                "the schema of the store was brought up to date"
            );
            store.0.migrated.get_or_init(|| (before, after));
        } else if after.version > LATEST {
            let (found, known) = (after.version, LATEST);
            tracing::info!(
                found,
                known,
                "the schema of the store is for a newer mcpzip, and this one can use it"
            );
        }
        store.take_key().await?;
        store.listen();
        store.follow();
        store.tidy();
        Ok(store)
    }

    /// Whether the database can have every text.
    async fn check_encoding(&self) -> Result<(), StoreError> {
        let encoding = "select pg_encoding_to_char(encoding)::text from pg_database where datname = current_database()";
        let row = self.query_opt(encoding, &[]).await?;
        match row.map(|row| row.get::<_, String>(0)) {
            // The second one keeps bytes as they come.
            Some(encoding) if !["UTF8", "SQL_ASCII"].contains(&encoding.as_str()) => {
                Err(StoreError::Encoding(encoding))
            }
            _ => Ok(()),
        }
    }

    /// Prepares connections to the store at `url`, and leaves it as it is.
    ///
    /// # Errors
    /// When the certificates of the URL cannot be read, or the system starts no thread.
    pub(crate) fn connect(url: &StoreUrl, keys: Keys) -> Result<Self, StoreError> {
        let stop = CancellationToken::new();
        let runtime = start_runtime(stop.clone()).map_err(StoreError::Thread)?;
        let connector = Connector::new(url, runtime.clone())?;
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_connect(url.config().clone(), connector.clone(), recycling);
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(LIMIT))
            // TLS and the settings of a session come after the time limit of the connection itself.
            .create_timeout(Some(GIVEN_UP))
            .recycle_timeout(Some(LIMIT))
            .build()
            .expect("a runtime is given");
        Ok(Self(Arc::new(Inner {
            url: url.clone(),
            connector,
            pool,
            keys,
            breaker: Breaker::default(),
            runtime,
            signals: broadcast::channel(SIGNALS).0,
            id: ReplicaId::random(),
            alive: RwLock::new(Arc::new([])),
            mirrors: Mirrors::default(),
            migrated: OnceLock::new(),
            reached: RwLock::default(),
            has_retired: AtomicBool::new(false),
            _stop: stop.drop_guard(),
        })))
    }

    /// The keys that seal secrets in the store.
    #[must_use]
    pub(crate) fn keys(&self) -> &Keys {
        &self.0.keys
    }

    /// The URL, without its password when it is printed.
    #[must_use]
    pub(crate) fn url(&self) -> &StoreUrl {
        &self.0.url
    }

    /// Why the store cannot be used now; `None` if it can be used.
    #[must_use]
    pub(crate) fn fault(&self) -> Option<String> {
        self.0.breaker.fault()
    }

    /// A connection for a transaction. Run its statements within [`Store::limited`].
    ///
    /// # Errors
    /// When PostgreSQL does not answer.
    pub(crate) async fn connection(&self) -> Result<Object, StoreError> {
        self.0.breaker.admit()?;
        match self.0.pool.get().await {
            Ok(connection) => Ok(connection),
            Err(error) => {
                let error = StoreError::from(error);
                self.0.breaker.failed(&error);
                Err(error)
            }
        }
    }

    /// The outcome of statements, within the time that each may take.
    ///
    /// # Errors
    /// When they fail, or PostgreSQL does not answer.
    pub(crate) async fn limited<T>(
        &self,
        statements: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        let outcome = match tokio::time::timeout(GIVEN_UP, statements).await {
            Ok(outcome) => outcome.map_err(StoreError::from),
            Err(_) => Err(StoreError::Slow),
        };
        match &outcome {
            Err(error) if error.is_unavailable() => self.0.breaker.failed(error),
            _ => self.0.breaker.succeeded(),
        }
        outcome
    }

    /// The rows of one statement.
    ///
    /// # Errors
    /// When it fails, or PostgreSQL does not answer.
    pub(crate) async fn query(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        self.run(async |connection| {
            let statement = connection.prepare_cached(statement).await?;
            connection.query(&statement, parameters).await
        })
        .await
    }

    /// The one row of a statement, if there is one.
    ///
    /// # Errors
    /// When it fails, or PostgreSQL does not answer.
    pub(crate) async fn query_opt(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, StoreError> {
        let rows = self.query(statement, parameters).await?;
        Ok(rows.into_iter().next())
    }

    /// The number of rows that a statement has changed.
    ///
    /// # Errors
    /// When it fails, or PostgreSQL does not answer.
    pub(crate) async fn execute(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, StoreError> {
        self.run(async |connection| {
            let statement = connection.prepare_cached(statement).await?;
            connection.execute(&statement, parameters).await
        })
        .await
    }

    async fn run<T>(
        &self,
        work: impl AsyncFnOnce(&Object) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        let connection = self.connection().await?;
        let outcome = self.limited(work(&connection)).await;
        if matches!(outcome, Err(StoreError::Slow)) {
            // Its statement may still run, so that the next one would wait for it.
            drop(Object::take(connection));
        }
        outcome
    }

    /// Runs `work` in the store's own runtime and waits for it, on a thread that may block.
    ///
    /// # Errors
    /// When the work fails, or takes too long.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.spawn(async move {
            // The one who asked may have given up.
            let _ = sender.send(work.await);
        });
        receiver.recv_timeout(WAIT).unwrap_or(Err(StoreError::Slow))
    }

    /// Starts a task in the store's own runtime. It ends with the store, so it must hold no clone of it for longer than a moment.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.runtime.spawn(task);
    }
}

/// Starts the thread that drives the connections until `stop`.
fn start_runtime(stop: CancellationToken) -> std::io::Result<Handle> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    shutdown::spawn_thread("store", move || runtime.block_on(stop.cancelled()))?;
    Ok(handle)
}
