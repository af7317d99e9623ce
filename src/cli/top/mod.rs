//! `mcpzip top`: the servers, calls, approvals and log of the running daemon in the terminal, live.
//!
//! It uses the control interface only. One thread receives events; the main thread reads the keys and draws the screen.

mod state;
mod view;

use std::io::IsTerminal as _;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use clap::Args;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::diagnostics::Exit;
use super::output::interrupted;
use crate::app::LOGS;
use crate::config::{Environment, Paths};
use crate::daemon::{self, Answer};
use crate::shutdown::{interruptible, signal, spawn_thread};
use crate::telemetry::tail;
use state::{Approval, Approvals, Focus, Servers, State, Status};

/// How long the screen stays without a key or an event.
const TICK: Duration = Duration::from_millis(200);

/// Interval between two readings of the log, and of what no event reports.
const LOOK: Duration = Duration::from_secs(1);

/// Interval between two attempts to find a daemon.
const RETRY: Duration = Duration::from_secs(1);

/// Number of lines of the log that are read.
const LINES: usize = 100;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip top
  mcpzip top --config ./team.json

Keys: Tab changes the list, arrows choose. For a server: r restarts it, s stops it. For an approval: Enter shows the question, then a allows the call and d denies it. p pauses and resumes mcpzip, q ends.")]
pub(super) struct Arguments {}

/// The daemon, as this command reaches it.
struct Link<'a> {
    paths: &'a Paths,
    environment: &'a Environment,
}

pub(super) fn run(paths: &Paths, environment: &Environment) -> Result<(), Exit> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Exit::failed(
            "`mcpzip top` needs a terminal; `mcpzip daemon status` and `mcpzip daemon events` print the same",
        ));
    }
    let link = Link { paths, environment };
    let events = link.listen()?;
    // From here on a signal does not end the process before the terminal is restored.
    drop(signal());
    let mut terminal = ratatui::try_init()?;
    let outcome = interruptible(|| link.show(&mut terminal, &events), end);
    ratatui::restore();
    outcome
}

/// Ends the process, because a signal came.
fn end() -> ! {
    ratatui::restore();
    let _ = execute!(std::io::stdout(), Show);
    interrupted()
}

impl Link<'_> {
    /// Passes events on from a thread, which looks for the next daemon when one ends. `None` stands for such an end.
    fn listen(&self) -> Result<Receiver<Option<Value>>, Exit> {
        let (sender, receiver) = channel();
        let (paths, environment) = (self.paths.clone(), self.environment.clone());
        spawn_thread("events", move || listen(&paths, &environment, &sender))?;
        Ok(receiver)
    }

    fn show(
        &self,
        terminal: &mut ratatui::DefaultTerminal,
        events: &Receiver<Option<Value>>,
    ) -> Result<(), Exit> {
        let mut state = State::default();
        let mut looked = None;
        loop {
            for event in events.try_iter() {
                state.hear(event);
            }
            let is_due = looked.is_none_or(|at: Instant| at.elapsed() >= LOOK);
            if is_due || state.is_old {
                looked = Some(Instant::now());
                self.look(&mut state);
            }
            terminal.draw(|frame| view::draw(&state, frame))?;
            if event::poll(TICK)?
                && let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
                && self.press(key, &mut state)
            {
                return Ok(());
            }
        }
    }

    /// Reads what the screen shows.
    fn look(&self, state: &mut State) {
        state.is_old = false;
        state.status = self
            .ask::<Status>("daemon.status", &json!({}))
            .ok()
            .flatten();
        let servers = self.ask::<Servers>("servers.list", &json!({}));
        state.set_servers(servers.ok().flatten().unwrap_or_default());
        let approvals = self.ask::<Approvals>("approvals.list", &json!({}));
        state.set_approvals(approvals.ok().flatten().unwrap_or_default());
        let name = state
            .server()
            .map_or("mcpzip", |server| &server.server)
            .to_owned();
        let path = self.paths.state_dir.join(LOGS).join(format!("{name}.log"));
        state.log = tail(&path, LINES).unwrap_or_else(|error| vec![error.to_string()]);
        state.log_of = name;
    }

    /// Asks the daemon. `None` if there is none.
    fn ask<T: DeserializeOwned>(&self, method: &str, params: &Value) -> anyhow::Result<Option<T>> {
        match daemon::ask(self.paths, self.environment, method, &params.to_string())? {
            Answer::None => Ok(None),
            Answer::Result(text) => Ok(Some(serde_json::from_str(&text)?)),
        }
    }

    /// Gives an order, and shows how it went.
    fn order(&self, method: &str, params: &Value, done: &str, state: &mut State) {
        let asked = self.ask::<Value>(method, params);
        state.message = match asked {
            Ok(Some(_)) => done.to_owned(),
            Ok(None) => "no daemon runs any more".to_owned(),
            Err(error) => error.to_string(),
        };
        state.is_old = true;
    }

    /// Follows a key. Returns whether it ends the command.
    fn press(&self, key: KeyEvent, state: &mut State) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => return true,
            KeyCode::Char('q') => return true,
            KeyCode::Esc if state.question().is_none() => return true,
            KeyCode::Esc => state.close_question(),
            KeyCode::Tab | KeyCode::BackTab => state.change_focus(),
            KeyCode::Up | KeyCode::Char('k') => state.choose(-1),
            KeyCode::Down | KeyCode::Char('j') => state.choose(1),
            KeyCode::Enter => state.open_question(),
            KeyCode::Char(c) => self.act(c, state),
            _ => {}
        }
        false
    }

    fn act(&self, key: char, state: &mut State) {
        let server = state.server().map(|server| server.server.clone());
        match (key, state.focus, server) {
            ('p', ..) => {
                let is_paused = state.paused().is_some();
                let (method, done) = match is_paused {
                    true => ("daemon.resume", "resumed"),
                    false => ("daemon.pause", "paused: no new call reaches a server"),
                };
                self.order(method, &json!({}), done, state);
            }
            ('r', Focus::Servers, Some(name)) => {
                let done = format!("{name} is restarted");
                self.order("servers.restart", &json!({ "server": name }), &done, state);
            }
            ('s', Focus::Servers, Some(name)) => {
                let done = format!("{name} is stopped; its next call starts it");
                self.order("servers.stop", &json!({ "server": name }), &done, state);
            }
            ('a' | 'd', Focus::Approvals, _) => {
                // A person decides on what is shown whole.
                let Some(Approval { id, .. }) = state.question() else {
                    state.open_question();
                    return;
                };
                let id = id.clone();
                let (method, done) = match key {
                    'a' => ("approvals.allow", "allowed, once"),
                    _ => ("approvals.deny", "denied"),
                };
                self.order(method, &json!({ "id": id }), done, state);
                state.close_question();
            }
            _ => {}
        }
    }
}

/// Sends the events of one daemon after the other, until the receiver is gone.
fn listen(paths: &Paths, environment: &Environment, sender: &Sender<Option<Value>>) {
    loop {
        let heard = |event: &str| {
            let event = serde_json::from_str(event).ok();
            event.is_none_or(|event| sender.send(Some(event)).is_ok())
        };
        // Without a daemon the screen says so; an error is one of a daemon that ends.
        let _ = daemon::listen(paths, environment, None, heard);
        if sender.send(None).is_err() {
            return;
        }
        std::thread::sleep(RETRY);
    }
}
