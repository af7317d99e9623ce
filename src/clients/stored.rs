//! The secrets of servers during a migration: entries that differ in them alone, and literal ones that move to the file
//! of secrets next to our configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::cache::{Source, read_own};
use super::edit::{Edit, PlanError};
use super::{Node, Syntax};
use crate::config::{
    Environment, filled_in, is_known_token, secret_arguments, secret_parameters, secrets_file,
    stored_secrets,
};
use crate::secret::{Secret, is_secret_name};

/// Shorter parts of an argument or a URL are not moved.
const SHORTEST: usize = 8;

/// The maps of an entry whose values may be secrets.
const GIVEN: [&str; 2] = ["env", "headers"];

/// The place to which literal secrets move.
#[derive(Debug, Clone, Default)]
pub(crate) enum Destination {
    /// The file of secrets next to the configuration, as the values of `${NAME}`.
    #[default]
    File,
    /// The store of `${keyring:NAME}`. The secrets that it has, by name, with those values that can be read.
    Keyring(BTreeMap<String, Option<Secret<String>>>),
}

/// The stored secrets before and after a migration.
#[derive(Debug, Default)]
pub(super) struct Stored {
    destination: Destination,
    before: BTreeMap<String, String>,
    added: BTreeMap<String, String>,
    /// The secrets that leave a file, also those that the destination has already.
    moved: BTreeMap<String, String>,
    /// The variables of this process.
    around: Environment,
}

/// The secrets in which two entries of one server differ.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// The names of the variables, headers or options.
    pub(super) keys: Vec<String>,
    /// The names of unset variables with the values that the other entry has for them.
    pub(super) values: Vec<(String, String)>,
    /// Whether a person must decide if the entries are one server, because their secrets are not known to be equal.
    pub(super) is_open: bool,
    /// Whether merging them gives up a secret.
    pub(super) is_other: bool,
    /// Whether a secret is known to be another one.
    pub(super) is_known: bool,
    /// Whether a secret of the keychain cannot be read.
    pub(super) is_unread: bool,
}

/// A literal secret in an entry.
pub(super) struct Literal {
    /// The name of its variable, header or option.
    pub(super) key: String,
    location: Location,
    /// A name for a variable.
    variable: String,
    value: String,
}

/// The text of an entry that contains a secret.
#[derive(PartialEq, Eq)]
enum Location {
    /// A value in one of [`GIVEN`].
    Given(&'static str, String),
    /// A part of such a value, which is a URL.
    Within(&'static str, String),
    Argument(usize),
    Url,
    /// The secret of a login.
    Login,
}

impl Location {
    fn text<'n>(&self, node: &'n Node) -> Option<&'n str> {
        node.at(&self.path())?.as_text()
    }

    /// Its path in the entry.
    fn path(&self) -> Vec<String> {
        match self {
            Self::Given(map, name) | Self::Within(map, name) => {
                vec![(*map).to_owned(), name.clone()]
            }
            Self::Argument(at) => vec!["args".to_owned(), at.to_string()],
            Self::Url => vec!["url".to_owned()],
            Self::Login => ["oauth", "client_secret"].map(str::to_owned).to_vec(),
        }
    }
}

impl Difference {
    /// The effect of taking both entries for one server.
    pub(super) fn note(&self) -> Option<String> {
        let keys = self.keys.join(", ");
        let first = self.keys.first()?;
        Some(match (self.is_other, self.values.first()) {
            (true, _) => {
                format!("the {keys} that it has there is kept, and this one is no longer used")
            }
            (false, Some((name, _))) => {
                format!("its {first} becomes the value of `${{{name}}}` there")
            }
            (false, None) if self.is_open => {
                format!("its {keys} refers to a variable that is not set; the value there counts")
            }
            (false, None) => format!("its {keys} has the same value there"),
        })
    }
}

