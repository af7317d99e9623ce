//! Removes the accents of Latin letters; other letters stay unchanged.

/// The letters from U+00C0 to U+024F and from U+1E00 to U+1EFF without their accents; a blank for letters that have
/// none.
const LATIN: &str = "\
aaaaaa ceeeeiiiidnooooo ouuuuy  aaaaaa ceeeeiiiidnooooo ouuuuy yaaaaaaccccccccddddeeeeeeeeeegggg\
gggghhhhiiiiiiiiii  jjkkqllllll  llnnnnnn nnoooooo  rrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs\
\x20                               oo             uu                            aaiioouuuuuuuuuu aa\
aa    ggkkoooo  j   gg  nnaa    aaaaeeeeiiiioooorrrruuuusstt  hh      aaeeooooooooyy            \
\x20               ";
const MORE_LATIN: &str = "\
aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmmmmmmnnnnnnnnoooooooopppprrrrrrrr\
ssssssssssttttttttuuuuuuuuuuvvvvwwwwwwwwwwxxxxyyzzzzzzhtwy s    aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeee\
eeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyy      ";

/// Appends `c`, a letter in lower case, to `word` without its accent.
pub(super) fn fold(c: char, word: &mut String) {
    match c {
        'ß' | 'ẞ' => word.push_str("ss"),
        'æ' => word.push_str("ae"),
        'œ' => word.push_str("oe"),
        'þ' => word.push_str("th"),
        'ĳ' => word.push_str("ij"),
        _ => word.push(base(c)),
    }
}

fn base(c: char) -> char {
    let code = u32::from(c);
    let found = match code {
        0xc0..0x250 => LATIN.as_bytes()[(code - 0xc0) as usize],
        0x1e00..0x1f00 => MORE_LATIN.as_bytes()[(code - 0x1e00) as usize],
        // Full-width forms of the ASCII characters.
        0xff01..=0xff5e => u8::try_from(code - 0xff01 + 0x21).unwrap_or(b' '),
        _ => b' ',
    };
    if found == b' ' { c } else { char::from(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_come_off_and_other_letters_stay() {
        assert_eq!((LATIN.len(), MORE_LATIN.len()), (0x250 - 0xc0, 0x100));
        for (letters, plain) in [
            ("àçÿñö", "acyno"),
            ("øłđħıŧ", "oldhit"),
            ("ăčěńőřšťűŵźž", "acenorstuwzz"),
            ("ǎșț", "ast"),
            ("ẁạệỹ", "waey"),
            ("ßæœþĳ", "ssaeoethij"),
            ("ａｚ０９", "az09"),
            ("жλ天ə", "жλ天ə"),
        ] {
            let mut folded = String::new();
            letters.chars().for_each(|c| fold(c, &mut folded));
            assert_eq!(folded, plain, "{letters}");
        }
    }
}
