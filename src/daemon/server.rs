//! The daemon: accepts connections of its user's processes and serves their sessions. It ends after a time without
//! sessions.

mod window;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::carriage::Carried;
use super::control::{self, Order, Ordered, Shown, Status, Switched, Which};
use super::endpoint::{self, Claim, Listener, Stream};
use super::http::Http;
use super::journal::Journal;
use super::message::{self, FromSession, Hello, ToSession};
use super::outgoing::Outgoing;
use super::records::Records;
use super::session::{self, Opened, SharedResources};
use super::session_log::{self, SessionLog, Waiting};
use super::socket_location::SocketLocation;
use super::{Commands, command, election, metrics, relay, watchdog};
use crate::app::{App, Handle};
use crate::approvals::Approvals;
use crate::config::{Environment, Paths};
use crate::events::{self, Event, Events};
use crate::pause::{Pause, Paused};
use crate::proxy::{ProcessMetric, ProcessMetrics};
use crate::shutdown::{self, Tasks};
use crate::ui::servers::{self, ServerState};
use crate::ui::{API, Opening, Window, WindowLink};

/// Time limit for the first message of a process.
const GREETING: Duration = Duration::from_secs(5);

/// How long the daemon stays without sessions, until the first session sets another time.
const IDLE: Duration = Duration::from_secs(5 * 60);

/// Interval between checks whether the daemon is still needed.
const LOOK: Duration = Duration::from_millis(250);

/// Time limit for requests in progress when the daemon ends. Then other processes take the sessions over.
const DRAINING: Duration = Duration::from_secs(3);

/// Time limit for the last log line of a daemon that is stuck.
const LAST_LINE: Duration = Duration::from_millis(250);

/// Time limit for sessions to disconnect from a daemon that ends.
const PARTING: Duration = Duration::from_secs(8);

/// The id of the HTTP clients among the sessions.
const HTTP: &str = "http";

/// The state that all connections of a daemon share.
#[derive(Debug)]
struct Daemon {
    paths: Paths,
    socket: PathBuf,
    began: Instant,
    shared: SharedResources,
    http: Arc<Http>,
    records: Records,
    commands: Arc<dyn Commands>,
    window: Arc<Window>,
    pause: Pause,
    /// The pause that the last event was about.
    paused: Mutex<Option<Paused>>,
    events: Arc<Events>,
    sessions: Mutex<BTreeMap<u64, Served>>,
    /// The relayed sessions that wait for the connection of their bytes.
    relayed: relay::Expected<Stream>,
    /// The number of connections that keep the daemon alive: sessions and commands.
    connections: AtomicU64,
    /// The number of sessions that came from a daemon that ended.
    taken_over: AtomicU64,
    this: Weak<Self>,
    /// The time at which the last session ended.
    last_used: Mutex<Instant>,
    idle: Mutex<Duration>,
    /// Whether the daemon removes the socket when it ends. A socket of a service manager stays.
    owns_socket: bool,
    orders: watch::Sender<Order>,
    tasks: Tasks,
}

/// The parameters of [`run`].
pub(super) struct Start<'a> {
    pub(super) location: SocketLocation,
    pub(super) paths: Paths,
    pub(super) commands: Arc<dyn Commands>,
    pub(super) owns_socket: bool,
    /// The variables for HTTP clients, unless they are those of the first session.
    pub(super) variables: Option<&'a Environment>,
    /// The soft limit of open files that the daemon was started with.
    pub(super) open_files: Option<u64>,
}

/// A session in the list of the daemon.
#[derive(Debug)]
struct Served {
    shown: Shown,
    /// `None` until the session is ready.
    handle: Option<Handle>,
}

