//! The arguments of `mcpzip call`: a JSON text, flags named like the tool's parameters, or the content of a pipe.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::Context as _;
use clap::{ArgAction, Command, CommandFactory as _};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::io::AsyncReadExt as _;

use super::Call;
use super::diagnostics::Exit;
use crate::app::App;
use crate::proxy::Failure;
use crate::text::{nearest, shell_word};
use crate::tool::{Definition, Parameter, SEPARATOR};

/// How long a silent pipe is waited for if the tool may change something.
const WAIT: Duration = Duration::from_secs(2);
/// The wait for other tools.
const SHORT_WAIT: Duration = Duration::from_millis(250);

/// The longest pause of a pipe within a text.
const PAUSE: Duration = Duration::from_secs(30);

/// A flag and its value.
type Given = (String, Option<String>);

/// An option of mcpzip after the name of the tool, which may have a parameter of this name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OwnOption {
    pub(super) flag: String,
    /// Its value, or the word after it.
    value: Option<String>,
}

impl OwnOption {
    /// The way to give it to the tool, with the tool's other flags.
    pub(super) fn advice(&self, tool: &str, flags: &[String]) -> String {
        let Self { flag, value } = self;
        let value = value.iter().chain(flags).map(|word| shell_word(word));
        let words: Vec<String> = value.collect();
        let separator = if words.is_empty() { "" } else { " " };
        format!(
            "`--{flag}` is an option of mcpzip; put the tool's own after `--`: `mcpzip call {} -- --{flag}{separator}{}`",
            shell_word(tool),
            words.join(" ")
        )
    }

    /// Whether the word after it cannot be the JSON of the arguments, so that it was probably meant for the tool.
    fn is_misplaced(&self, words: &[String]) -> bool {
        let is_json = |word: &String| word == "-" || word.trim_start().starts_with('{');
        let value = self.value.as_ref().filter(|value| !is_json(value));
        value.is_some_and(|value| words.contains(value))
    }
}

/// The options of `call` among `arguments` that stand after the name of the tool.
pub(super) fn own_options(arguments: &[OsString], call: &Command) -> Vec<OwnOption> {
    let Some(at) = position_of_call(arguments, call) else {
        return Vec::new();
    };
    let (mut own, mut has_tool) = (Vec::new(), false);
    let mut words = arguments[at + 1..].iter().peekable();
    while let Some(word) = words.next().filter(|word| *word != "--") {
        let Some(flag) = name_of(word) else {
            has_tool = true;
            continue;
        };
        let Some(takes) = takes_value(call, &flag) else {
            continue;
        };
        let after = words.peek().and_then(|next| next.to_str());
        let after = after.filter(|next| !next.starts_with("--"));
        let written = word.to_str().and_then(|word| word.split_once('='));
        let value = written.map(|(_, value)| value).or(after).map(str::to_owned);
        if takes && written.is_none() {
            words.next();
        }
        if has_tool {
            own.push(OwnOption { flag, value });
        }
    }
    own
}

/// Whether an option of `call` takes a value. `None` if it has no such option.
fn takes_value(call: &Command, flag: &str) -> Option<bool> {
    let known = call
        .get_arguments()
        .find(|known| known.get_long() == Some(flag))?;
    Some(matches!(
        known.get_action(),
        ArgAction::Set | ArgAction::Append
    ))
}

/// The name of the flag that a word is.
fn name_of(word: &OsString) -> Option<String> {
    let flag = word.to_str()?.strip_prefix("--")?;
    (!flag.is_empty()).then(|| flag.split('=').next().unwrap_or(flag).to_owned())
}

/// The position of the word `call`, if that is the command.
fn position_of_call(arguments: &[OsString], call: &Command) -> Option<usize> {
    let mut words = arguments.iter().skip(1).enumerate();
    while let Some((index, word)) = words.next() {
        match name_of(word) {
            Some(flag) if takes_value(call, &flag) == Some(true) && !has_value(word) => {
                words.next();
            }
            Some(_) => {}
            None => return (word == "call").then_some(index + 1),
        }
    }
    None
}

fn has_value(word: &OsString) -> bool {
    word.to_string_lossy().contains('=')
}

