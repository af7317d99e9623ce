//! Tools that encode and decode.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::TEXT;
use crate::demo::schema::{Kind, with_default};
use crate::demo::tool::{Effect, Output, Tool};

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "base64_encode",
        title: "Base64 encode",
        description: "Encode a text (its UTF-8 bytes) in base64, with the standard or the URL-safe alphabet.",
        effect: Effect::Reads,
        parameters: &[
            TEXT,
            with_default(
                "url_safe",
                Kind::Flag,
                "false",
                "Whether to use `-` and `_` and no `=` at the end.",
            ),
        ],
        returns: &[],
        run: |_, arguments| {
            let standard = encode_base64(arguments.text("text").as_bytes());
            Ok(Output::Text(if arguments.flag("url_safe") {
                standard
                    .trim_end_matches('=')
                    .replace('+', "-")
                    .replace('/', "_")
            } else {
                standard
            }))
        },
    },
    Tool {
        name: "base64_decode",
        title: "Base64 decode",
        description: "Decode base64 into text, whichever alphabet it uses; white space and missing `=` do not matter.",
        effect: Effect::Reads,
        parameters: &[TEXT],
        returns: &[],
        run: |_, arguments| {
            Ok(Output::Text(as_text(decode_base64(
                arguments.text("text"),
            )?)?))
        },
    },
    Tool {
        name: "url_encode",
        title: "URL encode",
        description: "Percent-encode a text so that it can stand as a value in a URL's path or query.",
        effect: Effect::Reads,
        parameters: &[TEXT],
        returns: &[],
        run: |_, arguments| Ok(Output::Text(encode_percent(arguments.text("text")))),
    },
    Tool {
        name: "url_decode",
        title: "URL decode",
        description: "Decode the percent escapes of a URL or of one of its parts.",
        effect: Effect::Reads,
        parameters: &[
            TEXT,
            with_default(
                "plus_is_space",
                Kind::Flag,
                "false",
                "Whether `+` stands for a space, as in a form's data.",
            ),
        ],
        returns: &[],
        run: |_, arguments| {
            let text = arguments.text("text");
            let text = if arguments.flag("plus_is_space") {
                text.replace('+', " ")
            } else {
                text.to_owned()
            };
            Ok(Output::Text(as_text(decode_percent(&text)?)?))
        },
    },
    Tool {
        name: "hash_text",
        title: "Hash text",
        description: "Calculate the SHA-256 checksum of a text (its UTF-8 bytes), as hexadecimal digits.",
        effect: Effect::Reads,
        parameters: &[TEXT],
        returns: &[],
        run: |_, arguments| {
            let hash = Sha256::digest(arguments.text("text").as_bytes());
            Ok(Output::Text(hash.iter().fold(
                String::new(),
                |mut hex, byte| {
                    // Writing to a `String` cannot fail.
                    let _ = write!(hex, "{byte:02x}");
                    hex
                },
            )))
        },
    },
];

fn encode_base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |i| u32::from(chunk.get(i).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let digit = BASE64[(bits >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= chunk.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    text
}

fn decode_base64(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut known) = (0_u32, 0);
    for c in text
        .trim_end()
        .trim_end_matches('=')
        .chars()
        .filter(|c| !c.is_whitespace())
    {
        let standard = match c {
            '-' => '+',
            '_' => '/',
            other => other,
        };
        let digit = BASE64
            .iter()
            .position(|digit| char::from(*digit) == standard);
        let digit = digit
            .and_then(|digit| u32::try_from(digit).ok())
            .ok_or_else(|| format!("`{c}` is no digit of base64."))?;
        bits = (bits << 6 | digit) & 0xff_ffff;
        known += 6;
        if known >= 8 {
            known -= 8;
            bytes.push((bits >> known & 0xff) as u8);
        }
    }
    if known == 6 {
        return Err("The base64 text is cut off: one digit is left over at its end.".to_owned());
    }
    Ok(bytes)
}

fn encode_percent(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        // The unreserved characters of RFC 3986, section 2.3.
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn decode_percent(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        rest = others;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let hex = others
            .first_chunk::<2>()
            .filter(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        let byte = hex.and_then(|hex| u8::from_str_radix(str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(byte.ok_or("A `%` is not followed by two hexadecimal digits.")?);
        rest = &others[2..];
    }
    Ok(bytes)
}

fn as_text(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        format!(
            "What was decoded is not text: byte {} of {} is no UTF-8.",
            error.utf8_error().valid_up_to() + 1,
            error.as_bytes().len()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_survives_the_round_trip_at_every_length() {
        for (text, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(encode_base64(text.as_bytes()), encoded);
            assert_eq!(decode_base64(encoded).unwrap(), text.as_bytes());
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode_base64(&encode_base64(&all)).unwrap(), all);
        assert_eq!(decode_base64("_-8").unwrap(), [0xff, 0xef]);
        assert!(decode_base64("Zm9vY").is_err());
        assert!(decode_base64("Zg==Zg").is_err());
    }

    #[test]
    fn a_percent_sign_without_digits_is_refused() {
        for bad in ["%", "%4", "%4g", "%+1", "a%"] {
            assert!(decode_percent(bad).is_err(), "{bad} was taken");
        }
        assert_eq!(decode_percent("%41ü").unwrap(), "Aü".as_bytes());
    }
}
