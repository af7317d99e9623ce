//! Checks that every value of a recipe has its form, so that none of it is an option or a path.

use http::HeaderName;

use super::{Recipe, Source, Unusable, Way, is_bare, is_identifier, is_variable, label, runner};
use crate::registry::wire::{self, Argument, Package};

impl Recipe<'_> {
    /// Checks all values.
    pub(super) fn check(&self) -> Result<(), Unusable> {
        match &self.source {
            Source::Package(package) => check_package(package, self.way)?,
            Source::Remote(remote) => check_remote(remote)?,
        }
        for (_, input, ..) in self.slots() {
            let texts = [&input.value, &input.default].into_iter().flatten();
            let inner = input
                .variables
                .iter()
                .flatten()
                .flat_map(|(_, inner)| [&inner.value, &inner.default]);
            if let Some(text) = texts
                .chain(inner.flatten())
                .find(|text| text.contains(|c: char| c.is_control()))
            {
                return odd("a value has control characters in it,", text);
            }
        }
        Ok(())
    }
}

fn odd(what: &str, text: &str) -> Result<(), Unusable> {
    Err(Unusable::Odd(format!("{what} `{}`", wire::clean(text))))
}

fn check_package(package: &Package, way: Way) -> Result<(), Unusable> {
    if !is_identifier(way, &package.identifier) {
        return odd("the package's name is", &package.identifier);
    }
    let version = package.version.as_deref().filter(|text| !text.is_empty());
    if let Some(version) = version.filter(|version| !wire::is_version(version)) {
        return odd("the package's version is", version);
    }
    let hint = package.runtime_hint.as_deref();
    let hint = hint.filter(|hint| !hint.is_empty() && !way.runners().contains(hint));
    if let Some(hint) = hint {
        let hint = wire::clean(hint);
        return Err(Unusable::NoWay(format!("it must be run by `{hint}`")));
    }
    for variable in package.environment_variables.iter().flatten() {
        if !is_variable(&variable.name) {
            return odd("a variable's name is", &variable.name);
        }
        let is_set = variable.input.value.is_some() || variable.input.default.is_some();
        if is_set && runner::steers(&variable.name) {
            return Err(Unusable::Odd(format!(
                "it sets the variable `{}`, which steers the program that runs it",
                variable.name
            )));
        }
    }
    let arguments = [&package.runtime_arguments, &package.package_arguments];
    let mut arguments = arguments.into_iter().flatten().flatten();
    arguments.try_for_each(check_argument)
}

fn check_argument(argument: &Argument) -> Result<(), Unusable> {
    if !matches!(argument.kind.as_str(), "named" | "positional") {
        return odd("an argument is of the type", &argument.kind);
    }
    let is_asked = argument.input.value.is_none() && !is_bare(argument);
    if is_asked && argument.input.is_required == Some(true) && label(argument).is_empty() {
        let message = "it needs an argument that has no name";
        return Err(Unusable::Odd(message.to_owned()));
    }
    Ok(())
}

fn check_remote(remote: &wire::Remote) -> Result<(), Unusable> {
    let host = remote
        .url
        .split("://")
        .nth(1)
        .and_then(|rest| rest.split(['/', '?', ':', '#']).next());
    let is_local = matches!(host, Some("localhost" | "127.0.0.1"));
    let is_http =
        remote.url.starts_with("https://") || is_local && remote.url.starts_with("http://");
    let has_odd = remote
        .url
        .contains(|c: char| c.is_whitespace() || c.is_control());
    if !is_http || has_odd || host.is_none_or(|host| host.is_empty() || host.contains('@')) {
        return odd("its URL is", &remote.url);
    }
    for header in remote.headers.iter().flatten() {
        if HeaderName::from_bytes(header.name.as_bytes()).is_err() {
            return odd("a header's name is", &header.name);
        }
    }
    Ok(())
}