/// Moves the flags of the tool behind `--`: all flags that neither `call` nor every command has.
pub(super) fn with_parameters_last(arguments: Vec<OsString>, call: &Command) -> Vec<OsString> {
    let Some(at) = position_of_call(&arguments, call) else {
        return arguments;
    };
    let (mut own, mut of_tool) = (arguments[..=at].to_vec(), Vec::new());
    let mut words = arguments[at + 1..].iter().peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            of_tool.extend(words.cloned());
            break;
        }
        let flag = name_of(word);
        let known = flag.as_deref().map(|flag| match flag {
            "help" | "version" => Some(false),
            flag => takes_value(call, flag),
        });
        let (target, may_take) = match known {
            Some(None) => (&mut of_tool, true),
            Some(Some(takes)) => (&mut own, takes),
            None => (&mut own, false),
        };
        target.push(word.clone());
        let takes_next = may_take && !has_value(word);
        if let Some(value) =
            words.next_if(|next| takes_next && !next.to_string_lossy().starts_with("--"))
        {
            target.push(value.clone());
        }
    }
    if !of_tool.is_empty() {
        own.push("--".into());
        own.extend(of_tool);
    }
    own
}

/// The sources of a call's arguments.
pub(super) struct Source<'a> {
    /// JSON on the command line, or `-`: at most one word.
    pub(super) words: &'a [String],
    pub(super) flags: &'a [String],
    /// The content of stdin, if it was read before.
    pub(super) input: Option<&'a Input>,
    /// The options of mcpzip after the tool's name.
    pub(super) own: &'a [OwnOption],
}

/// The content of stdin.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Input {
    /// A terminal, which is not read.
    Terminal,
    /// An open pipe without content for a short time.
    Silent,
    /// The whole content.
    Text(String),
}

impl Input {
    /// Waits for all of stdin.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) async fn wait() -> Result<Self, Exit> {
        let text = from_stdin(&mut tokio::io::stdin(), None).await?;
        Ok(Self::Text(text.unwrap_or_default()))
    }

    /// Reads stdin if it has anything. Nothing is taken from a pipe that is silent.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) async fn read() -> Result<Self, Exit> {
        if std::io::stdin().is_terminal() {
            return Ok(Self::Terminal);
        }
        match is_readable() {
            true => Self::wait().await,
            false => Ok(Self::Silent),
        }
    }
}

/// Whether stdin has data or ends within a short time.
#[cfg(unix)]
fn is_readable() -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let stdin = std::io::stdin();
    let mut wanted = [PollFd::new(&stdin, PollFlags::IN)];
    let limit = rustix::time::Timespec::try_from(SHORT_WAIT).ok();
    // A file that cannot be polled can be read.
    poll(&mut wanted, limit.as_ref()).is_ok_and(|ready| ready > 0)
}

/// Whether stdin has content that was not read.
#[cfg(unix)]
pub(super) fn is_unread() -> bool {
    let stdin = std::io::stdin();
    !stdin.is_terminal() && rustix::io::ioctl_fionread(&stdin).is_ok_and(|bytes| bytes > 0)
}

/// Whether stdin has content that was not read, which is unknown on these systems.
#[cfg(not(unix))]
pub(super) fn is_unread() -> bool {
    false
}

/// Whether stdin can be read without waiting, which is unknown on these systems.
#[cfg(not(unix))]
fn is_readable() -> bool {
    false
}

/// Why there is no call.
enum Refused {
    /// The arguments cannot be read, or are not the tool's.
    Arguments(Exit),
    /// The tool cannot be called, which is recorded, or another process is to call it.
    Call(Exit),
}

impl From<Exit> for Refused {
    fn from(exit: Exit) -> Self {
        Self::Arguments(exit)
    }
}

impl From<anyhow::Error> for Refused {
    fn from(error: anyhow::Error) -> Self {
        Self::Arguments(error.into())
    }
}

