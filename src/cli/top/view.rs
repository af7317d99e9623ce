//! Draws the screen. Texts of servers and clients pass through `printable`.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table, TableState, Wrap};

use super::state::{Approval, Focus, State, Status};
use crate::cli::printable::printable;
use crate::proxy::counted;

pub(super) fn draw(state: &State, frame: &mut Frame<'_>) {
    let approvals = u16::try_from(state.approvals.len()).unwrap_or(u16::MAX);
    let rows = [
        Constraint::Length(1),
        Constraint::Fill(3),
        Constraint::Fill(2),
        Constraint::Length(approvals.clamp(1, 6) + 2),
        Constraint::Fill(2),
        Constraint::Length(1),
    ];
    let [head, servers, calls, waiting, log, foot] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(title(state), head);
    draw_servers(state, frame, servers);
    draw_calls(state, frame, calls);
    draw_approvals(state, frame, waiting);
    draw_log(state, frame, log);
    let keys = match state.question() {
        Some(_) => "a allow once  d deny  ↑↓ more  Esc back",
        None if state.paused().is_some() => {
            "Tab list  ↑↓ choose  r restart  s stop  Enter show  p resume  q quit"
        }
        None => "Tab list  ↑↓ choose  r restart  s stop  Enter show  p pause  q quit",
    };
    let foot_text = match state.message.as_str() {
        "" => keys.to_owned(),
        message => format!("{keys}  · {}", printable(message)),
    };
    frame.render_widget(Paragraph::new(foot_text).style(Modifier::DIM), foot);
    if let Some(approval) = state.question() {
        draw_question(approval, state.scrolled, frame);
    }
}

fn title(state: &State) -> Line<'static> {
    let text = match &state.status {
        None => "mcpzip: no daemon runs for this configuration".to_owned(),
        Some(status) => format!(
            "mcpzip {}  process {}  {}  {}  up {} s",
            printable(&status.version),
            status.process,
            counted(state.servers.len(), "server"),
            counted(status.sessions.len(), "session"),
            status.uptime
        ),
    };
    match state.paused() {
        None => Line::styled(text, Modifier::BOLD),
        Some(paused) => {
            let ago = paused.ago().unwrap_or_default();
            let style = Style::from(Color::Yellow).add_modifier(Modifier::BOLD);
            Line::styled(
                format!("PAUSED {ago}: no new call reaches a server  {text}"),
                style,
            )
        }
    }
}

fn block(title: String, is_focused: bool) -> Block<'static> {
    let block = Block::bordered().title(title);
    match is_focused {
        true => block.border_style(Color::Cyan),
        false => block.border_style(Modifier::DIM),
    }
}

fn draw_servers(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let rows = state.servers.iter().map(|server| {
        let colour = match server.state.as_str() {
            "ready" => Color::Green,
            "failed" | "faulty" => Color::Red,
            "connecting" => Color::Yellow,
            _ => Color::Reset,
        };
        Row::new([
            Cell::from(printable(&server.server)),
            Cell::from(server.state.clone()).style(colour),
            Cell::from(server.tools.to_string()),
            Cell::from(server.connections.to_string()),
            Cell::from(server.sessions.len().to_string()),
            Cell::from(printable(server.reason.as_deref().unwrap_or_default())),
        ])
    });
    let widths = [
        Constraint::Length(24),
        Constraint::Length(11),
        Constraint::Length(6),
        Constraint::Length(6),
        Constraint::Length(8),
        Constraint::Fill(1),
    ];
    let names = ["server", "state", "tools", "open", "sessions", "reason"];
    let block = block(" servers ".to_owned(), state.focus == Focus::Servers);
    let is_unused = |status: &Status| state.servers.is_empty() && status.sessions.is_empty();
    if state.status.as_ref().is_some_and(is_unused) {
        let text = "no session is open: the servers of a session are shown here; `mcpzip list` shows the configured ones";
        let text = Paragraph::new(text).wrap(Wrap { trim: true });
        frame.render_widget(text.block(block), area);
        return;
    }
    let table = Table::new(rows, widths)
        .header(Row::new(names).style(Modifier::DIM))
        .row_highlight_style(Style::from(Modifier::REVERSED))
        .block(block);
    let chosen = state.server().map(|server| &server.server);
    let at = state
        .servers
        .iter()
        .position(|one| Some(&one.server) == chosen);
    let mut place = TableState::new().with_selected(at);
    frame.render_stateful_widget(table, area, &mut place);
}

fn draw_calls(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let open = state.calls.values().map(|call| {
        let seconds = call.began.elapsed().as_secs();
        let text = format!("{}  in flight for {seconds} s", printable(&call.name));
        Line::styled(text, Color::Yellow)
    });
    let ended = state.ended.iter().map(|line| Line::from(printable(line)));
    let lines = open.chain(ended).collect::<Vec<_>>();
    let title = format!(" calls: {} in flight ", state.calls.len());
    let shown = Paragraph::new(lines).block(block(title, false));
    frame.render_widget(shown, area);
}

fn draw_approvals(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let is_focused = state.focus == Focus::Approvals;
    let chosen = state.approval().map(|approval| &approval.id);
    let rows = state.approvals.iter().map(|approval| {
        let client = approval.client.as_deref().unwrap_or("an unknown client");
        Row::new([
            approval.id.clone(),
            printable(&format!("{}__{}", approval.server, approval.tool)),
            printable(client),
        ])
    });
    let widths = [
        Constraint::Length(10),
        Constraint::Fill(2),
        Constraint::Fill(1),
    ];
    let title = format!(" approvals: {} waiting ", state.approvals.len());
    let table = Table::new(rows, widths)
        .row_highlight_style(Style::from(Modifier::REVERSED))
        .block(block(title, is_focused));
    let at = state
        .approvals
        .iter()
        .position(|one| Some(&one.id) == chosen);
    let mut place = TableState::new().with_selected(at.filter(|_| is_focused));
    frame.render_stateful_widget(table, area, &mut place);
}

/// The end of the log.
fn draw_log(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let height = usize::from(area.height.saturating_sub(2));
    let lines = &state.log[state.log.len().saturating_sub(height)..];
    let lines: Vec<Line<'_>> = lines.iter().map(|line| printable(line).into()).collect();
    let title = format!(" log of {} ", printable(&state.log_of));
    frame.render_widget(Paragraph::new(lines).block(block(title, false)), area);
}

/// The whole question of a call, over everything else.
fn draw_question(approval: &Approval, scrolled: u16, frame: &mut Frame<'_>) {
    let area = frame.area();
    let area = Rect {
        y: 1,
        height: area.height.saturating_sub(2),
        ..area
    };
    let lines = approval.question.lines();
    let lines: Vec<Line<'_>> = lines.map(|line| printable(line).into()).collect();
    let title = format!(" {}: a allows the call once, d denies it ", approval.id);
    let shown = Paragraph::new(Text::from(lines)).wrap(Wrap { trim: false });
    let shown = shown.scroll((scrolled, 0));
    frame.render_widget(Clear, area);
    frame.render_widget(shown.block(block(title, true)), area);
}