impl Stored {
    /// The secrets of the configuration at `config_file`.
    ///
    /// # Errors
    /// When their file cannot be read.
    pub(super) fn of(config_file: &Path, around: &Environment) -> Result<Self, PlanError> {
        let before = stored_secrets(config_file);
        Ok(Self {
            destination: Destination::File,
            before: before.map_err(|error| PlanError::Secrets(Box::new(error)))?,
            added: BTreeMap::new(),
            moved: BTreeMap::new(),
            around: around.clone(),
        })
    }

    /// These secrets, for a move of new ones to `destination`.
    pub(super) fn to(self, destination: Destination) -> Self {
        Self {
            destination,
            ..self
        }
    }

    /// Whether secrets move to the store of `${keyring:NAME}`.
    pub(super) const fn is_keyring(&self) -> bool {
        matches!(self.destination, Destination::Keyring(_))
    }

    /// The values in the file of secrets.
    pub(super) const fn in_file(&self) -> &BTreeMap<String, String> {
        &self.before
    }

    fn reference(&self, name: &str) -> String {
        match self.destination {
            Destination::File => format!("${{{name}}}"),
            Destination::Keyring(_) => format!("${{keyring:{name}}}"),
        }
    }

    /// Adds a value that moves, unless the destination has it.
    fn keep(&mut self, name: String, value: String) {
        self.moved.insert(name.clone(), value.clone());
        let is_there = match &self.destination {
            Destination::File => self.has(&name),
            Destination::Keyring(known) => known.contains_key(&name),
        };
        if !is_there {
            self.added.insert(name, value);
        }
    }

    /// Whether a value of this name is stored.
    pub(super) fn has(&self, name: &str) -> bool {
        self.before.contains_key(name) || self.added.contains_key(name)
    }

    /// The secrets that are new.
    pub(super) const fn added(&self) -> &BTreeMap<String, String> {
        &self.added
    }

    /// The secrets that move, by the names that refer to them from then on.
    pub(super) fn moved(&self) -> Vec<(String, Secret<String>)> {
        let moved = self.moved.iter();
        moved
            .map(|(name, value)| (name.clone(), Secret::new(value.clone())))
            .collect()
    }

    /// All stored values, which no output may show.
    pub(super) fn secrets(&self) -> impl Iterator<Item = Secret<String>> {
        let values = self.before.values().chain(self.added.values());
        values.map(|value| Secret::new(value.clone()))
    }

    pub(super) fn add(&mut self, values: impl IntoIterator<Item = (String, String)>) {
        self.added.extend(values);
    }

    /// The variables of this process and the stored ones.
    fn environment(&self) -> Environment {
        let added = self.added.iter().filter(|_| !self.is_keyring());
        let stored = self.before.iter().chain(added);
        self.around
            .with(stored.map(|(name, value)| (name.clone(), value.clone())))
    }

    /// `text` with its variables filled in, as far as they are set.
    pub(super) fn filled(&self, text: &str) -> String {
        match text.contains('$') {
            true => filled_in(text, &self.environment()).unwrap_or_else(|| text.to_owned()),
            false => text.to_owned(),
        }
    }

    /// The secrets in which two entries differ. `None` if they differ in anything else. Texts that are equal once their references are
    /// filled in are equal, under any name.
    pub(super) fn difference(&self, one: &Node, other: &Node) -> Option<Difference> {
        let mut difference = Difference::default();
        let command = command_of(one);
        let (ours, theirs) = (one.members(), other.members());
        if ours.len() != theirs.len() {
            return None;
        }
        let mut pairs = Vec::new();
        for (key, one) in ours {
            let other = other.get(key)?;
            if !one.is_same(other) {
                pairs.extend(differing(key, one, other, command)?);
            }
        }
        // Most pairs of entries are two servers: they do not need the variables.
        if !pairs.is_empty() {
            let environment = self.environment();
            for pair in pairs {
                difference.add(pair, &environment)?;
            }
        }
        Some(difference)
    }

