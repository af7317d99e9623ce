//! Commands that run in the daemon and use the servers that sessions share. Their own process prints the output.

use std::io;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::endpoint::{self, Stream};
use super::message::{self, Hello, Session};
use super::session::SharedResources;
use super::socket_location::SocketLocation;
use super::{Commands, Ran, Request};
use crate::app::{App, SessionId};
use crate::config::Paths;

/// A message from the daemon to the process of a command.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CommandMessage {
    /// The command begins, and may have effects from now on.
    Begun,
    /// Output to print, in the form of the layer above.
    Printed(String),
    /// The command has ended.
    Ended,
    /// The command has done nothing, and its process must run it.
    Alone,
}

/// Runs `command` in the daemon if there is one, and passes its output to `print`.
///
/// # Errors
/// When the daemon ends before the command does.
pub(super) async fn ask(
    paths: &Paths,
    request: &Request<'_>,
    command: String,
    print: impl FnMut(&str),
) -> io::Result<Ran> {
    let Some(session) = Session::of(paths, request) else {
        return Ok(Ran::Not);
    };
    let Ok(location) = SocketLocation::find(paths, &request.env.environment) else {
        return Ok(Ran::Not);
    };
    // If the daemon cannot be reached, the command runs without it.
    let Ok(Some(mut socket)) = endpoint::connect(&location).await else {
        return Ok(Ran::Not);
    };
    let hello = Hello::Command(Box::new(session), command);
    if message::send_async(&mut socket, &hello).await.is_err() {
        // The daemon was ending.
        return Ok(Ran::Not);
    }
    listen(&mut socket, print).await
}

async fn listen(
    socket: &mut (impl AsyncRead + Unpin),
    mut print: impl FnMut(&str),
) -> io::Result<Ran> {
    let mut has_begun = false;
    loop {
        match message::receive_async(socket).await {
            Ok(CommandMessage::Begun) => {}
            Ok(CommandMessage::Printed(text)) => print(&text),
            Ok(CommandMessage::Ended) => return Ok(Ran::Whole),
            Ok(CommandMessage::Alone) => return Ok(Ran::Not),
            // The daemon never accepted the connection.
            Err(_) if !has_begun => return Ok(Ran::Not),
            Err(error) => return Err(error),
        }
        has_begun = true;
    }
}

/// Runs `command` for another process. The command ends if that process disconnects.
pub(super) async fn serve(
    commands: &dyn Commands,
    session: &Session,
    command: &str,
    shared: &SharedResources,
    socket: Stream,
) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(socket);
    let (env, profile) = (session.env(), session.profile.clone());
    let id = SessionId::random();
    let app = match App::for_command(session.paths(), env, profile, id, &shared.app) {
        Ok(app) => app,
        // The process reports this error as it does without a daemon.
        Err(_) => return message::send_async(&mut writer, &CommandMessage::Alone).await,
    };
    let outcome = tokio::select! {
        outcome = run(commands, &app, command, &mut writer) => outcome,
        // The process never sends more, so this means that it is gone.
        _ = message::receive_async::<serde::de::IgnoredAny>(&mut reader) => Ok(CommandMessage::Ended),
    };
    app.finish().await;
    message::send_async(&mut writer, &outcome?).await
}

async fn run(
    commands: &dyn Commands,
    app: &App,
    command: &str,
    writer: &mut (impl AsyncWrite + Unpin),
) -> io::Result<CommandMessage> {
    message::send_async(writer, &CommandMessage::Begun).await?;
    let (sender, mut printed) = mpsc::unbounded_channel();
    let running = commands.run(app, command, sender);
    tokio::pin!(running);
    let is_done = loop {
        tokio::select! {
            biased;
            Some(text) = printed.recv() => message::send_async(writer, &CommandMessage::Printed(text)).await?,
            is_done = &mut running => break is_done,
        }
    };
    while let Ok(text) = printed.try_recv() {
        message::send_async(writer, &CommandMessage::Printed(text)).await?;
    }
    Ok(if is_done {
        CommandMessage::Ended
    } else {
        CommandMessage::Alone
    })
}
