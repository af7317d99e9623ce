//! Descriptions of invalid arguments that an agent can act on.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{Fault, MAX_FAULTS, item_path, member_path};
use crate::text::{nearest, shortened};
use crate::tool::type_expression;

/// The maximum length of a quoted value, in characters.
const MAX_ECHO: usize = 60;
/// The maximum number of names and enum values in one fault.
const MAX_LISTED: usize = 10;
/// The maximum nesting of alternatives that are explained.
const MAX_NESTED: usize = 4;

/// Collects the faults of one check.
pub(super) struct Report<'r> {
    schema: &'r Value,
    schema_raw: &'r RawValue,
    arguments: &'r Value,
    faults: Vec<Fault>,
}

/// Converts the validator's `errors` to faults, at most [`MAX_FAULTS`].
pub(super) fn faults<'e>(
    schema: &Value,
    schema_raw: &RawValue,
    arguments: &Value,
    errors: impl Iterator<Item = ValidationError<'e>>,
) -> Vec<Fault> {
    let mut report = Report {
        schema,
        schema_raw,
        arguments,
        faults: Vec::new(),
    };
    for error in errors {
        report.add(&error, 0);
        if report.faults.len() >= MAX_FAULTS {
            break;
        }
    }
    report.faults.truncate(MAX_FAULTS);
    report.faults
}

/// Whether the validator gave up on a pattern instead of finding a fault.
pub(super) fn is_engine_failure(error: &ValidationError<'_>) -> bool {
    match error.kind() {
        ValidationErrorKind::BacktrackLimitExceeded { .. }
        | ValidationErrorKind::RegexEngineFailure { .. } => true,
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            context.iter().flatten().any(is_engine_failure)
        }
        ValidationErrorKind::PropertyNames { error } => is_engine_failure(error),
        _ => false,
    }
}

/// The fault of arguments that are not an object.
pub(super) fn not_an_object(sent: &RawValue) -> Fault {
    let value = serde_json::from_str(sent.get()).unwrap_or_default();
    Fault {
        path: String::new(),
        message: format!("the arguments must be an object; got {}", echo(&value)),
    }
}

impl<'r> Report<'r> {
    fn add(&mut self, error: &ValidationError<'_>, nested: usize) {
        use ValidationErrorKind as Kind;
        let path = self.path(error);
        let place = if path.is_empty() {
            "the arguments".to_owned()
        } else {
            format!("`{path}`")
        };
        let got = echo(error.instance());
        let says = |what: String| format!("{place} must {what}; got {got}");
        let message = match error.kind() {
            Kind::Required { property } => return self.missing(error, &path, property),
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                return self.unknown(error, &path, unexpected);
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                match best(context, error).filter(|_| nested < MAX_NESTED) {
                    Some(branch) => {
                        return branch.iter().for_each(|error| self.add(error, nested + 1));
                    }
                    None => says(format!("be {}", self.expected(error))),
                }
            }
            Kind::Type { .. } => says(format!("be {}", self.expected(error))),
            Kind::Enum { options } => {
                says(format!("be one of {}", listed(options, error.instance())))
            }
            Kind::Constant { expected_value } => says(format!("be {}", echo(expected_value))),
            Kind::OneOfMultipleValid { .. } => {
                format!("{place} fits more than one of the alternatives; only one may fit")
            }
            Kind::Minimum { limit } => says(format!("be at least {limit}")),
            Kind::Maximum { limit } => says(format!("be at most {limit}")),
            Kind::ExclusiveMinimum { limit } => says(format!("be more than {limit}")),
            Kind::ExclusiveMaximum { limit } => says(format!("be less than {limit}")),
            Kind::MultipleOf { multiple_of } => says(format!("be a multiple of {multiple_of}")),
            Kind::MinLength { limit } => says(format!("have at least {limit} characters")),
            Kind::MaxLength { limit } => says(format!("have at most {limit} characters")),
            Kind::MinItems { limit } => says(format!("have at least {limit} items")),
            Kind::MaxItems { limit } => says(format!("have at most {limit} items")),
            Kind::Pattern { pattern } => says(format!(
                "match the pattern {}",
                shortened(&pattern.replace(char::is_control, ""), 100)
            )),
            Kind::UniqueItems => says("have no item twice".to_owned()),
            _ => format!(
                "{place}: {}",
                shortened(
                    &error.masked().to_string().replace(char::is_control, ""),
                    160
                )
            ),
        };
        self.push(path, message);
    }

    fn missing(&mut self, error: &ValidationError<'_>, path: &str, property: &Value) {
        let name = property.as_str().unwrap_or_default();
        let path = member_path(path, name);
        let schema = self
            .parent(error)
            .and_then(|parent| parent.get("properties")?.get(name));
        let expected = schema
            .and_then(|schema| self.expression(schema))
            .map(|text| format!(": {text}"));
        let sent = self.misnamed(error, name).map(|sent| {
            let sent = shortened(&sent.replace(char::is_control, ""), 100);
            format!("; `{sent}` is not a parameter: did you mean `{name}`?")
        });
        let message = format!(
            "`{path}` is required{}{}",
            expected.unwrap_or_default(),
            sent.unwrap_or_default()
        );
        self.push(path, message);
    }

    /// The argument that the schema does not name, and that was probably meant to be the missing parameter `name`.
    fn misnamed<'e>(&self, error: &'e ValidationError<'_>, name: &str) -> Option<&'e str> {
        let properties = self.parent(error)?.get("properties")?.as_object()?;
        let sent = error.instance().as_object()?.keys().map(String::as_str);
        let mut others = sent.filter(|sent| !properties.contains_key(*sent));
        others.find(|sent| nearest(sent, std::iter::once(name)).is_some())
    }

    fn unknown(&mut self, error: &ValidationError<'_>, path: &str, unexpected: &[String]) {
        let mut known: Vec<&str> = self
            .parent(error)
            .and_then(|parent| parent.get("properties")?.as_object())
            .map(|properties| properties.keys().map(String::as_str).collect())
            .unwrap_or_default();
        // A name that is already present is not a useful suggestion.
        known.retain(|name| error.instance().get(name).is_none());
        for name in unexpected {
            let path = member_path(path, name);
            let path = shortened(&path.replace(char::is_control, ""), 100);
            let hint = match nearest(name, known.iter().copied()) {
                Some(near) => format!("; did you mean `{near}`?"),
                None if known.is_empty() => String::new(),
                None => {
                    let more = if known.len() > MAX_LISTED {
                        ", …"
                    } else {
                        ""
                    };
                    format!(
                        "; still free: {}{more}",
                        known[..known.len().min(MAX_LISTED)].join(", ")
                    )
                }
            };
            let message = format!("`{path}` is not a parameter{hint}");
            self.push(path, message);
        }
    }

    fn push(&mut self, path: String, message: String) {
        if self.faults.len() < MAX_FAULTS
            && !self.faults.iter().any(|known| known.message == message)
        {
            self.faults.push(Fault { path, message });
        }
    }

    /// The schema with the keyword that failed.
    fn parent(&self, error: &ValidationError<'_>) -> Option<&'r Value> {
        self.schema
            .pointer(error.schema_path().as_str().rsplit_once('/')?.0)
    }

    fn expected(&self, error: &ValidationError<'_>) -> String {
        self.parent(error)
            .and_then(|schema| self.expression(schema))
            .unwrap_or_else(|| "of another type".to_owned())
    }

    fn expression(&self, schema: &Value) -> Option<String> {
        Some(type_expression(
            &to_raw_value(schema).ok()?,
            self.schema_raw,
        ))
    }

    /// The position of the fault, such as `labels[0].name`.
    fn path(&self, error: &ValidationError<'_>) -> String {
        let mut path = String::new();
        let mut value = Some(self.arguments);
        for step in error.instance_path().as_str().split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let inner = match (value, step.parse::<usize>()) {
                (Some(Value::Array(items)), Ok(at)) => {
                    path = item_path(&path, at);
                    items.get(at)
                }
                _ => {
                    path = member_path(&path, &step);
                    value.and_then(|value| value.get(&step))
                }
            };
            value = inner;
        }
        path
    }
}

