//! Checks of `show`: whether each pattern lists a tool.

use super::super::printable::printable;
use super::Examination;
use super::finding::Finding;
use super::kinds;
use crate::app::App;
use crate::catalog::{Snapshot, Tool};
use crate::config::{Config, Shown, Surface, SurfaceRequest};

pub(super) fn examine(app: &App, examination: &mut Examination) {
    let view = app.proxy().unscoped();
    let (config, snapshot) = (view.config(), view.snapshot());
    let general = ("show".to_owned(), &config.surface.show, config.surface.mode);
    let clients = config.surface.clients.iter().filter_map(|(client, own)| {
        let (surface, _) = config.surface.of_client(client, SurfaceRequest::default());
        Some((
            format!("clients.{client}.show"),
            own.show.as_ref()?,
            surface,
        ))
    });
    for (key, shown, surface) in std::iter::once(general).chain(clients) {
        if surface == Surface::Direct && !shown.is_empty() {
            let what = format!(
                "`{key}` does nothing: with `\"surface\": \"direct\"` all tools are listed"
            );
            examination.add(Finding::new(&kinds::SHOW_UNUSED, key.clone(), what));
            continue;
        }
        for pattern in shown.each() {
            if let Some(fault) = fault(&pattern, &config, &snapshot) {
                let text = printable(&pattern.patterns().join(" "));
                let what = format!("`{text}` in `{key}`: {fault}");
                examination.add(Finding::new(&kinds::SHOW_UNUSED, key.clone(), what));
            }
        }
    }
}

/// Why a pattern lists nothing.
fn fault(pattern: &Shown, config: &Config, snapshot: &Snapshot) -> Option<String> {
    let is_meant = |tool: &Tool| {
        let (seen, own) = (tool.qualified_name(), tool.own_name());
        let mut names = [seen, own].into_iter();
        names.any(|name| pattern.includes(name.server.as_str(), name.tool.as_str()))
    };
    if snapshot.tools().any(|tool| is_meant(&tool)) {
        return None;
    }
    let mut servers = config.servers.iter();
    let named = servers.find(|(server, _)| pattern.names_server(server.as_str()));
    let is_faulty = config.names.iter().any(|name| pattern.names_server(name));
    Some(match named {
        None if is_faulty => "the server's entry cannot be used".to_owned(),
        None => "there is no such server".to_owned(),
        Some((server, entry)) if entry.disabled => format!("`{server}` is disabled"),
        Some((server, _)) if snapshot.server(server).is_none() => {
            format!("`{server}` was never listed")
        }
        Some(_) if snapshot.unrestricted().tools().any(|tool| is_meant(&tool)) => {
            "its tools are denied, held back or for apps only".to_owned()
        }
        Some((server, _)) => format!("`{server}` has no such tool"),
    })
}