    /// Replaces the literal secrets of the entry `node` by references to stored ones. No variable gets a name in `taken`.
    /// Returns the paths of the changed values in the entry.
    pub(super) fn store(
        &mut self,
        server: &str,
        node: &mut Node,
        taken: &BTreeSet<String>,
    ) -> Vec<Vec<String>> {
        let mut paths = Vec::new();
        let mut all = literals(server, node);
        // Of two secrets in one text, one may be a part of the other.
        all.sort_by_key(|literal| std::cmp::Reverse(literal.value.len()));
        for literal in all {
            let Some(text) = literal.location.text(node) else {
                continue;
            };
            // Another secret in the same text may have contained it.
            if !text.contains(&literal.value) {
                continue;
            }
            let value = unescaped(&literal.value);
            let name = self.name_for(server, (&literal.variable, &value), taken);
            let reference = self.reference(&name);
            let text = match literal.location {
                // The value of a variable or header may be short; it stands at the end.
                Location::Given(..) | Location::Login => {
                    let before = text.strip_suffix(&literal.value).unwrap_or_default();
                    Some(format!("{before}{reference}"))
                }
                Location::Within(..) | Location::Argument(_) | Location::Url => {
                    with_reference(text, &literal.value, &reference)
                }
            };
            let Some(text) = text else {
                continue;
            };
            let path = literal.location.path();
            if !node.set(&path, Node::Text(text)) {
                continue;
            }
            paths.push(path);
            self.keep(name, value);
        }
        paths
    }

    /// Stores the secret `value` of `owner`, and returns a reference to it. No variable gets a name in `taken`.
    pub(super) fn store_value(
        &mut self,
        owner: &str,
        (variable, value): (String, String),
        taken: &BTreeSet<String>,
    ) -> String {
        let name = self.name_for(owner, (&variable, &value), taken);
        let reference = self.reference(&name);
        self.keep(name, value);
        reference
    }

    /// A variable name that is not used for another value.
    fn name_for(
        &self,
        server: &str,
        (variable, secret): (&str, &str),
        taken: &BTreeSet<String>,
    ) -> String {
        let prefix = variable_name(&format!("{server}_"));
        let longer = match variable.starts_with(&prefix) {
            true => variable.to_owned(),
            false => format!("{prefix}{variable}"),
        };
        let numbered = (2..).map(|number| format!("{longer}_{number}"));
        let environment = self.environment();
        let is_free = |name: &String| match &self.destination {
            Destination::File => match environment.get(name) {
                Some(value) => value == secret && (self.has(name) || !taken.contains(name)),
                None => !taken.contains(name),
            },
            Destination::Keyring(known) => match (known.get(name), self.added.get(name)) {
                (None, None) => true,
                (Some(known), _) => known.as_ref().is_some_and(|known| known.expose() == secret),
                (None, Some(added)) => added == secret,
            },
        };
        let mut names = [variable.to_owned(), longer.clone()]
            .into_iter()
            .chain(numbered);
        names.find(is_free).expect("there are numbers without end")
    }

    /// The change of the file of secrets, if there are new ones.
    ///
    /// # Errors
    /// When it cannot be read or edited.
    pub(super) fn edit(&self, config_file: &Path) -> Result<Option<Edit>, PlanError> {
        if self.added.is_empty() || self.is_keyring() {
            return Ok(None);
        }
        let path: PathBuf = secrets_file(config_file);
        let unreadable = |source| PlanError::Unreadable {
            path: path.clone(),
            source,
        };
        let source: Source = read_own(&path).map_err(unreadable)?;
        let mut text = source.text.clone();
        let mut steps = Vec::new();
        for (name, value) in &self.added {
            let step = vec![name.clone()];
            text.set(&step, &Node::text(value))
                .map_err(|source| PlanError::Edit {
                    path: path.clone(),
                    source,
                })?;
            steps.push(step);
        }
        let edit = Edit::new(None, &path, Syntax::Json, &source, &text, steps);
        Ok(edit.map(|edit| edit.of_secrets([&source.text, &text])))
    }
}

