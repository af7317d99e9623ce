//! Programs that start another one: `env`, `timeout`, `sudo`, shells and others.

use super::directories;
use super::lines::{UNKNOWN, commands, is_variable, words};
use super::options::Options;
use super::runners::{called, is_runner};
use super::spelling::bare;

const SHELLS: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "dash",
    "ksh",
    "mksh",
    "ash",
    "fish",
    "csh",
    "tcsh",
    "nu",
    "cmd",
    "pwsh",
    "powershell",
];

/// Programs with the options that have a value, and the number of words before the command.
const WRAPPERS: &[(&str, &str, usize)] = &[
    ("env", "-u --unset -C --chdir", 0),
    ("timeout gtimeout", "-k --kill-after -s --signal", 1),
    ("nice", "-n --adjustment", 0),
    ("ionice", "-c --class -n --classdata", 0),
    ("stdbuf", "-i -o -e", 0),
    ("time", "-f --format -o --output", 0),
    (
        "sudo doas",
        "-u --user -g --group -h --host -p --prompt -C -D --chdir -R --chroot -T",
        0,
    ),
    (
        "setpriv",
        "--reuid --regid --groups --inh-caps --ambient-caps --bounding-set --securebits --pdeathsig",
        0,
    ),
    (
        "xvfb-run",
        "-n --server-num -s --server-args -e --error-file -f --auth-file -p --xauth-protocol -w --wait",
        0,
    ),
    ("chrt taskset flock chroot", "", 1),
    (
        "nohup setsid exec command builtin eval caffeinate busybox toybox unbuffer tini dumb-init wsl start call npm-run",
        "",
        0,
    ),
    (
        "unshare nsenter systemd-run firejail bwrap strace catchsegv dbus-run-session xargs",
        "",
        0,
    ),
];

/// Programs that start what follows `--`, or what follows a word like `run`.
const LAUNCHERS: &[&str] = &[
    "op",
    "doppler",
    "dotenv",
    "dotenvx",
    "mise",
    "rtx",
    "asdf",
    "direnv",
    "infisical",
    "chamber",
    "aws-vault",
    "envchain",
    "poetry",
    "pipenv",
    "pdm",
    "hatch",
    "rye",
    "conda",
    "micromamba",
    "bundle",
    "teller",
    "secretspec",
];

fn options(valued: &'static str) -> Options {
    Options {
        flags: "-i -0 -v -E -H -n -S -b -k -a --preserve-env --ignore-environment --foreground --clear-groups --auto-servernum",
        valued,
        named: "",
    }
}

/// Whether a word may begin the command of a program that is not known.
pub(super) fn is_starter(name: &str) -> bool {
    is_runner(name) || SHELLS.contains(&name) || ["env", "sudo"].contains(&name)
}

/// The command lines that `name` may start with these arguments.
pub(super) fn inner(name: &str, args: &[String]) -> Vec<Vec<String>> {
    if SHELLS.contains(&name) {
        return line(name, args).map_or_else(Vec::new, |at| of_line(name, &args[at..]));
    }
    if is_runner(name) {
        let lines = called(name, args).into_iter();
        return lines
            .flat_map(commands)
            .flat_map(|words| {
                // It may also be the program of a package that is there.
                let package = [vec!["npx".to_owned()], words.clone()].concat();
                [words, package]
            })
            .collect();
    }
    if LAUNCHERS.contains(&name) {
        let directory = directories::given(args);
        if let Some(at) = args.iter().position(|arg| arg == "--") {
            return directories::within(args[at + 1..].to_vec(), directory);
        }
        let is_verb = |arg: &String| ["run", "exec", "x"].contains(&arg.as_str());
        // Its own options may come first.
        let at = match directory {
            Some(_) => args.iter().position(is_verb).map_or(0, |at| at + 1),
            None => usize::from(args.first().is_some_and(is_verb)),
        };
        let lines = after(&args[at..], "", 0).into_iter();
        return lines
            .flat_map(|words| directories::within(words, directory))
            .collect();
    }
    if name == "eval" {
        return commands(&args.join(" "));
    }
    let mut known = WRAPPERS.iter();
    let known = known.find(|(names, ..)| names.split(' ').any(|known| known == name));
    let lines = known.map(|(_, valued, operands)| after(args, valued, *operands));
    let split = split(args).filter(|_| name == "env");
    let split = split.map(|words| [vec![name.to_owned()], words].concat());
    lines.into_iter().flatten().chain(split).collect()
}

fn after(args: &[String], valued: &'static str, operands: usize) -> Vec<Vec<String>> {
    let readings = options(valued).readings(args).into_iter();
    let lines = readings.map(|reading| {
        if reading.is_cut {
            return vec![UNKNOWN.to_owned()];
        }
        let words = args[reading.at.min(args.len())..].iter();
        let words = words.skip_while(|word| is_variable(word)).skip(operands);
        words.cloned().collect()
    });
    lines.collect()
}