/// Runs the daemon on `listener` until it is unused for its idle time, gets a signal, or is stopped or restarted. Returns a
/// message for the next daemon if HTTP clients need one and no session will start it.
///
/// # Errors
/// When the listener or the signals cannot be used.
pub(super) async fn run(mut listener: Listener, start: Start<'_>) -> io::Result<Option<Hello>> {
    let Start {
        location,
        paths,
        commands,
        owns_socket,
        variables,
        open_files,
    } = start;
    let tasks = Tasks::new();
    watchdog::start(&tasks, || {
        // The stuck thread may hold the lock of the log. Without a thread there is no line.
        let line =
            || tracing::error!("the daemon is stuck and ends; its sessions go on in another");
        if shutdown::spawn_thread("last words", line).is_ok() {
            std::thread::sleep(LAST_LINE);
        }
        std::process::abort();
    })?;
    let events = Events::new(events::KEPT);
    let shared = SharedResources::new(events.clone(), &paths.cache_dir);
    let http = Http::new(
        paths.clone(),
        shared.app.clone(),
        events.clone(),
        open_files,
    );
    let http = Arc::new(http);
    let records = Records::new(paths.state_dir.clone(), tasks.clone());
    let daemon = Arc::new_cyclic(|this: &Weak<Daemon>| Daemon {
        pause: Pause::below(&paths.state_dir),
        paused: Mutex::default(),
        paths,
        socket: location.address(),
        began: Instant::now(),
        shared,
        http,
        records,
        events,
        commands,
        window: Window::new(this.clone(), tasks.clone()),
        sessions: Mutex::default(),
        relayed: relay::Expected::default(),
        connections: AtomicU64::new(0),
        taken_over: AtomicU64::new(0),
        this: this.clone(),
        last_used: Mutex::new(Instant::now()),
        idle: Mutex::new(IDLE),
        owns_socket,
        orders: watch::Sender::new(Order::GoOn),
        tasks: tasks.clone(),
    });
    let own = Claim::at(&location);
    tracing::info!(socket = %location.address().display(), "the daemon is there");
    if let Some(variables) = variables {
        daemon.http.offer(std::process::id(), || variables.clone());
    }
    daemon.http.start(daemon.this.clone());
    let ordered = daemon.accept(&mut listener, &location, own).await;
    let next = daemon.for_next();
    drop(listener);
    daemon.window.end();
    daemon.part().await;
    daemon.http.end().await;
    daemon.shared.app.servers.finish().await;
    daemon.records.end().await;
    tasks.finish().await;
    tracing::info!("the daemon ends");
    ordered.map(|()| next)
}