impl Difference {
    /// Adds a text in which they differ. `None` if that makes them two servers.
    fn add(&mut self, pair: Pair<'_>, environment: &Environment) -> Option<()> {
        let (one, other) = (pair.one, pair.other);
        self.keys.push(pair.key);
        let (ours, theirs) = (filled_in(one, environment), filled_in(other, environment));
        if ours.is_some() && ours == theirs {
            return Some(());
        }
        let is_unread =
            ours.is_none() && may_mean(one, other) || theirs.is_none() && may_mean(other, one);
        if !is_unread && !pair.is_secret {
            return None;
        }
        self.is_open = true;
        self.is_unread |= is_unread;
        match (ours, theirs) {
            // The first entry stays as it is, so its variable gets the value.
            (None, Some(_)) => match value_of_reference(one, other) {
                Some(pair) => self.values.push(pair),
                None => self.is_other = true,
            },
            // The second one has no secret that could be lost.
            (Some(_), None) if value_of_reference(other, one).is_some() => {}
            (ours, theirs) => {
                self.is_other = true;
                self.is_known |= ours.is_some() && theirs.is_some();
            }
        }
        Some(())
    }
}

/// Whether `written`, which has a secret of the keychain, may be `text` once that can be read.
fn may_mean(written: &str, text: &str) -> bool {
    let mut pieces = written.split("${");
    let first = pieces.next().unwrap_or_default();
    let pieces = pieces.map(|piece| piece.split_once('}').map_or("", |(_, after)| after));
    let mut pieces: Vec<&str> = pieces.collect();
    let last = pieces.pop().unwrap_or_default();
    let inner = text
        .strip_prefix(first)
        .and_then(|rest| rest.strip_suffix(last));
    let has_all = |mut rest: &str| {
        pieces.iter().all(|piece| {
            let found = rest.split_once(piece);
            rest = found.map_or("", |(_, after)| after);
            found.is_some()
        })
    };
    written.contains("${keyring:") && inner.is_some_and(has_all)
}

/// The variable of `written`, one reference behind any text, with its value in `literal`.
fn value_of_reference(written: &str, literal: &str) -> Option<(String, String)> {
    let (before, rest) = written.split_once("${")?;
    let name = rest.strip_suffix('}')?;
    let value = literal.strip_prefix(before)?;
    let is_name = variable_name(name) == name.to_ascii_uppercase();
    (is_name && !value.is_empty() && !literal.contains("${"))
        .then(|| (name.to_owned(), value.to_owned()))
}

/// Whether a variable or header of this name and text is a secret as a whole.
fn is_secret(name: &str, text: &str) -> bool {
    is_secret_name(name) || is_known_token(value_of(text))
}

/// The value without its scheme: `abc` of `Bearer abc`.
fn value_of(text: &str) -> &str {
    match text.split_once(' ') {
        Some((scheme, value)) if scheme.chars().all(char::is_alphabetic) => value,
        _ => text,
    }
}

/// A text in which two entries differ.
struct Pair<'n> {
    /// The name of the variable, header or option.
    key: String,
    one: &'n str,
    other: &'n str,
    /// Whether it is a secret as a whole.
    is_secret: bool,
}

impl<'n> Pair<'n> {
    /// Two texts that may have one meaning. `None` if they are known to be others: neither is a secret or has a reference.
    fn of(key: &str, one: &'n Node, other: &'n Node, is_secret: bool) -> Option<Self> {
        let (one, other) = (one.as_text()?, other.as_text()?);
        let may_be_one = is_secret || has_reference(one) || has_reference(other);
        may_be_one.then(|| Self {
            key: key.to_owned(),
            one,
            other,
            is_secret,
        })
    }
}

