// Texts of servers and agents as they are: what a page would hide or rearrange is written as an escape.

/** Control characters and those that `is_hidden` in src/tool/hidden.rs names; a test of src/cli/printable.rs compares the two. */
const HIDDEN = '\\u{0}-\\u{1f}\\u{7f}-\\u{9f}\\u{ad}\\u{34f}\\u{61c}\\u{115f}\\u{1160}\\u{17b4}\\u{17b5}\\u{180b}-\\u{180f}\\u{200b}-\\u{200f}\\u{2028}-\\u{202e}\\u{2060}-\\u{206f}\\u{2800}\\u{3164}\\u{e000}-\\u{f8ff}\\u{fe00}-\\u{fe0d}\\u{feff}\\u{ffa0}\\u{fff0}-\\u{fffb}\\u{fffe}-\\u{ffff}\\u{13430}-\\u{1343f}\\u{1bca0}-\\u{1bca3}\\u{1d159}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}\\u{f0000}-\\u{10ffff}';
/** The two variation selectors, where no emoji is before them. */
const SELECTORS = '(?<=[\\ufe0e\\ufe0f])[\\ufe0e\\ufe0f]|(?<=^|[\\0-\\x7f])[\\ufe0e\\ufe0f](?!\\u20e3)';
const odd = new RegExp(`[${HIDDEN}]|${SELECTORS}`, 'gu');

/** The text with each such character as `\\u{202e}`, as commands print it. */
export const printable = (text: string): string => text.replace(odd, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);

/** A text of several lines in that form: line breaks and tabs stay. */
export const printableLines = (text: string): string => text.split(/([\n\t])/).map((part, at) => (at % 2 ? part : printable(part))).join('');