impl Daemon {
    /// Accepts connections until the daemon has to end. Removes the socket, so that no process finds it any more.
    async fn accept(
        self: &Arc<Self>,
        listener: &mut Listener,
        location: &SocketLocation,
        own: Option<Claim>,
    ) -> io::Result<()> {
        let signal = shutdown::signal();
        tokio::pin!(signal);
        let mut orders = self.orders.subscribe();
        let mut look = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                // The order that a signal gives is followed before the signal is polled again, which has completed.
                biased;
                _ = orders.changed() => {
                    // The socket is removed even if another process holds the lock: that one then binds a new socket.
                    let _lock = election::try_lock(location);
                    if self.owns_socket {
                        Claim::release(own, location);
                    }
                    return Ok(());
                }
                heard = &mut signal => {
                    heard?;
                    self.orders.send_replace(Order::Stop);
                }
                _ = look.tick() => {
                    self.look_at_pause();
                    if self.ends_unused(location, own) {
                        return Ok(());
                    }
                }
                accepted = listener.accept() => match accepted {
                    Ok(socket) => self.begin(socket),
                    // For example, this process has no descriptors left. Tries again.
                    Err(error) => {
                        tracing::error!(%error, "a connection cannot be accepted");
                        tokio::time::sleep(LOOK).await;
                    }
                },
            }
        }
    }

    fn begin(self: &Arc<Self>, socket: Stream) {
        let daemon = self.clone();
        self.connections.fetch_add(1, Ordering::Relaxed);
        let stop = self.tasks.stop().clone();
        // An open connection does not keep an ending daemon alive.
        self.tasks.spawn(stop.run_until_cancelled_owned(async move {
            let guard = ConnectionGuard(&daemon);
            if let Err(error) = daemon.meet(socket, guard).await {
                tracing::warn!(%error, "a connection to the daemon ended early");
            }
        }));
    }

    /// Reads the first message of a process and serves it.
    async fn meet(&self, mut socket: Stream, guard: ConnectionGuard<'_>) -> io::Result<()> {
        let checked = endpoint::check_user(&mut socket);
        tokio::time::timeout(GREETING, checked).await??;
        let hello = message::receive_async(&mut socket);
        match tokio::time::timeout(GREETING, hello).await?? {
            Hello::Control => {
                // A control connection does not keep the daemon alive.
                drop(guard);
                control::serve(self, socket).await
            }
            Hello::Command(session, command) => {
                let commands = &*self.commands;
                command::serve(commands, &session, &command, &self.shared, socket).await
            }
            Hello::HttpVariables { process, variables } => {
                self.http
                    .offer(process, || message::environment(&variables));
                Ok(())
            }
            Hello::Bytes(session) => {
                self.relayed.offer(&session, socket);
                Ok(())
            }
            Hello::Session(session) => {
                let bytes = session
                    .relayed
                    .is_some()
                    .then(|| self.relayed.expect(&session.id));
                let process = std::process::id();
                message::send_async(&mut socket, &ToSession::Welcome { process }).await?;
                let (log, lines) = SessionLog::new(session.log.as_deref());
                let served = self.receive(&session, socket, bytes, lines);
                shutdown::with_log_lines(Arc::new(log), served).await
            }
        }
    }

    /// Receives the descriptors of a session, or the connection for its `bytes`, and serves it.
    async fn receive(
        &self,
        session: &message::Session,
        mut socket: Stream,
        bytes: Option<relay::Bytes<'_, Stream>>,
        lines: Waiting,
    ) -> io::Result<()> {
        // Built while the process sends the descriptors.
        let app = session::build(session, &self.shared);
        let received = match bytes {
            None => Carried::passed(&mut socket, GREETING).await,
            Some(bytes) => Carried::relayed(bytes, GREETING).await.map(Some),
        };
        match received {
            Ok(Some(carried)) => self.serve(session, app, carried, socket, lines).await,
            absent => {
                if let Ok(app) = app {
                    app.finish().await;
                }
                absent.map(drop)
            }
        }
    }

    /// Serves a session to its end, and sends the outcome to its process.
    async fn serve(
        &self,
        session: &message::Session,
        app: Result<App, session::Error>,
        carried: Carried,
        socket: Stream,
        lines: Waiting,
    ) -> io::Result<()> {
        *self.idle.lock() = Duration::from_millis(session.idle);
        let entry = SessionEntry::new(self, session);
        let mut orders = self.orders.subscribe();
        let (mut reader, writer) = tokio::io::split(socket);
        let (last_message, last) = oneshot::channel();
        let outgoing = Outgoing::new(writer);
        let sending = outgoing.drive(lines.send(outgoing.clone(), last));
        let mut sending = std::pin::pin!(sending);
        let opened = async {
            let app = app?;
            let client = carried.client(session, &outgoing).await?;
            Ok::<_, session::Error>(Opened::new(app, client, &self.shared))
        };
        let opened = match opened.await {
            Ok(opened) => opened,
            Err(error) => {
                tracing::warn!(%error, "a session is left to its own process");
                // Received in any case: `sending` exists.
                let _ = last_message.send(ToSession::Alone);
                return session_log::finish(sending).await;
            }
        };
        let handle = opened.handle();
        let is_taken_over = session.generation > 0;
        self.taken_over
            .fetch_add(u64::from(is_taken_over), Ordering::Relaxed);
        self.records
            .opened(session, &handle.proxy.unscoped().config());
        self.count(&handle);
        let proxy = handle.proxy.clone();
        entry.set_handle(handle);
        self.http
            .offer(session.process, || session.env().environment);
        let (journal, handover) = (opened.journal(), opened.handover());
        let ended = CancellationToken::new();
        let serving = opened.serve(ended.clone());
        #[cfg(all(unix, debug_assertions))]
        let serving = super::fault::with_fault(session, serving);
        tokio::pin!(serving);
        let last = tokio::select! {
            outcome = &mut serving => end(outcome),
            Err(error) = &mut sending => {
                ended.cancel();
                // The process is gone, and so is the reader of the outcome.
                let _ = serving.await;
                proxy.forget_session();
                return Err(error);
            }
            // The process asks for the end or is gone.
            _ = message::receive_async::<FromSession>(&mut reader) => {
                ended.cancel();
                end(serving.await)
            }
            order = drained(&mut orders, &handover, &journal) => {
                journal.freeze();
                ended.cancel();
                // The outcome does not matter, because the session continues in another process.
                let _ = serving.await;
                if order == Order::Stop { ToSession::Alone } else { ToSession::TakeOver }
            }
        };
        if matches!(last, ToSession::End { .. }) {
            proxy.forget_session();
        }
        let _ = last_message.send(last);
        session_log::finish(sending).await
    }

    /// Adds the metrics of the daemon to those of a session.
    fn count(&self, handle: &Handle) {
        let metrics: Weak<dyn ProcessMetrics> = self.this.clone();
        handle.proxy.metrics.extend(metrics);
    }

    /// The message for the next daemon, after a restart without sessions.
    fn for_next(&self) -> Option<Hello> {
        let is_restart = *self.orders.borrow() == Order::Restart;
        if !is_restart || !self.sessions.lock().is_empty() {
            return None;
        }
        let (process, variables) = self.http.variables()?;
        let variables = message::variables(&variables);
        Some(Hello::HttpVariables { process, variables })
    }

    /// Whether the user has paused mcpzip. If that is new, there is an event: another process may have done it.
    fn look_at_pause(&self) -> Option<Paused> {
        let now = self.pause.state();
        let before = std::mem::replace(&mut *self.paused.lock(), now.clone());
        match (before, &now) {
            (None, Some(paused)) => {
                tracing::info!("mcpzip is paused: no new call reaches a server");
                let since = paused.since;
                self.events.note(|| Event::Paused { since });
            }
            (Some(_), None) => {
                tracing::info!("mcpzip is resumed");
                self.events.note(|| Event::Resumed);
            }
            _ => {}
        }
        now
    }

    /// How long the daemon stays without sessions.
    fn idle(&self) -> Duration {
        *self.idle.lock()
    }

    /// Whether the daemon is unused and has to end. If so, the socket is removed.
    fn ends_unused(&self, location: &SocketLocation, own: Option<Claim>) -> bool {
        if self.connections.load(Ordering::Relaxed) > 0 {
            return false;
        }
        // No process can connect any more: the socket was removed, or another daemon has replaced it.
        if own.is_none() || Claim::at(location) != own {
            return true;
        }
        if self.http.keeps() || self.last_used.lock().elapsed() < self.idle() {
            return false;
        }
        if !self.owns_socket {
            return true;
        }
        match election::try_lock(location) {
            Ok(None) => false,
            // If the lock cannot be opened, other processes cannot start a daemon either.
            lock @ (Ok(Some(_)) | Err(_)) => {
                Claim::release(own, location);
                drop(lock);
                true
            }
        }
    }

    /// The ids and handles of all sessions that are ready, and of the HTTP clients, which are one session here.
    fn handles(&self) -> Vec<(String, Handle)> {
        let http = self.http.handle();
        let http = http.iter().flat_map(Handle::each);
        let http = http.map(|handle| (HTTP.to_owned(), handle));
        let sessions = self.sessions.lock();
        let served = sessions.values();
        served
            .filter_map(|served| Some((served.shown.id.clone(), served.handle.clone()?)))
            .chain(http)
            .collect()
    }

    /// Waits until all sessions have disconnected, at most [`PARTING`].
    async fn part(&self) {
        let start = Instant::now();
        while self.connections.load(Ordering::Relaxed) > 0 && start.elapsed() < PARTING {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl control::Daemon for Daemon {
    fn status(&self) -> Status {
        Status {
            api: API,
            protocol: message::PROTOCOL,
            version: env!("CARGO_PKG_VERSION"),
            process: std::process::id(),
            socket: self.socket.clone(),
            configuration: self.paths.config_file.clone(),
            uptime: self.began.elapsed().as_secs(),
            idle: self.idle().as_secs_f64(),
            http: self.http.state(),
            paused: self.look_at_pause(),
            windows: self.window.count(),
            sessions: self
                .sessions
                .lock()
                .values()
                .map(|served| served.shown.clone())
                .collect(),
        }
    }

    fn switch(&self, is_pause: bool) -> io::Result<Switched> {
        let before = match is_pause {
            true => {
                let before = self.pause.state();
                self.pause.begin()?;
                before
            }
            false => self.pause.end()?,
        };
        let paused = self.look_at_pause();
        Ok(Switched { paused, before })
    }

    fn approvals(&self) -> Approvals {
        Approvals::below(&self.paths.state_dir)
    }

    fn open_window(&self, opening: Opening) -> io::Result<WindowLink> {
        self.opened_window(opening)
    }

    fn close_window(&self) -> usize {
        self.window.close()
    }

    fn servers(&self) -> Vec<ServerState> {
        let handles = self.handles().into_iter();
        servers::states(handles.map(|(session, handle)| (session, handle.proxy)))
    }

    fn stop_server(&self, which: &Which, is_restart: bool) -> Option<usize> {
        let is_meant = |id: &String| which.session.as_ref().is_none_or(|session| session == id);
        let handles = self.handles().into_iter().filter(|(id, _)| is_meant(id));
        let proxies = handles.map(|(_, handle)| handle.proxy);
        servers::stop(proxies, &which.server, is_restart)
    }

    fn reload(&self) -> usize {
        let handles = self.handles();
        handles.iter().for_each(|(_, handle)| handle.reload());
        self.http.reload();
        self.sessions.lock().len()
    }

    fn events(&self) -> &Arc<Events> {
        &self.events
    }

    fn record(&self, ordered: Ordered) {
        tracing::info!(
            order = ordered.order,
            server = ordered.server,
            process = ordered.process,
            "an order of the control interface"
        );
        self.records.ordered(&ordered);
        let Ordered {
            order,
            server,
            session,
            process,
        } = ordered;
        self.events.note(|| Event::Ordered {
            order,
            server,
            session,
            process,
        });
    }

    fn order(&self, order: Order) {
        self.orders.send_replace(order);
    }
}

impl ProcessMetrics for Daemon {
    fn all(&self) -> Vec<ProcessMetric> {
        let servers = control::Daemon::servers(self);
        let sessions = self.sessions.lock().len();
        let windows = self.window.count();
        let taken_over = self.taken_over.load(Ordering::Relaxed);
        let is_paused = self.pause.state().is_some();
        metrics::all(sessions, windows, is_paused, &servers, taken_over)
    }
}

/// Counts a connection until it is dropped.
struct ConnectionGuard<'a>(&'a Daemon);

impl Drop for ConnectionGuard<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Keeps a session in the daemon's list until it is dropped.
struct SessionEntry<'a> {
    daemon: &'a Daemon,
    number: u64,
}