/// The closest alternative: it accepts this kind of value and has the fewest faults in it.
fn best<'c, 'e>(
    context: &'c [Vec<ValidationError<'e>>],
    error: &ValidationError<'_>,
) -> Option<&'c Vec<ValidationError<'e>>> {
    let here = error.instance_path().as_str();
    let fits = |branch: &&Vec<ValidationError<'_>>| {
        !branch.is_empty()
            && !branch.iter().any(|e| {
                matches!(e.kind(), ValidationErrorKind::Type { .. })
                    && e.instance_path().as_str() == here
            })
    };
    // A different constant indicates another alternative; it counts more than missing members.
    let distance = |branch: &&Vec<ValidationError<'_>>| {
        let tags = branch
            .iter()
            .filter(|e| matches!(e.kind(), ValidationErrorKind::Constant { .. }))
            .count();
        (tags, branch.len())
    };
    context.iter().filter(fits).min_by_key(distance)
}

fn listed(options: &Value, got: &Value) -> String {
    let Some(values) = options.as_array() else {
        return "the listed values".to_owned();
    };
    let mut shown: Vec<String> = values.iter().take(MAX_LISTED).map(echo).collect();
    if values.len() > MAX_LISTED {
        shown.push(format!("… ({} in all)", values.len()));
        let near = got
            .as_str()
            .and_then(|got| nearest(got, values.iter().filter_map(Value::as_str)));
        if let Some(near) = near
            .map(|near| echo(&near.into()))
            .filter(|near| !shown.contains(near))
        {
            shown.insert(0, near);
        }
    }
    shown.join(", ")
}

/// `value` as JSON if that is short, else its kind.
fn echo(value: &Value) -> String {
    let json = match value {
        Value::String(text) if text.len() > 4 * MAX_ECHO => String::new(),
        Value::Array(items) if items.len() > MAX_ECHO => String::new(),
        Value::Object(members) if members.len() > MAX_ECHO => String::new(),
        value => value.to_string(),
    };
    if !json.is_empty()
        && json.chars().count() <= MAX_ECHO
        && !json.contains(|c: char| c.is_control())
    {
        return json;
    }
    match value {
        Value::String(text) => format!("a string of {} characters", text.chars().count()),
        Value::Array(items) => format!("an array of {} items", items.len()),
        Value::Object(members) => format!("an object of {} members", members.len()),
        _ => "a long value".to_owned(),
    }
}
