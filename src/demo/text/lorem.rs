//! Filler text, as much as is wanted: the large result of the demo.

use super::letters::capital;

/// That many paragraphs of that many words; the same seed gives the same text.
pub(super) fn lorem(paragraphs: usize, words: usize, seed: u64) -> String {
    const WORDS: [&str; 40] = [
        "lorem",
        "ipsum",
        "dolor",
        "sit",
        "amet",
        "consectetur",
        "adipiscing",
        "elit",
        "sed",
        "do",
        "eiusmod",
        "tempor",
        "incididunt",
        "ut",
        "labore",
        "et",
        "dolore",
        "magna",
        "aliqua",
        "enim",
        "ad",
        "minim",
        "veniam",
        "quis",
        "nostrud",
        "exercitation",
        "ullamco",
        "laboris",
        "nisi",
        "aliquip",
        "ex",
        "ea",
        "commodo",
        "consequat",
        "duis",
        "aute",
        "irure",
        "in",
        "velit",
        "esse",
    ];
    const FIRST: usize = 5;
    let mut state = seed;
    // A linear congruential generator with Knuth's constants; its high bits are the good ones.
    let mut below = |limit: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 40).unwrap_or_default() % limit
    };
    let mut paragraph = |is_first: bool| {
        let mut text = String::new();
        let mut left_in_sentence = 0;
        for i in 0..words {
            let word = WORDS[if is_first && i < FIRST {
                i
            } else {
                below(WORDS.len())
            }];
            if left_in_sentence == 0 {
                left_in_sentence = 6 + below(9);
                text.push_str(if i == 0 { "" } else { ". " });
                text.push_str(&capital(word));
            } else {
                text.push(' ');
                text.push_str(word);
            }
            left_in_sentence -= 1;
        }
        text + "."
    };
    (0..paragraphs)
        .map(|i| paragraph(i == 0))
        .collect::<Vec<_>>()
        .join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filler_text_has_the_length_asked_for_and_depends_on_the_seed_alone() {
        let text = lorem(200, 100, 1);
        assert_eq!(text.split("\n\n").count(), 200);
        assert_eq!(text.split_whitespace().count(), 20_000);
        assert_eq!(text, lorem(200, 100, 1));
        assert_ne!(text, lorem(200, 100, 2));
    }
}
