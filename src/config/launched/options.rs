//! The options before the first other word.

use std::collections::BTreeSet;

/// The options of a program, with a space between them.
pub(super) struct Options {
    /// Those without a value.
    pub(super) flags: &'static str,
    /// Those with one.
    pub(super) valued: &'static str,
    /// Those that name what is started.
    pub(super) named: &'static str,
}

/// One way to read them.
#[derive(Default, Clone)]
pub(super) struct Reading<'a> {
    /// The position of what follows the options.
    pub(super) at: usize,
    /// The options with their values.
    pub(super) options: Vec<(&'a str, Option<&'a str>)>,
    /// The values of those that name what is started.
    pub(super) named: Vec<&'a str>,
    /// Whether one of them is not known.
    pub(super) is_unsure: bool,
    /// Whether there are too many ways to read them: this stands for the others.
    pub(super) is_cut: bool,
}

/// The place of an option's value.
enum Value<'a> {
    Missing,
    Joined(&'a str),
    Next,
    Unknown,
}

/// The most steps on all ways, and the most ways to the end.
const MOST: usize = 200;
const MOST_WAYS: usize = 32;

pub(super) fn has(list: &str, option: &str) -> bool {
    list.split(' ').any(|known| known == option)
}

impl Options {
    /// All ways to read `words`.
    pub(super) fn readings<'a>(&self, words: &'a [String]) -> Vec<Reading<'a>> {
        let (mut done, mut open) = (Vec::new(), vec![Reading::default()]);
        let mut seen = BTreeSet::new();
        while let Some(mut reading) = open.pop() {
            if seen.len() > MOST || done.len() >= MOST_WAYS {
                let (is_cut, is_unsure) = (true, true);
                done.push(Reading {
                    is_cut,
                    is_unsure,
                    ..Reading::default()
                });
                break;
            }
            if !seen.insert((reading.at, reading.named.clone())) {
                continue;
            }
            let word = match words.get(reading.at).map(String::as_str) {
                Some("--") => {
                    reading.at += 1;
                    done.push(reading);
                    continue;
                }
                Some(word) if word.starts_with('-') && word != "-" => word,
                _ => {
                    done.push(reading);
                    continue;
                }
            };
            reading.at += 1;
            let next = words.get(reading.at).map(String::as_str);
            let (option, value) = self.value(word);
            reading.is_unsure |= option.starts_with("--") && !self.knows(option);
            if matches!(value, Value::Unknown) {
                reading.is_unsure = true;
                let mut with = reading.clone();
                with.at += 1;
                with.options.push((option, next));
                open.extend(next.map(|_| with));
            }
            let value = match value {
                Value::Next => {
                    reading.at += 1;
                    next
                }
                Value::Joined(value) => Some(value),
                Value::Missing | Value::Unknown => None,
            };
            if has(self.named, option) {
                reading.named.extend(value);
            }
            reading.options.push((option, value));
            open.push(reading);
        }
        done
    }

    /// An option without its value, and that.
    fn value<'a>(&self, word: &'a str) -> (&'a str, Value<'a>) {
        let takes = |option: &str| has(self.valued, option) || has(self.named, option);
        let (option, joined) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (word, None),
        };
        match joined {
            _ if has(self.flags, option) => return (option, Value::Missing),
            Some(value) if takes(option) => return (option, Value::Joined(value)),
            None if takes(option) => return (option, Value::Next),
            _ => {}
        }
        if word.starts_with("--") {
            return (option, joined.map_or(Value::Unknown, Value::Joined));
        }
        // Several of one letter, of which the last may have its value in the same word.
        for (at, letter) in word.char_indices().skip(1) {
            let one = format!("-{letter}");
            let rest = &word[at + letter.len_utf8()..];
            if takes(&one) {
                let value = match rest {
                    "" => Value::Next,
                    rest => Value::Joined(rest.strip_prefix('=').unwrap_or(rest)),
                };
                return (if at == 1 { &word[..2] } else { word }, value);
            }
            if !has(self.flags, &one) {
                return (word, Value::Unknown);
            }
        }
        (word, Value::Missing)
    }

    /// Whether an option is one of these.
    fn knows(&self, option: &str) -> bool {
        let all = [self.flags, self.valued, self.named];
        all.iter().any(|list| has(list, option))
    }

    /// Whether an option is a known one without a value.
    pub(super) fn is_flag(&self, option: &str) -> bool {
        matches!(self.value(option).1, Value::Missing)
    }
}