/// The texts under one key in which two entries differ. `None` if they differ in anything else.
fn differing<'n>(
    key: &str,
    one: &'n Node,
    other: &'n Node,
    command: &str,
) -> Option<Vec<Pair<'n>>> {
    match (one, other) {
        (Node::Map(_), Node::Map(_)) if GIVEN.contains(&key) => {
            let (ours, theirs) = (one.members(), other.members());
            let differing = ours
                .iter()
                .filter(|(name, value)| !other.get(name).is_some_and(|other| value.is_same(other)));
            let pairs = differing.map(|(name, value)| {
                let other = other.get(name)?;
                let is_secret =
                    |node: &Node| node.as_text().is_some_and(|text| is_secret(name, text));
                Pair::of(name, value, other, is_secret(value) || is_secret(other))
            });
            (ours.len() == theirs.len()).then(|| pairs.collect())?
        }
        (Node::List(ours), Node::List(theirs)) if key == "args" && ours.len() == theirs.len() => {
            let both = ours.iter().zip(theirs).enumerate();
            let differing = both.filter(|(_, (one, other))| !one.is_same(other));
            let pairs = |secrets: &[Secret<String>]| {
                let pairs = differing.clone().map(|(at, (one, other))| {
                    let before = at.checked_sub(1).and_then(|at| ours[at].as_text());
                    let option = option_of(before, one.as_text()?, secrets);
                    let option = option.filter(|_| {
                        option == option_of(before, other.as_text().unwrap_or(""), secrets)
                    });
                    Pair::of(option.unwrap_or("argument"), one, other, option.is_some())
                });
                pairs.collect::<Option<Vec<_>>>()
            };
            // Most entries differ in other words, for which the secrets need not be known.
            pairs(&[])?;
            pairs(&secret_arguments(command, &texts(one)))
        }
        (Node::Text(_), Node::Text(_)) if key == "url" => {
            Some(vec![Pair::of(key, one, other, false)?])
        }
        _ => None,
    }
}

/// The option whose secret the argument `text` contains. A word that contains one of `secrets` itself, such as `--token=VALUE` or
/// `-pVALUE` before `text`, is not taken for an option.
fn option_of<'t>(
    before: Option<&'t str>,
    text: &'t str,
    secrets: &[Secret<String>],
) -> Option<&'t str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let has_secret = |option: &str| {
        let joined = option.get(2..).filter(|_| !option.starts_with("--"));
        let joined = joined.filter(|joined| !joined.is_empty());
        let mut secrets = secrets.iter().map(Secret::expose);
        secrets.any(|secret| {
            secret.len() >= SHORTEST && option.contains(secret.as_str())
                || joined.is_some_and(|joined| secret.starts_with(joined))
        })
    };
    let is_option = |option: &&str| {
        option.starts_with('-')
            && option.chars().all(is_plain)
            && is_secret_name(option)
            && !has_secret(option)
    };
    match text.split_once('=') {
        Some((option, _)) if text.starts_with('-') => Some(option).filter(is_option),
        _ => before.filter(is_option),
    }
}

fn command_of(entry: &Node) -> &str {
    entry.get("command").and_then(Node::as_text).unwrap_or("")
}

