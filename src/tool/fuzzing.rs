//! Properties of tool definitions and signatures that must hold for any input.

use serde_json::value::RawValue;

use super::{Definition, ServerName, first_sentence, render_hit, render_hits, tokens_of};

/// A tool's definition as JSON, or a description alone: the displayed text is short and safe for a terminal.
pub(crate) fn signature(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let sentence = first_sentence(text);
    assert!(!sentence.contains('\n'), "{sentence:?}");
    check_shown(&sentence);
    assert!(
        tokens_of(&sentence) <= 60,
        "{} tokens: {sentence:?}",
        tokens_of(&sentence)
    );
    let Ok(raw) = serde_json::from_str::<&RawValue>(text) else {
        return;
    };
    let Ok(definition) = Definition::parse(raw) else {
        return;
    };
    let server = ServerName::new("server").expect("it is a name");
    let hit = render_hit(&server, &definition);
    check_shown(&hit);
    assert!(hit.starts_with("server__"));
    // The budget of five hits together.
    let hits = render_hits([(&server, &definition); 5], 400);
    assert_eq!(hits.len(), 5);
    hits.iter().for_each(|hit| check_shown(hit));
}

fn check_shown(text: &str) {
    let is_hidden = |c: char| {
        c != '\n' && c.is_control()
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    };
    assert!(!text.contains(is_hidden), "{text:?}");
}
