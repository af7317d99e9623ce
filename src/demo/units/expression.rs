//! Arithmetic expressions: `2 * (3 + x)^2`, read and calculated in one pass.
//!
//! `^` binds to the right and closer than a sign before it, so that `-2^2` is -4, as it is written on paper.

use serde_json::{Map, Value};

/// How deep an expression may be nested; the parser calls itself at each level.
const DEEPEST: usize = 100;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ExpressionError {
    #[error("the expression ends too early")]
    End,
    #[error("`{found}` at character {at} is not expected there")]
    Unexpected { found: char, at: usize },
    #[error("`{name}` is neither a variable nor a constant (pi, e, tau)")]
    Name { name: String },
    #[error("there is no function `{name}`; there are {FUNCTIONS}")]
    Function { name: String },
    #[error("{name} takes {wanted}, not {given}")]
    Arguments {
        name: String,
        wanted: &'static str,
        given: usize,
    },
    #[error(
        "the result is not a number: a division by zero, or a value outside of a function's range"
    )]
    NotANumber,
    #[error("the expression is nested too deep")]
    TooDeep,
}

const FUNCTIONS: &str = "sqrt, cbrt, abs, floor, ceil, round, ln, log, log2, exp, sin, cos, tan, asin, acos, atan, min, \
                         max, mod";

/// Calculates `text`; `variables` are numbers by name.
///
/// # Errors
/// When it is no expression, uses a name that is not there, or has no finite value.
pub(super) fn evaluate(text: &str, variables: &Map<String, Value>) -> Result<f64, ExpressionError> {
    let mut parser = Parser {
        characters: text.chars().collect(),
        at: 0,
        depth: 0,
        variables,
    };
    let value = parser.sum()?;
    match parser.peek() {
        Some(found) => Err(ExpressionError::Unexpected {
            found,
            at: parser.at + 1,
        }),
        None if value.is_finite() => Ok(value),
        None => Err(ExpressionError::NotANumber),
    }
}