/// The arguments as JSON: from the given text, the flags, or a pipe. An open, silent pipe does not block the call. It
/// counts as no arguments only if the call cannot change anything.
///
/// # Errors
/// When they are not JSON, or do not match the tool's parameters. The audit log then has the refused call.
pub(super) async fn read(
    tool: &str,
    source: Source<'_>,
    app: &App,
) -> Result<Option<Box<RawValue>>, Exit> {
    let refused = match unrecorded(tool, source, app).await {
        Ok(json) => return Ok(json),
        Err(Refused::Call(exit)) => return Err(exit),
        Err(Refused::Arguments(exit)) => exit,
    };
    let view = app.proxy().unscoped();
    let reason = "its arguments cannot be read";
    let failure = Failure::Unreadable { reason };
    match app.proxy().tools.refused(&view, None, tool, failure) {
        Failure::Unreadable { .. } => Err(refused),
        unwritten => Err(Exit::of_call(&unwritten, &view)),
    }
}

async fn unrecorded(
    tool: &str,
    source: Source<'_>,
    app: &App,
) -> Result<Option<Box<RawValue>>, Refused> {
    let Source {
        words,
        flags,
        input,
        own,
    } = source;
    if let Some(option) = own.iter().find(|option| option.is_misplaced(words)) {
        return Err(Exit::bad_usage(option.advice(tool, flags)).into());
    }
    let text = match words {
        [] => None,
        // The server and its tool as two words.
        [name, rest @ ..] if !tool.contains(SEPARATOR) && is_name(name) => {
            let name = format!("{tool}{SEPARATOR}{name}");
            let words = [&name].into_iter().chain(rest).map(|word| shell_word(word));
            return Err(Exit::bad_usage(format!(
                "a tool's name is one word: `mcpzip call {}`",
                Vec::from_iter(words).join(" ")
            ))
            .into());
        }
        [text] => Some(text.as_str()),
        words => return Err(several(words).into()),
    };
    let text = match text {
        Some(text) if !flags.is_empty() => {
            return Err(Exit::bad_usage(format!(
                "give the arguments as JSON or as flags, not both: `{text}` belongs to no flag"
            ))
            .into());
        }
        Some("-") => match input {
            Some(Input::Text(text)) => Some(text.clone()),
            _ => Some(
                from_stdin(&mut tokio::io::stdin(), None)
                    .await?
                    .unwrap_or_default(),
            ),
        },
        Some(text) => Some(text.to_owned()),
        None if !flags.is_empty() => return Ok(Some(from_flags(tool, given(flags)?, app).await?)),
        None => match input {
            Some(Input::Text(text)) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
            Some(Input::Terminal) => None,
            Some(Input::Silent) if is_harmless(tool, app).await? => None,
            Some(Input::Silent) => return Err(Refused::Call(Exit::needs_own_process())),
            None if std::io::stdin().is_terminal() => None,
            None => from_pipe(tool, app).await?,
        },
    };
    let json =
        text.map(|text| match serde_json::from_str::<&RawValue>(&text) {
            Ok(json) => Ok(RawValue::from_string(on_one_line(json.get()))
                .context("the arguments are not JSON")?),
            Err(error) => Err(not_json(&text, &error).into()),
        });
    json.transpose()
}

/// The name and the value of a word like `title=hi`.
fn pair(text: &str) -> Option<(&str, &str)> {
    let is_name = |name: &str| {
        let legal = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        !name.is_empty() && name.chars().all(legal)
    };
    text.split_once('=').filter(|(name, _)| is_name(name))
}

/// Whether a word is more likely the name of a tool than arguments.
fn is_name(word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(is_part)
        && !matches!(word, "true" | "false" | "null")
}

/// Parameters with their values as flags, which go after `--` if `call` has an option of such a name.
fn as_flags(pairs: &[(&str, Option<&str>)]) -> String {
    let call = Call::command();
    let is_own =
        |name: &str| matches!(name, "help" | "version") || takes_value(&call, name).is_some();
    let flags = pairs.iter().map(|(name, value)| match value {
        Some(value) => format!("--{name} {}", shell_word(value)),
        None => format!("--{name}"),
    });
    let separator = pairs.iter().any(|(name, _)| is_own(name));
    let separator = separator.then(|| "--".to_owned());
    Vec::from_iter(separator.into_iter().chain(flags)).join(" ")
}

