//! Package runners: programs that download the program they start.

use super::Stdio;

/// Runners of packages and images. Some do other things as well, which start no slower for it.
const RUNNERS: &[&str] = &[
    "bun", "bunx", "deno", "dnx", "docker", "go", "nerdctl", "npm", "npx", "pipx", "pnpm", "pnpx",
    "podman", "uv", "uvx", "yarn",
];

impl Stdio {
    /// Whether the server may have to be downloaded before it starts, as package runners do at first.
    #[must_use]
    pub(crate) fn may_install(&self) -> bool {
        may_install(&self.command, &self.args)
    }

    /// Whether its tools come from the help of a program, which may have hundreds of pages.
    #[must_use]
    pub(crate) fn reads_help(&self) -> bool {
        let command_line = self.command_line.as_ref();
        command_line.is_some_and(|command_line| command_line.tools.is_empty())
    }
}

/// Whether a command line starts a package runner.
pub(super) fn may_install(command: &str, args: &[String]) -> bool {
    let program = match args {
        // Runners are scripts on Windows.
        [flag, program, ..]
            if program_name(command) == "cmd" && flag.eq_ignore_ascii_case("/c") =>
        {
            program.as_str()
        }
        _ => command,
    };
    RUNNERS.contains(&program_name(program))
}

/// The program's name in a path or package: without directory, extension and version.
#[must_use]
pub(crate) fn program_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    name.strip_suffix(".exe")
        .or_else(|| name.strip_suffix(".cmd"))
        .unwrap_or(name)
}

/// A command line without the programs around it that only start another one: `env A=1`, `timeout 99`, `nice`, `cmd /c`, and a shell
/// with a plain command.
#[must_use]
pub(super) fn unwrapped(command: &str, args: &[String]) -> (String, Vec<String>) {
    let (mut command, mut args) = (command.to_owned(), args.to_vec());
    while let Some((inner, rest)) = inner(&command, &args)
        .as_deref()
        .and_then(<[String]>::split_first)
    {
        (command, args) = (inner.clone(), rest.to_vec());
    }
    (command, args)
}

/// The words of the command line that another one starts.
fn inner(command: &str, args: &[String]) -> Option<Vec<String>> {
    let is_option = |arg: &&String| arg.starts_with('-');
    // The options that have a value, and the number of words before the command.
    let (valued, operands): (&[&str], usize) = match program_name(command).to_lowercase().as_str() {
        "cmd" => {
            let at = args.iter().position(|arg| arg.eq_ignore_ascii_case("/c"))?;
            let has_only_options = args[..at].iter().all(|arg| arg.starts_with('/'));
            return match &args[at + 1..] {
                _ if !has_only_options => None,
                [line] => plain_words(line),
                words => Some(words.to_vec()),
            };
        }
        "sh" | "bash" | "zsh" | "dash" | "ksh" => {
            let options = args.iter().take_while(is_option).count();
            let (last, others) = args[..options].split_last()?;
            let is_line = |option: &String| !option.starts_with("--") && option.ends_with('c');
            return match &args[options..] {
                [line] if is_line(last) && !others.iter().any(is_line) => plain_words(line),
                _ => None,
            };
        }
        "env" => (&["-u", "--unset", "-C", "--chdir"], 0),
        "timeout" | "gtimeout" => (&["-k", "--kill-after", "-s", "--signal"], 1),
        "nice" => (&["-n", "--adjustment"], 0),
        "ionice" => (&["-c", "--class", "-n", "--classdata"], 0),
        "stdbuf" => (&["-i", "-o", "-e"], 0),
        "nohup" | "setsid" | "exec" | "command" => (&[], 0),
        _ => return None,
    };
    let mut words = args.iter().peekable();
    while let Some(option) = words.next_if(is_option) {
        if ["-S", "--split-string"]
            .iter()
            .any(|split| option.starts_with(split))
        {
            return None;
        }
        if valued.contains(&option.as_str()) {
            words.next()?;
        }
    }
    let is_env = program_name(command).eq_ignore_ascii_case("env");
    while words.next_if(|word| is_env && word.contains('=')).is_some() {}
    Some(words.skip(operands).cloned().collect())
}

/// The words of a shell's command, which may begin with variables. `None` if the shell does more than to start it.
fn plain_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.trim().chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some('"') if "$`\\".contains(c) => return None,
            Some(_) => word.get_or_insert_default().push(c),
            None if matches!(c, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if matches!(c, ' ' | '\t') => words.extend(word.take()),
            None if "|&;<>()$`\\*?[]#~{}!\r\n".contains(c) => return None,
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let is_variable = |word: &String| word.contains('=');
    if words.first().is_some_and(is_variable) {
        words.insert(0, "env".to_owned());
    }
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runners_are_known_by_whatever_path() {
        for (word, name) in [
            ("npx", "npx"),
            ("/usr/local/bin/uvx", "uvx"),
            (r"C:\Program Files\nodejs\npx.cmd", "npx"),
            ("mcp-proxy@1.2", "mcp-proxy"),
        ] {
            assert_eq!(program_name(word), name);
        }
        let stdio = |line: &str| Stdio {
            command: line.split(' ').next().unwrap_or_default().to_owned(),
            args: line.split(' ').skip(1).map(str::to_owned).collect(),
            env: std::collections::BTreeMap::default(),
            cwd: None,
            command_line: None,
            sandbox: None,
            fetch: None,
        };
        for line in ["/opt/bin/npx -y x", "docker run x", "cmd /c npx -y x"] {
            assert!(stdio(line).may_install(), "{line}");
        }
        for line in ["/opt/npx/server", "node npx", "cmd /c node npx", "npx-like"] {
            assert!(!stdio(line).may_install(), "{line}");
        }
    }
}