struct Parser<'a> {
    characters: Vec<char>,
    at: usize,
    depth: usize,
    variables: &'a Map<String, Value>,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<f64, ExpressionError> {
        let mut value = self.product()?;
        loop {
            if self.takes('+') {
                value += self.product()?;
            } else if self.takes('-') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, ExpressionError> {
        let mut value = self.signed()?;
        loop {
            if self.takes('*') || self.takes('×') {
                value *= self.signed()?;
            } else if self.takes('/') || self.takes('÷') {
                value /= self.signed()?;
            } else if self.takes('%') {
                value %= self.signed()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn signed(&mut self) -> Result<f64, ExpressionError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(ExpressionError::TooDeep);
        }
        let value = if self.takes('-') {
            -self.signed()?
        } else if self.takes('+') {
            self.signed()?
        } else {
            self.power()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn power(&mut self) -> Result<f64, ExpressionError> {
        let base = self.atom()?;
        if self.takes('^') {
            Ok(base.powf(self.signed()?))
        } else {
            Ok(base)
        }
    }

    fn atom(&mut self) -> Result<f64, ExpressionError> {
        match self.peek() {
            None => Err(ExpressionError::End),
            Some('(') => {
                self.at += 1;
                let value = self.sum()?;
                self.expect(')')?;
                Ok(value)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' => self.named(),
            Some(found) => Err(ExpressionError::Unexpected {
                found,
                at: self.at + 1,
            }),
        }
    }

    fn number(&mut self) -> Result<f64, ExpressionError> {
        let start = self.at;
        self.skip(|c| c.is_ascii_digit() || c == '.');
        if matches!(self.characters.get(self.at), Some('e' | 'E')) {
            let sign = usize::from(matches!(self.characters.get(self.at + 1), Some('+' | '-')));
            // Without digits behind it the letter is a name, and no operator stands before it.
            if self
                .characters
                .get(self.at + 1 + sign)
                .is_some_and(char::is_ascii_digit)
            {
                self.at += 1 + sign;
                self.skip(|c| c.is_ascii_digit());
            }
        }
        let text: String = self.characters[start..self.at].iter().collect();
        text.parse().map_err(|_| ExpressionError::Unexpected {
            found: self.characters[start],
            at: start + 1,
        })
    }

    /// A variable, a constant or the call of a function.
    fn named(&mut self) -> Result<f64, ExpressionError> {
        let start = self.at;
        self.skip(|c| c.is_alphanumeric() || c == '_');
        let name: String = self.characters[start..self.at].iter().collect();
        if self.takes('(') {
            let mut arguments = Vec::new();
            if !self.takes(')') {
                arguments.push(self.sum()?);
                while self.takes(',') {
                    arguments.push(self.sum()?);
                }
                self.expect(')')?;
            }
            return call(&name, &arguments);
        }
        if let Some(value) = self.variables.get(&name).and_then(Value::as_f64) {
            return Ok(value);
        }
        match name.as_str() {
            "pi" | "π" => Ok(std::f64::consts::PI),
            "tau" => Ok(std::f64::consts::TAU),
            "e" => Ok(std::f64::consts::E),
            _ => Err(ExpressionError::Name { name }),
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.skip(char::is_whitespace);
        self.characters.get(self.at).copied()
    }

    fn takes(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, wanted: char) -> Result<(), ExpressionError> {
        match self.peek() {
            Some(found) if found == wanted => {
                self.at += 1;
                Ok(())
            }
            Some(found) => Err(ExpressionError::Unexpected {
                found,
                at: self.at + 1,
            }),
            None => Err(ExpressionError::End),
        }
    }

    fn skip(&mut self, wanted: impl Fn(char) -> bool) {
        while self.characters.get(self.at).is_some_and(|c| wanted(*c)) {
            self.at += 1;
        }
    }
}

fn call(name: &str, arguments: &[f64]) -> Result<f64, ExpressionError> {
    let wrong = |wanted| {
        Err(ExpressionError::Arguments {
            name: name.to_owned(),
            wanted,
            given: arguments.len(),
        })
    };
    match name {
        "min" | "max" if arguments.is_empty() => return wrong("at least one argument"),
        "min" => return Ok(arguments.iter().copied().fold(f64::INFINITY, f64::min)),
        "max" => return Ok(arguments.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        "mod" => {
            return if let [a, b] = arguments {
                Ok(a.rem_euclid(*b))
            } else {
                wrong("two arguments")
            };
        }
        _ => {}
    }
    let function: fn(f64) -> f64 = match name {
        "sqrt" => f64::sqrt,
        "cbrt" => f64::cbrt,
        "abs" => f64::abs,
        "floor" => f64::floor,
        "ceil" => f64::ceil,
        "round" => f64::round,
        "ln" => f64::ln,
        "log" | "log10" => f64::log10,
        "log2" => f64::log2,
        "exp" => f64::exp,
        "sin" => f64::sin,
        "cos" => f64::cos,
        "tan" => f64::tan,
        "asin" => f64::asin,
        "acos" => f64::acos,
        "atan" => f64::atan,
        _ => {
            return Err(ExpressionError::Function {
                name: name.to_owned(),
            });
        }
    };
    if let [value] = arguments {
        Ok(function(*value))
    } else {
        wrong("one argument")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(text: &str) -> Result<f64, ExpressionError> {
        let variables = json!({"x": 3, "e": 2.5});
        evaluate(text, variables.as_object().unwrap())
    }

    #[test]
    fn an_expression_has_the_value_that_it_has_on_paper() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("10 - 4 - 3", 3.0),
            ("2 ^ 3 ^ 2", 512.0),
            ("-2 ^ 2", -4.0),
            ("2 ^ -1", 0.5),
            ("7 % 4 / 2", 1.5),
            ("--3", 3.0),
            ("1.5e3 + .5", 1500.5),
            ("sqrt(16) + max(1, x, 2)", 7.0),
            ("mod(-1, 3)", 2.0),
            ("round(pi * 100)", 314.0),
            ("e", 2.5),
            ("cos(0)×2", 2.0),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_explained() {
        let unexpected = |found, at| ExpressionError::Unexpected { found, at };
        for (text, error) in [
            ("", ExpressionError::End),
            ("(1", ExpressionError::End),
            ("1 2", unexpected('2', 3)),
            ("2e", unexpected('e', 2)),
            ("1..2", unexpected('1', 1)),
            ("3 $ 4", unexpected('$', 3)),
            (
                "y",
                ExpressionError::Name {
                    name: "y".to_owned(),
                },
            ),
            (
                "f(1)",
                ExpressionError::Function {
                    name: "f".to_owned(),
                },
            ),
            (
                "sin(1, 2)",
                ExpressionError::Arguments {
                    name: "sin".to_owned(),
                    wanted: "one argument",
                    given: 2,
                },
            ),
            ("1 / 0", ExpressionError::NotANumber),
            ("ln(-1)", ExpressionError::NotANumber),
        ] {
            assert_eq!(value(text), Err(error), "{text}");
        }
        assert_eq!(value(&"(".repeat(100_000)), Err(ExpressionError::TooDeep));
        assert_eq!(value(&"-".repeat(100_000)), Err(ExpressionError::TooDeep));
    }
}