/// The error for several words. `title=hi body=x` gets the flags to write.
fn several(words: &[String]) -> Exit {
    let pairs = words.iter().map(|word| pair(word));
    let pairs = pairs.map(|pair| pair.map(|(name, value)| (name, Some(value))));
    let pairs: Option<Vec<_>> = pairs.collect();
    let given = words.join(" ");
    Exit::bad_usage(match pairs {
        Some(pairs) => format!(
            "`{given}`: write each parameter as a flag: `{}`",
            as_flags(&pairs)
        ),
        None => format!(
            "`{given}` is more than one word: put JSON in single quotes, such as `'{{\"title\": \"x\"}}'`, or write each parameter as a \
             flag, such as `--title x`"
        ),
    })
}

/// The length of a text in an error, in characters.
const SHOWN: usize = 200;

/// The error for arguments that are not JSON. `title=hi` gets an example in the right form.
fn not_json(text: &str, error: &serde_json::Error) -> Exit {
    let pair = pair(text);
    let (name, value) = pair.unwrap_or(("title", "x"));
    let json = serde_json::json!({ name: value }).to_string();
    let examples = format!(
        "`{}` or `{}`",
        as_flags(&[(name, Some(value))]),
        shell_word(&json)
    );
    let shown: String = text.chars().take(SHOWN).collect();
    let rest = if shown.len() < text.len() { "…" } else { "" };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let advice = match text.chars().all(is_name) {
        true => format!("\nA tool is named by one word, such as `SERVER__{shown}`."),
        false => String::new(),
    };
    Exit::bad_usage(match pair {
        Some(_) => format!("the arguments are not JSON: `{shown}{rest}`; write {examples}"),
        None => format!(
            "the arguments are not JSON ({error}): {shown}{rest}\nWrite them as flags or as JSON, such as {examples}{advice}"
        ),
    })
}

/// A message to a server is one line. JSON has line breaks only between values, where a space is equal.
fn on_one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

async fn from_pipe(tool: &str, app: &App) -> Result<Option<String>, Refused> {
    // One handle for both reads, because it keeps the bytes of a read that timed out.
    let mut stdin = tokio::io::stdin();
    if let Some(text) = from_stdin(&mut stdin, Some(SHORT_WAIT)).await? {
        return Ok(Some(text).filter(|text| !text.trim().is_empty()));
    }
    if is_harmless(tool, app).await? {
        return Ok(None);
    }
    match from_stdin(&mut stdin, Some(WAIT)).await? {
        Some(text) => Ok(Some(text).filter(|text| !text.trim().is_empty())),
        None => Err(Exit::failed(format!(
            "`{tool}` was not called: stdin is open and gave nothing for {WAIT:?}. Give the arguments (`{{}}` for none), `-` to wait for \
             stdin, or `< /dev/null`"
        ))
        .into()),
    }
}

/// Whether a call without arguments cannot change anything.
async fn is_harmless(tool: &str, app: &App) -> Result<bool, Refused> {
    let json = definition(tool, app).await?;
    Ok(Definition::parse(&json).is_ok_and(|definition| {
        definition.parameters.is_empty() || definition.hints.read_only == Some(true)
    }))
}

/// Reads stdin to its end, or to the end of a JSON object. `None` if it is silent for `patience`.
async fn from_stdin(
    stdin: &mut tokio::io::Stdin,
    patience: Option<Duration>,
) -> Result<Option<String>, Exit> {
    let cannot = "cannot read the arguments from stdin";
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        let read = stdin.read(&mut buffer);
        let limit = match bytes.is_empty() {
            true => patience,
            false => Some(PAUSE),
        };
        let count = match limit {
            None => read.await.context(cannot)?,
            Some(limit) => match tokio::time::timeout(limit, read).await {
                Ok(count) => count.context(cannot)?,
                Err(_) if bytes.is_empty() => return Ok(None),
                Err(_) => {
                    return Err(Exit::failed(format!(
                        "the arguments on stdin are incomplete: nothing more came for {PAUSE:?}"
                    )));
                }
            },
        };
        bytes.extend_from_slice(&buffer[..count]);
        if count == 0 || is_whole(&bytes) {
            let text = String::from_utf8(bytes).context("the arguments on stdin are not UTF-8")?;
            return Ok(Some(text));
        }
    }
}

