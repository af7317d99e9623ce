//! Comma-separated values as RFC 4180 has them: quotes around a cell, doubled within it, line breaks among them.

/// The rows of `text`; empty lines are passed over.
///
/// # Errors
/// When a quote is not closed, or something follows a closed one.
pub(super) fn rows(text: &str, delimiter: char) -> Result<Vec<Vec<String>>, String> {
    let mut rows = Vec::new();
    let mut row = Vec::new();
    let mut characters = text.chars().peekable();
    loop {
        let mut cell = String::new();
        if characters.next_if_eq(&'"').is_some() {
            loop {
                match characters.next() {
                    None => {
                        return Err(format!(
                            "The quote in row {} is not closed.",
                            rows.len() + 1
                        ));
                    }
                    Some('"') if characters.next_if_eq(&'"').is_none() => break,
                    Some(c) => cell.push(c),
                }
            }
        } else {
            while let Some(c) = characters.next_if(|c| *c != delimiter && !matches!(c, '\r' | '\n'))
            {
                cell.push(c);
            }
        }
        row.push(cell);
        characters.next_if_eq(&'\r');
        match characters.next() {
            Some(c) if c == delimiter => continue,
            Some('\n') | None => {
                let row = std::mem::take(&mut row);
                if row != [""] {
                    rows.push(row);
                }
            }
            Some(c) => {
                return Err(format!(
                    "Row {} has `{c}` after a closing quote.",
                    rows.len() + 1
                ));
            }
        }
        if characters.peek().is_none() {
            return Ok(rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_with_their_quotes_and_line_breaks() {
        for (text, expected) in [
            ("", vec![]),
            ("a;b\n\nc;\n", vec![vec!["a", "b"], vec!["c", ""]]),
            ("\"a;\n\"\"\";b", vec![vec!["a;\n\"", "b"]]),
            ("\"\"\r\nx\r\n", vec![vec!["x"]]),
            (";", vec![vec!["", ""]]),
        ] {
            assert_eq!(rows(text, ';').unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_broken_quote_is_refused() {
        assert!(
            rows("a,\"b", ',')
                .unwrap_err()
                .contains("row 1 is not closed")
        );
        assert!(
            rows("a\n\"b\"c", ',')
                .unwrap_err()
                .contains("Row 2 has `c`")
        );
    }
}