/// The literal secrets of the entry of `server`.
pub(super) fn literals(server: &str, node: &Node) -> Vec<Literal> {
    let variable_of = |map, name: &str| match map {
        "env" => variable_name(name),
        _ => variable_name(&format!("{server}_{name}")),
    };
    let (secret, others): (Vec<_>, Vec<_>) =
        given(node).partition(|(_, name, text)| is_secret(name, text));
    let mut found: Vec<Literal> = secret
        .into_iter()
        .map(|(map, name, text)| Literal {
            key: name.to_owned(),
            location: Location::Given(map, name.to_owned()),
            variable: variable_of(map, name),
            value: value_of(text).to_owned(),
        })
        .collect();
    for (map, name, text) in others {
        let parts = secret_parameters(text).into_iter();
        let parts = parts.filter(|part| is_movable(text, part.expose()));
        found.extend(parts.map(|part| Literal {
            key: name.to_owned(),
            location: Location::Within(map, name.to_owned()),
            variable: variable_of(map, name),
            value: part.expose().clone(),
        }));
    }
    let of_server = |key: &str, location, value: &String| Literal {
        key: key.to_owned(),
        location,
        variable: variable_name(&format!("{server}_{}", key.trim_start_matches('-'))),
        value: value.clone(),
    };
    let args = node.get("args").map(texts).unwrap_or_default();
    let secrets = secret_arguments(command_of(node), &args);
    for secret in &secrets {
        let value = secret.expose();
        let with_it = |at: &usize| is_movable(&args[*at], value);
        let all: Vec<usize> = (0..args.len()).filter(with_it).collect();
        let option = |at: &usize| {
            let before = at.checked_sub(1).map(|at| args[at].as_str());
            option_of(before, &args[*at], &secrets)
        };
        // One variable for all of them.
        let key = all.iter().find_map(option).unwrap_or("secret");
        found.extend(
            all.iter()
                .map(|at| of_server(key, Location::Argument(*at), value)),
        );
    }
    let of_login = node.at(&["oauth", "client_secret"]).and_then(Node::as_text);
    if let Some(value) = of_login.filter(|value| !value.trim().is_empty()) {
        found.push(of_server(
            "client_secret",
            Location::Login,
            &value.to_owned(),
        ));
    }
    let url = node.get("url").and_then(Node::as_text).unwrap_or("");
    for secret in secret_parameters(url) {
        let value = secret.expose();
        if is_movable(url, value) {
            found.push(of_server("url", Location::Url, value));
        }
    }
    // A text with a reference may be one as a whole.
    found.retain(|literal| {
        let has_reference = literal.location.text(node).is_none_or(has_reference);
        !literal.value.trim().is_empty() && !has_reference
    });
    found
}

/// Whether a text has `${`, other than as `$${`, which stands for the characters themselves.
fn has_reference(text: &str) -> bool {
    let mut all = text.match_indices("${");
    all.any(|(at, _)| !text[..at].ends_with('$'))
}

/// The meaning of a text without references.
fn unescaped(text: &str) -> String {
    text.replace("$${", "${")
}

/// Whether `text` has the secret `part` in a place that is certain: a short one is a password between the user and the host of a URL.
fn is_movable(text: &str, part: &str) -> bool {
    let (before, after) = around(part);
    text.contains(&format!("{before}{part}{after}"))
}

fn around(part: &str) -> (&'static str, &'static str) {
    match part.len() < SHORTEST {
        true => (":", "@"),
        false => ("", ""),
    }
}

/// `text` with a reference in the place of the secret `part`. `None` if a `$` next to it would get another meaning.
fn with_reference(text: &str, part: &str, reference: &str) -> Option<String> {
    let (before, after) = around(part);
    let pieces: Vec<&str> = text.split(&format!("{before}{part}{after}")).collect();
    let meanings: Vec<String> = pieces.iter().map(|piece| unescaped(piece)).collect();
    let is_same = meanings.join(&format!("{before}{}{after}", unescaped(part))) == unescaped(text);
    let written = pieces.join(&format!("{before}{reference}{after}"));
    (is_same && !written.contains(&format!("${reference}"))).then_some(written)
}

/// The variables and headers, with the map that has them.
fn given(node: &Node) -> impl Iterator<Item = (&'static str, &str, &str)> {
    let maps = GIVEN
        .into_iter()
        .filter_map(|map| Some((map, node.get(map)?)));
    maps.flat_map(|(map, values)| {
        let members = values.members().into_iter();
        members.filter_map(move |(name, value)| Some((map, name, value.as_text()?)))
    })
}

fn texts(list: &Node) -> Vec<String> {
    let Node::List(items) = list else {
        return Vec::new();
    };
    let texts = items.iter().map(|item| item.as_text().unwrap_or_default());
    texts.map(str::to_owned).collect()
}

/// `text` as the name of a variable.
fn variable_name(text: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = text.to_ascii_uppercase().chars().map(legal).collect();
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{name}"),
        false => name,
    }
}
