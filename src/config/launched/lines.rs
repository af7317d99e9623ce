//! The commands in the text that a shell runs.

/// The words that may stand before a command.
const KEYWORDS: &[&str] = &[
    "!", "if", "then", "else", "elif", "do", "while", "until", "@",
];

/// Commands that start no server.
const ASIDE: &[&str] = &[
    ":", "[", "alias", "cat", "cd", "echo", "exit", "export", "false", "mkdir", "popd", "printf",
    "pushd", "pwd", "read", "set", "shopt", "sleep", "source", "tee", "test", "touch", "trap",
    "true", "ulimit", "umask", "unset", ".",
];

/// The work of commands that come before a server: `npm install`, `git pull`.
const PREPARING: &[&str] = &[
    "install", "i", "ci", "add", "sync", "pull", "fetch", "checkout", "build", "update", "upgrade",
    "use", "activate", "login",
];

/// The commands of a line, each as its words: without variables before them, redirections and what only prepares.
pub(super) fn commands(line: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let (mut word, mut quote): (Option<String>, _) = (None, None);
    // The word after `>` is a file.
    let mut is_file = false;
    let end = |word: &mut Option<String>, is_file: &mut bool, all: &mut Vec<Vec<String>>| {
        if let Some(word) = word.take()
            && !std::mem::take(is_file)
            && let Some(last) = all.last_mut()
        {
            last.push(word);
        }
    };
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => {
                let escaped = chars.next_if(|c| "\"'\\$`|&;<>(){}#*? \t\n".contains(*c));
                let word = word.get_or_insert_default();
                word.push(escaped.unwrap_or('\\'));
            }
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '>' | '<') => {
                word = word.filter(|word| word.parse::<u8>().is_err());
                end(&mut word, &mut is_file, &mut all);
                while chars.next_if(|c| ">&|<".contains(*c)).is_some() {}
                is_file = true;
            }
            (None, '#') if word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            (None, '{' | '}') if word.is_some() => word.get_or_insert_default().push(c),
            (None, ';' | '|' | '&' | '\n' | '(' | ')' | '`' | '{' | '}') => {
                end(&mut word, &mut is_file, &mut all);
                is_file = false;
                all.push(Vec::new());
            }
            (None, c) if c.is_whitespace() => end(&mut word, &mut is_file, &mut all),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    end(&mut word, &mut is_file, &mut all);
    let all = all.into_iter().map(|words| {
        let is_before = |word: &String| is_variable(word) || KEYWORDS.contains(&word.as_str());
        words.into_iter().skip_while(is_before).collect::<Vec<_>>()
    });
    let is_in =
        |list: &[&str], word: Option<&String>| word.is_some_and(|it| list.contains(&it.as_str()));
    let mut all: Vec<Vec<String>> = all
        .filter(|words| !words.is_empty() && !is_in(ASIDE, words.first()))
        .collect();
    let last = all.pop();
    all.retain(|words| !is_in(PREPARING, words.get(1)));
    all.extend(last);
    all
}

/// Whether a word gives a variable its value.
pub(super) fn is_variable(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