/// Whether the text is a complete JSON object.
fn is_whole(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii();
    text.ends_with(b"}") && serde_json::from_slice::<&RawValue>(text).is_ok()
}

/// The advice for a call with wrong arguments, if an option of mcpzip has the name of a parameter.
pub(super) async fn advice(tool: &str, own: &[OwnOption], app: &App) -> Option<String> {
    if own.is_empty() {
        return None;
    }
    let json = definition(tool, app).await.ok()?;
    let definition = Definition::parse(&json).ok()?;
    let mut parameters = definition.parameters.iter();
    let is_parameter = |option: &&OwnOption| parameters.any(|known| known.name == option.flag);
    Some(own.iter().find(is_parameter)?.advice(tool, &[]))
}

/// The definition of a tool that is to be called. Its server is listed first if it is not in the catalog.
async fn definition(tool: &str, app: &App) -> Result<Box<RawValue>, Refused> {
    let view = app.proxy().unscoped();
    let tools = &app.proxy().tools;
    let described = tools.describe(&view, tool).await;
    let refused = |failure| {
        let failure = tools.refused(&view, None, tool, failure);
        Refused::Call(Exit::of_call(&failure, &view))
    };
    let (_, json) = described.map_err(refused)?;
    Ok(json)
}

/// Splits the flags from their values.
fn given(flags: &[String]) -> Result<Vec<Given>, Exit> {
    let mut given = Vec::new();
    let mut words = flags.iter().peekable();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix("--").filter(|flag| !flag.is_empty()) else {
            let example = match pair(word) {
                Some((name, value)) => format!("--{name} {}", shell_word(value)),
                None => "--title x".to_owned(),
            };
            return Err(Exit::bad_usage(format!(
                "`{word}` belongs to no parameter: parameters are flags, such as `{example}`"
            )));
        };
        given.push(match flag.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => {
                let value = words.next_if(|next| !next.starts_with("--"));
                (flag.to_owned(), value.cloned())
            }
        });
    }
    Ok(given)
}

