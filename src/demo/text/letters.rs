//! Letter case and plain letters.

/// `text` in the letter case of that name.
pub(super) fn cased(text: &str, style: &str) -> String {
    match style {
        "upper" => return text.to_uppercase(),
        "lower" => return text.to_lowercase(),
        "title" => {
            return text
                .split_inclusive(char::is_whitespace)
                .map(|word| capital(&word.to_lowercase()))
                .collect();
        }
        "sentence" => return capital(&text.to_lowercase()),
        _ => {}
    }
    let words = identifier_words(text);
    match style {
        "snake" => words.join("_"),
        "kebab" => words.join("-"),
        "constant" => words.join("_").to_uppercase(),
        "pascal" => words.iter().map(|word| capital(word)).collect(),
        _ => words
            .iter()
            .enumerate()
            .map(|(i, word)| if i == 0 { word.clone() } else { capital(word) })
            .collect(),
    }
}

/// The words of a text or an identifier in lower case; a capital begins one after a small letter or a digit, and the last capital
/// of several does when a small letter follows it.
fn identifier_words(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut words = vec![String::new()];
    for (i, c) in characters.iter().enumerate() {
        let before = i.checked_sub(1).map(|i| characters[i]);
        let begins = c.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_numeric()
                    || before.is_uppercase()
                        && characters
                            .get(i + 1)
                            .is_some_and(|next| next.is_lowercase())
            });
        if begins || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// With a capital at the beginning.
pub(super) fn capital(word: &str) -> String {
    let mut characters = word.chars();
    characters
        .next()
        .map(|first| first.to_uppercase().chain(characters).collect())
        .unwrap_or_default()
}

/// Lower-case words without accents, joined by dashes.
pub(super) fn slug(text: &str) -> String {
    let plain: String = text.to_lowercase().chars().map(plain_letter).collect();
    identifier_words(&plain).join("-")
}

/// A Latin letter without its accent; what is no such letter becomes a gap if it is not ASCII.
fn plain_letter(c: char) -> &'static str {
    const PLAIN: &[(&str, &str)] = &[
        ("àáâãåāăą", "a"),
        ("çćĉċč", "c"),
        ("ďđð", "d"),
        ("èéêëēĕėęě", "e"),
        ("ĝğġģ", "g"),
        ("ĥħ", "h"),
        ("ìíîïĩīĭįı", "i"),
        ("ĵ", "j"),
        ("ķ", "k"),
        ("ĺļľŀł", "l"),
        ("ñńņňŋ", "n"),
        ("òóôõōŏőø", "o"),
        ("ŕŗř", "r"),
        ("śŝşšș", "s"),
        ("ţťŧț", "t"),
        ("ùúûũūŭůűų", "u"),
        ("ŵ", "w"),
        ("ýÿŷ", "y"),
        ("źżž", "z"),
        ("ä", "ae"),
        ("ö", "oe"),
        ("ü", "ue"),
        ("ß", "ss"),
        ("æ", "ae"),
        ("œ", "oe"),
        ("þ", "th"),
    ];
    const ASCII: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
    if let Some(at) = ASCII.find(c) {
        return &ASCII[at..=at];
    }
    PLAIN
        .iter()
        .find(|(letters, _)| letters.contains(c))
        .map_or(" ", |(_, plain)| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_identifiers_of_every_style() {
        for (text, words) in [
            ("parseHTTPHeader", "parse http header"),
            ("XMLId", "xml id"),
            ("snake_case-kebab.dot", "snake case kebab dot"),
            ("__a__", "a"),
            ("v2Final", "v2 final"),
            ("", ""),
        ] {
            assert_eq!(identifier_words(text).join(" "), words, "{text}");
        }
    }
}
