//! The item on the bus of the session. The panel draws it, and tells what a person does with it.

use std::time::Duration;

use ksni::menu::StandardItem;
use ksni::{Error, Icon, MenuItem, Status, ToolTip, Tray, TrayMethods as _};
use serde_json::Value;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender, channel, unbounded_channel};

use super::icon;
use super::state::State;
use crate::cli::browser::Browser;
use crate::cli::diagnostics::Exit;
use crate::cli::output::Output;
use crate::cli::{PathFlags, daemon as commands, ui};
use crate::config::{Environment, Paths};
use crate::daemon;
use crate::shutdown::{Tasks, signal, spawn_thread};

/// Interval between two readings of what no event reports.
const LOOK: Duration = Duration::from_secs(3);

/// Interval between two attempts to find a daemon.
const RETRY: Duration = Duration::from_secs(1);

/// An order that a person gives by the item.
#[derive(Debug)]
enum Order {
    Open,
    Pause,
    Resume,
    Quit,
}

#[derive(Debug)]
struct Item {
    state: State,
    orders: UnboundedSender<Order>,
}

/// Shows the item until a person ends it, a signal comes, or the session of the desktop ends.
pub(in crate::cli) async fn run(
    flags: &PathFlags,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let (sender, mut orders) = unbounded_channel();
    let tasks = Tasks::new();
    let mut shown = read(&tasks, paths, environment).await;
    let item = Item {
        state: shown.clone(),
        orders: sender,
    };
    let handle = item.spawn().await.map_err(|error| unshown(&error))?;
    output.note("the item is in the panel; its menu or Ctrl-C ends it");
    let mut events = listen(paths, environment)?;
    let mut look = tokio::time::interval(LOOK);
    let mut signal = std::pin::pin!(signal());
    let mut fault = None;
    loop {
        tokio::select! {
            Some(order) = orders.recv() => {
                let done = match order {
                    Order::Quit => break,
                    Order::Open => open(flags, paths, environment).await,
                    Order::Pause => commands::switched(true, paths, environment, output).await.map(drop),
                    Order::Resume => commands::switched(false, paths, environment, output).await.map(drop),
                };
                fault = done.err().map(|error| error.to_string());
            }
            Some(()) = events.recv() => {}
            _ = look.tick() => {}
            heard = &mut signal => {
                heard?;
                break;
            }
        }
        let now = State {
            fault: fault.clone(),
            ..read(&tasks, paths, environment).await
        };
        if handle.is_closed() {
            return Err(Exit::failed("the session of the desktop has ended"));
        }
        if now != shown {
            shown = now.clone();
            handle.update(|item| item.state = now).await;
        }
    }
    handle.shutdown().await;
    Ok(())
}

async fn read(tasks: &Tasks, paths: &Paths, environment: &Environment) -> State {
    let (paths, environment) = (paths.clone(), environment.clone());
    let state = tasks.spawn_blocking(move || State::read(&paths, &environment));
    // A reading does not panic.
    state.await.unwrap_or_default()
}

/// Opens the window, by a link that works once.
async fn open(flags: &PathFlags, paths: &Paths, environment: &Environment) -> Result<(), Exit> {
    let opened = ui::opened(flags, paths, environment).await?;
    match Browser::of(environment).open(&opened.url) {
        true => Ok(()),
        false => Err(Exit::failed(
            "no browser could be started; mcpzip ui prints the link",
        )),
    }
}

/// Says when something has happened, except calls: from a thread, which looks for the next daemon when one ends. Events that come
/// together are one.
fn listen(paths: &Paths, environment: &Environment) -> Result<Receiver<()>, Exit> {
    let (paths, environment) = (paths.clone(), environment.clone());
    let (sender, receiver) = channel(1);
    spawn_thread("events", move || {
        loop {
            // An error is one of a daemon that ends.
            let _ = daemon::listen(&paths, &environment, None, |event| {
                is_of_call(event) || tell(&sender)
            });
            if !tell(&sender) {
                return;
            }
            std::thread::sleep(RETRY);
        }
    })?;
    Ok(receiver)
}

/// Returns whether there is still a receiver.
fn tell(sender: &Sender<()>) -> bool {
    !matches!(sender.try_send(()), Err(TrySendError::Closed(())))
}

fn is_of_call(event: &str) -> bool {
    let event: Value = serde_json::from_str(event).unwrap_or_default();
    matches!(event["kind"].as_str(), Some("call_began" | "call_ended"))
}

fn unshown(error: &Error) -> Exit {
    Exit::failed(match error {
        Error::Dbus(error) => format!(
            "the bus of the desktop's session cannot be used ({error}): run this in a session of a desktop"
        ),
        error => format!(
            "no panel of this desktop shows items ({error}): add the plug-in for the status tray to the panel (XFCE), or the extension AppIndicator (GNOME)"
        ),
    })
}

impl Item {
    fn lines(&self) -> Vec<String> {
        let State {
            is_paused, fault, ..
        } = &self.state;
        let paused = is_paused.then(|| "Paused: no new call reaches a server".to_owned());
        let line = [self.state.line()].into_iter();
        line.chain(paused).chain(fault.clone()).collect()
    }

    fn order(&self, order: Order) {
        // The receiver is gone when the item ends.
        let _ = self.orders.send(order);
    }
}

impl Tray for Item {
    fn id(&self) -> String {
        "mcpzip".to_owned()
    }

    fn title(&self) -> String {
        "mcpzip".to_owned()
    }

    fn status(&self) -> Status {
        match self.state.waiting {
            0 => Status::Active,
            _ => Status::NeedsAttention,
        }
    }

    fn icon_pixmap(&self) -> Vec<Icon> {
        icon::drawn(&self.state)
    }

    fn attention_icon_pixmap(&self) -> Vec<Icon> {
        self.icon_pixmap()
    }

    fn tool_tip(&self) -> ToolTip {
        let waiting = self.state.waiting_line();
        ToolTip {
            title: "mcpzip".to_owned(),
            description: self
                .lines()
                .into_iter()
                .chain(waiting)
                .collect::<Vec<_>>()
                .join("\n"),
            ..ToolTip::default()
        }
    }

    fn activate(&mut self, _x: i32, _y: i32) {
        self.order(Order::Open);
    }

    fn menu(&self) -> Vec<MenuItem<Self>> {
        let (switch, order): (_, fn() -> Order) = match self.state.is_paused {
            true => ("Resume", || Order::Resume),
            false => ("Pause", || Order::Pause),
        };
        let said = self.lines().into_iter().map(|line| said(&line));
        let waiting = self.state.waiting_line();
        let waiting = waiting.map(|line| does(&line, || Order::Open));
        said.chain([MenuItem::Separator])
            .chain(waiting)
            .chain([
                does("Open the window", || Order::Open),
                does(switch, order),
                MenuItem::Separator,
                does("Quit the tray", || Order::Quit),
            ])
            .collect()
    }
}

/// A line of the menu that only says something. An underscore would mark a key.
fn said(line: &str) -> MenuItem<Item> {
    StandardItem {
        label: line.replace('_', "__"),
        enabled: false,
        ..StandardItem::default()
    }
    .into()
}

fn does(label: &str, order: fn() -> Order) -> MenuItem<Item> {
    StandardItem {
        label: label.to_owned(),
        activate: Box::new(move |item: &mut Item| item.order(order())),
        ..StandardItem::default()
    }
    .into()
}