impl<'a> SessionEntry<'a> {
    fn new(daemon: &'a Daemon, session: &message::Session) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let shown = Shown {
            id: session.id.clone(),
            process: session.process,
            directory: session.directory.clone(),
            generation: session.generation,
            since: now.map_or(0, |now| now.as_secs()),
            client: None,
            identity: None,
        };
        daemon.events.note(|| Event::SessionOpened {
            session: session.id.clone(),
            process: session.process,
            directory: session.directory.clone(),
        });
        let served = Served {
            shown,
            handle: None,
        };
        daemon.sessions.lock().insert(number, served);
        Self { daemon, number }
    }

    /// Makes the session reachable for the control interface.
    fn set_handle(&self, handle: Handle) {
        if let Some(served) = self.daemon.sessions.lock().get_mut(&self.number) {
            served.handle = Some(handle);
        }
    }
}

impl Drop for SessionEntry<'_> {
    fn drop(&mut self) {
        *self.daemon.last_used.lock() = Instant::now();
        let served = self.daemon.sessions.lock().remove(&self.number);
        if let Some(Served { shown, handle }) = served {
            let session = shown.id;
            if handle.is_some() {
                self.daemon.records.closed(&session);
            }
            self.daemon.events.note(|| Event::SessionClosed { session });
        }
    }
}

/// Waits for an order to end, then for the open requests of this session, at most [`DRAINING`].
async fn drained(
    orders: &mut watch::Receiver<Order>,
    handover: &CancellationToken,
    journal: &Journal,
) -> Order {
    let order = ordered(orders).await;
    handover.cancel();
    let start = Instant::now();
    while !journal.is_quiet() && start.elapsed() < DRAINING {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    order
}

/// Waits for an order to end.
async fn ordered(orders: &mut watch::Receiver<Order>) -> Order {
    loop {
        let order = *orders.borrow_and_update();
        if order != Order::GoOn {
            return order;
        }
        if orders.changed().await.is_err() {
            // Cannot happen: the sender lives as long as the daemon.
            return Order::Restart;
        }
    }
}

fn end(outcome: io::Result<()>) -> ToSession {
    ToSession::End {
        error: outcome.err().map(|error| error.to_string()),
    }
}