/// The position of the text that a shell runs.
fn line(name: &str, args: &[String]) -> Option<usize> {
    let mut may_be_value = false;
    for (at, arg) in args.iter().enumerate() {
        let arg = arg.to_lowercase();
        let is_it = match name {
            "cmd" => ["/c", "/k", "/r"].contains(&arg.as_str()),
            "pwsh" | "powershell" => {
                arg.len() > 1
                    && ["-command", "-commandwithargs", "/command"]
                        .iter()
                        .any(|long| long.starts_with(&arg))
            }
            _ => {
                arg == "--command"
                    || arg.starts_with('-') && !arg.starts_with("--") && arg.contains('c')
            }
        };
        if is_it {
            return Some(at + 1);
        }
        let is_option = arg.starts_with(['-', '+']) || name == "cmd" && arg.starts_with('/');
        if !is_option && !may_be_value {
            break;
        }
        may_be_value = is_option;
    }
    None
}

/// The command lines in a shell's text, which the words after it may go into.
fn of_line(name: &str, words: &[String]) -> Vec<Vec<String>> {
    let Some((text, others)) = words.split_first() else {
        return Vec::new();
    };
    let is_of_words = ["cmd", "pwsh", "powershell"].contains(&name);
    if is_of_words && !others.is_empty() {
        // These join them; a path with spaces stays one word.
        let parts = words.split(|word| ["&", "&&", "||", "|", ";"].contains(&word.as_str()));
        return parts.map(<[String]>::to_vec).collect();
    }
    let all = commands(text);
    let mut names = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_set = others.len() < 2 || names.any(|name| name == "set");
    let lines = all.into_iter().flat_map(|mut words| {
        // Those that stand for one of the others.
        for word in &mut words {
            let number = word.strip_prefix('$').map(|it| it.trim_matches(['{', '}']));
            let number = number.and_then(|it| it.parse::<usize>().ok());
            if let Some(given) = number.and_then(|number| others.get(number)) {
                word.clone_from(given);
            }
        }
        let is_all = |word: &String| ["$@", "$*", "${@}", "${*}"].contains(&word.as_str());
        let Some(at) = words.iter().position(is_all) else {
            return match reads_commands(&words) {
                true => vec![words, vec![UNKNOWN.to_owned()]],
                false => vec![words],
            };
        };
        // `set` may have given others.
        let unknown = words.clone();
        words.splice(at..=at, others.get(1..).unwrap_or_default().iter().cloned());
        match is_set {
            true => vec![words, unknown],
            false => vec![words],
        }
    });
    lines.collect()
}

/// Whether these words start a shell that reads what it runs: from another program, or from a text after `<<<`.
fn reads_commands(words: &[String]) -> bool {
    let is_wrapper = |name: &str| {
        let mut names = WRAPPERS.iter().flat_map(|(names, ..)| names.split(' '));
        names.any(|known| known == name)
    };
    let mut words = words
        .iter()
        .skip_while(|word| is_variable(word) || word.starts_with('-') || is_wrapper(&bare(word)));
    let Some(shell) = words.next().map(|word| bare(word)) else {
        return false;
    };
    let args: Vec<String> = words.cloned().collect();
    let is_file = |word: &String| !word.starts_with(['-', '$']) && !word.starts_with("/dev/");
    SHELLS.contains(&shell.as_str())
        && line(&shell, &args).is_none()
        && (!args.iter().any(is_file) || args.iter().any(|word| word == "-s"))
}

/// The words of `env -S TEXT`, with those after it.
fn split(args: &[String]) -> Option<Vec<String>> {
    let is_it = |arg: &String| {
        arg.starts_with("--split-string")
            || arg.starts_with('-') && !arg.starts_with("--") && arg.contains('S')
    };
    let at = args.iter().position(is_it)?;
    let joined = match args[at].strip_prefix("--split-string") {
        Some(rest) => rest.strip_prefix('=').unwrap_or(rest),
        None => args[at].split_once('S').map_or("", |(_, rest)| rest),
    };
    let (text, rest) = match joined {
        "" => (args.get(at + 1)?.as_str(), &args[at + 2..]),
        joined => (joined, &args[at + 1..]),
    };
    Some(words(text).chain(rest.to_vec()).collect())
}

/// The command line in this one, if that only sets variables or is a shell that only starts it. The variables go to `env`.
pub(super) fn certain(
    name: &str,
    args: &[String],
    env: &mut Vec<(String, String)>,
) -> Option<(String, Vec<String>)> {
    let mut words = match name {
        "env" | "exec" => args.to_vec(),
        "cmd" | "sh" | "bash" | "zsh" | "dash" | "ash" | "ksh" => {
            let at = line(name, args)?;
            match (of_line(name, &args[at..]).as_slice(), &args[at..]) {
                // Nothing but words is plain in every shell.
                ([words], [text])
                    if text
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || " -_./@:,+=".contains(c))
                        && !is_variable(text) =>
                {
                    words.clone()
                }
                ([words], [_, _, ..]) if name == "cmd" => words.clone(),
                _ => return None,
            }
        }
        _ => return None,
    };
    let variables = words.iter().take_while(|word| is_variable(word)).count();
    if words
        .get(variables)
        .is_none_or(|word| word.starts_with('-'))
    {
        return None;
    }
    let variables = words.drain(..variables);
    env.extend(variables.filter_map(|word| {
        word.split_once('=')
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
    }));
    Some((words.remove(0), words))
}