/// Builds the arguments object from flags. The values stay text; the call's argument check converts them to the
/// schema's types.
async fn from_flags(tool: &str, given: Vec<Given>, app: &App) -> Result<Box<RawValue>, Refused> {
    let json = definition(tool, app).await?;
    let definition = Definition::parse(&json).context("the tool's definition cannot be used")?;
    if definition.parameters.is_empty() && !takes_others(&definition) {
        return Err(takes_nothing(tool, &given).into());
    }
    let mut values: Map<String, Value> = Map::new();
    for (flag, value) in given {
        let parameter = parameter(tool, &flag, &definition.parameters)?;
        let name = parameter.map_or(flag, |parameter| parameter.name.clone());
        let value = match (value, parameter) {
            (Some(value), _) => Value::String(value),
            (None, Some(parameter)) if !takes_none(parameter) => {
                return Err(Exit::bad_usage(format!(
                    "`--{name}` of `{tool}` needs a value, such as `--{name} x`"
                ))
                .into());
            }
            (None, _) => Value::Bool(true),
        };
        match values.get_mut(&name) {
            None => {
                let is_list = parameter.is_some_and(takes_list) && !is_json_list(&value);
                let value = match is_list {
                    true => Value::Array(vec![value]),
                    false => value,
                };
                values.insert(name, value);
            }
            Some(Value::Array(items)) => items.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    Ok(serde_json::value::to_raw_value(&values).context("the arguments are not JSON")?)
}

/// Whether a tool that names no parameters may take some: its schema describes them in another way.
fn takes_others(definition: &Definition<'_>) -> bool {
    let schema = definition.input_schema.map(RawValue::get);
    let schema: Option<Value> = schema.and_then(|schema| serde_json::from_str(schema).ok());
    let Some(members) = schema.as_ref().and_then(Value::as_object) else {
        return true;
    };
    let is_open = |value: &Value| *value != Value::Bool(false);
    let is_other = |(key, value): (&String, &Value)| match key.as_str() {
        "additionalProperties" => is_open(value),
        "patternProperties" | "allOf" | "anyOf" | "oneOf" | "if" | "$ref" | "$dynamicRef" => true,
        _ => false,
    };
    match members.get("additionalProperties") {
        // Nothing is said of what the tool takes.
        None if !members.contains_key("properties") => true,
        _ => members.iter().any(is_other),
    }
}

/// The error for flags of a tool without parameters.
fn takes_nothing(tool: &str, given: &[Given]) -> Exit {
    let names = given.iter().map(|(name, _)| format!("`--{name}`"));
    let names: Vec<String> = names.collect();
    Exit::bad_usage(format!(
        "`{tool}` takes no parameters, so {} cannot be given to it: `mcpzip call {}` calls it. Arguments in JSON are sent as they are",
        names.join(", "),
        shell_word(tool)
    ))
}

/// The parameter of a flag, ignoring letter case, `-` and `_`. `None` if the tool names no parameters.
fn parameter<'p, 'd>(
    tool: &str,
    flag: &str,
    known: &'p [Parameter<'d>],
) -> Result<Option<&'p Parameter<'d>>, Exit> {
    let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    let exact = known.iter().find(|parameter| parameter.name == flag);
    let mut alike = known
        .iter()
        .filter(|parameter| plain(&parameter.name) == plain(flag));
    let only = match (alike.next(), alike.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    };
    match exact.or(only) {
        None if known.is_empty() => Ok(None),
        None => {
            let names: Vec<&str> = known
                .iter()
                .map(|parameter| parameter.name.as_str())
                .collect();
            let advice = match nearest(flag, names.iter().copied()) {
                Some(near) => format!("did you mean `{}`?", as_flags(&[(near, None)])),
                None => format!("it has --{}", names.join(", --")),
            };
            Err(Exit::bad_usage(format!(
                "`{tool}` has no parameter `{flag}`; {advice}"
            )))
        }
        found => Ok(found),
    }
}

/// Whether a flag without a value may be meant: the parameter may be a boolean.
fn takes_none(parameter: &Parameter<'_>) -> bool {
    let schema: Option<Value> = serde_json::from_str(parameter.schema.get()).ok();
    match schema.as_ref().and_then(|schema| schema.get("type")) {
        Some(Value::String(kind)) => kind == "boolean",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "boolean"),
        _ => true,
    }
}

fn takes_list(parameter: &Parameter<'_>) -> bool {
    let schema: Option<Value> = serde_json::from_str(parameter.schema.get()).ok();
    schema.is_some_and(|schema| schema.get("type").and_then(Value::as_str) == Some("array"))
}

fn is_json_list(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    serde_json::from_str::<Vec<&RawValue>>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(line: &str) -> String {
        let call = Command::new("call")
            .arg(
                clap::Arg::new("json")
                    .long("json")
                    .action(ArgAction::SetTrue),
            )
            .arg(clap::Arg::new("config").long("config"));
        let words = line.split(' ').map(OsString::from).collect();
        let sorted = with_parameters_last(words, &call).into_iter();
        let words: Vec<String> = sorted.map(|word| word.into_string().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn what_is_not_our_own_goes_to_the_tool() {
        for (line, expected) in [
            ("m call t --title x", "m call t -- --title x"),
            ("m call t --title x --json", "m call t --json -- --title x"),
            ("m call --n=1 t", "m call t -- --n=1"),
            (
                "m call t --draft --config c",
                "m call t --config c -- --draft",
            ),
            ("m --config c call t --a 1", "m --config c call t -- --a 1"),
            ("m call t --a -5 {} --help", "m call t {} --help -- --a -5"),
            ("m call t -- --json x", "m call t -- --json x"),
            ("m call t {}", "m call t {}"),
            ("m call t -", "m call t -"),
            ("m search call --a 1", "m search call --a 1"),
            (
                "m --config call search --a 1",
                "m --config call search --a 1",
            ),
        ] {
            assert_eq!(sorted(line), expected, "{line}");
        }
    }
}
