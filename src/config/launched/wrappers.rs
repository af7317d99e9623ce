//! Programs that start another one: `env`, `timeout`, `sudo` and others.

use super::commands::commands;
use super::directories;
use super::lines::{is_variable, unknown, words};
use super::options::{Options, has};
use super::runners::{PYPI, called, is_runner};
use super::scripts::{is_shell, script, text_at};
use super::shells;
use super::spelling::{bare, is_made};

/// A program that starts the command among its arguments.
struct Wrapper {
    names: &'static str,
    /// Its options without a value. One that is in neither list may have a value or none.
    flags: &'static str,
    /// Those with one.
    valued: &'static str,
    /// The number of its own words before the command.
    operands: usize,
    /// Those of which the value is a shell's text.
    texts: &'static str,
}

/// One without options.
const fn wrapper(names: &'static str) -> Wrapper {
    Wrapper {
        names,
        flags: "",
        valued: "",
        operands: 0,
        texts: "",
    }
}

impl Wrapper {
    const fn options(self, flags: &'static str, valued: &'static str) -> Self {
        Self {
            flags,
            valued,
            ..self
        }
    }

    const fn operands(self, operands: usize) -> Self {
        Self { operands, ..self }
    }

    const fn texts(self, texts: &'static str) -> Self {
        Self { texts, ..self }
    }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("env").options("-i --ignore-environment -0 --null -v --debug -S", "-u --unset -C --chdir -P -a --argv0"),
    wrapper("timeout gtimeout").options("-v --verbose -f --foreground -p --preserve-status", "-k --kill-after -s --signal").operands(1),
    wrapper("nice").options("", "-n --adjustment"),
    wrapper("ionice").options("-t --ignore", "-c --class -n --classdata"),
    wrapper("stdbuf").options("", "-i --input -o --output -e --error"),
    wrapper("time").options("-a --append -l -p --portability -q --quiet -v --verbose", "-f --format -o --output"),
    wrapper("sudo").options("-A --askpass -B --bell -b --background -E --preserve-env -H --set-home -i --login -k --reset-timestamp -N --no-update -n \
         --non-interactive -P --preserve-groups -S --stdin -s --shell", "-u --user -g --group -h --host -p --prompt -C --close-from -D --chdir -R --chroot -T --command-timeout -r --role -t --type"),
    wrapper("doas").options("-L -n -s", "-a -C -u"),
    wrapper("setpriv").options("--clear-groups --keep-groups --init-groups --no-new-privs --reset-env", "--reuid --regid --groups --inh-caps --ambient-caps --bounding-set --securebits --pdeathsig"),
    wrapper("xvfb-run").options("-a --auto-servernum -l --listen-tcp", "-n --server-num -s --server-args -e --error-file -f --auth-file -p --xauth-protocol -w --wait"),
    wrapper("chrt").options("-a --all-tasks -b --batch -d --deadline -f --fifo -i --idle -o --other -R --reset-on-fork -r --rr -v --verbose", "-T --sched-runtime -P --sched-period -D --sched-deadline").operands(1),
    wrapper("taskset").options("-a --all-tasks -c --cpu-list", "").operands(1),
    wrapper("flock").options("-e -x --exclusive -F --no-fork -n --nb --nonblock -o --close -s --shared -u --unlock --verbose", "-E --conflict-exit-code -w --wait --timeout").operands(1).texts("-c --command"),
    wrapper("chroot").options("", "--userspec --groups").operands(1),
    wrapper("gosu su-exec").operands(1),
    wrapper("runuser su").options("-f --fast -l --login -m -p --preserve-environment -P --pty", "-g --group -G --supp-group -s --shell -u --user").texts("-c --command"),
    wrapper("script").options("-a --append -e --return -f --flush -q --quiet", "").operands(1).texts("-c --command"),
    wrapper("setsid").options("-c --ctty -f --fork -w --wait", ""),
    wrapper("exec").options("-c -l", "-a"),
    wrapper("caffeinate").options("-d -i -m -s -u", "-t -w"),
    wrapper("tini").options("-g -s -v", "-e -p"),
    wrapper("strace").options("-c -C -d -f -ff -i -k -q -r -t -tt -T -v -x -y", "-a -b -e -E -I -o -O -p -P -s -S -u -U -X"),
    wrapper("wsl").options("-e --exec", "-d --distribution -u --user --cd --shell-type"),
    wrapper("nohup command builtin busybox toybox unbuffer dumb-init start call npm-run unshare nsenter systemd-run firejail bwrap catchsegv \
         watch ld-linux.so.2 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 \
         dbus-run-session xargs").options("-v", ""),
];

/// Programs that may start any, also where a known one is among their words.
const OPAQUE: &str = "xargs parallel alias function start start-process iex invoke-expression";

/// Programs that start what follows `--`, or what follows a word like `run`.
const LAUNCHERS: &str = "op doppler dotenv dotenvx mise rtx asdf direnv infisical chamber aws-vault envchain poetry pipenv pdm hatch rye conda \
     micromamba bundle teller secretspec fnm nvm volta devbox pixi";

/// Options before a command, or before the text of one.
const STARTING: &[(&str, &str)] = &[
    ("nix nix-shell", "-c --command --run"),
    ("doppler", "--command"),
    ("mise rtx", "-c --command"),
];

/// Programs that may start any if there is such a part among their words, and no known one.
const HIDING: &[(&str, &str)] = &[("awk", "system("), ("find", "-exec"), ("bwrap", "-bind")];

/// Whether a word may begin the command of a program that is not known.
pub(super) fn is_starter(name: &str) -> bool {
    is_runner(name) || is_shell(name) || ["env", "sudo"].contains(&name)
}

/// The command lines that `name` may start with these arguments.
pub(super) fn inner(name: &str, args: &[String]) -> Vec<Vec<String>> {
    if is_runner(name) {
        let lines = called(name, args).into_iter();
        let lines = lines.flat_map(commands).flat_map(|words| {
            // It may also be the program of a package that is there.
            let package = [vec!["npx".to_owned()], words.clone()].concat();
            [words, package]
        });
        return match name {
            "uv" => run_by_uv(args),
            _ => lines.collect(),
        };
    }
    if let Some(lines) = started(name, args) {
        return lines;
    }
    if has(LAUNCHERS, name) {
        let directory = directories::find_given(args);
        let is_verb = |arg: &String| ["run", "exec", "x"].contains(&arg.as_str());
        // Its own options may come first.
        let at = match directory {
            Some(_) => args.iter().position(is_verb).map_or(0, |at| at + 1),
            None => usize::from(args.first().is_some_and(is_verb)),
        };
        let is_version = |word: &str| {
            word.trim_start_matches('v')
                .starts_with(|c: char| c.is_ascii_digit())
        };
        // The project, and the number of its own words.
        let (project, own) = match (name, args.get(at).map(String::as_str)) {
            ("direnv", project) => (project, 1),
            ("pixi" | "devbox", Some("-m" | "--manifest-path" | "-c" | "--config")) => {
                (args.get(at + 1).map(String::as_str), 2)
            }
            ("nvm", Some(version)) if is_version(version) => (None, 1),
            _ => (None, 0),
        };
        // As any program, too: a `cd` or `cwd` that says the same is not read for these launchers.
        let started = |words: Vec<String>| {
            let is_of_directory = directory.is_some() && project.is_none();
            let plain = Some(words.clone()).filter(|_| is_of_directory);
            let plain = plain.map(|words| directories::within(words, directory));
            let lines = in_project(words, directory, project);
            plain.into_iter().flatten().chain(lines)
        };
        if let Some(at) = args.iter().position(|arg| arg == "--") {
            return started(args[at + 1..].to_vec()).collect();
        }
        let lines = after(args.get(at + own..).unwrap_or_default(), &wrapper("")).into_iter();
        return lines.flat_map(started).collect();
    }
    if name == "eval" {
        return commands(&args.join(" "));
    }
    // `start /b npx …`.
    let is_of_start = |word: &String| word.starts_with('/') || word.trim_matches('"').is_empty();
    if let Some(at) = args.iter().position(|word| !is_of_start(word))
        && name == "start"
        && args[..at].iter().any(|word| word.starts_with('/'))
        && is_starter(&bare(&args[at]))
    {
        return vec![args[at..].to_vec()];
    }
    let mut lines = shells::inner(name, args);
    let mut known = WRAPPERS.iter();
    if let Some(known) = known.find(|wrapper| has(wrapper.names, name)) {
        lines.extend(after(args, known));
        lines.extend(texts(args, known).flat_map(commands));
    }
    if name == "env"
        && let Some(words) = split(args)
    {
        lines.push([vec![name.to_owned()], words].concat());
    }
    let hides = |word: &String| {
        HIDING
            .iter()
            .any(|(it, part)| *it == name && word.contains(part))
    };
    let is_known = || args.iter().any(|word| is_starter(&bare(word)));
    if has(OPAQUE, name) || args.iter().any(hides) && !is_known() {
        lines.push(unknown());
    }
    lines
}

/// The command lines after an option of [`STARTING`].
fn started(name: &str, args: &[String]) -> Option<Vec<Vec<String>>> {
    let mut known = STARTING.iter();
    let (_, options) = known.find(|(names, _)| has(names, name))?;
    let mut own = args.iter().take_while(|arg| *arg != "--");
    let at = own.position(|arg| has(options, arg.split('=').next().unwrap_or(arg)))?;
    let rest = match args[at].split_once('=') {
        Some((_, text)) => vec![text.to_owned()],
        None => args[at + 1..].to_vec(),
    };
    Some(match rest.first() {
        Some(text) if text.contains(char::is_whitespace) => commands(text),
        _ => {
            let project = args[..at].get(1).filter(|_| name == "nix");
            in_project(rest, None, project.map(String::as_str))
        }
    })
}

/// The command lines of `uv run`: a program, a module, or a file of Python.
fn run_by_uv(args: &[String]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for before in PYPI.readings(args) {
        let words = args.get(before.at..).and_then(<[String]>::split_first);
        let Some((_, rest)) = words.filter(|(word, _)| *word == "run") else {
            continue;
        };
        for after in PYPI.readings(rest) {
            let (own, words) = rest.split_at(after.at.min(rest.len()));
            let mut own = own.iter();
            let module = own.position(|word| ["-m", "--module"].contains(&word.as_str()));
            let (start, words) = match module {
                Some(at) => (&["python", "-m"][..], &rest[at + 1..]),
                None if words.first().is_some_and(|word| word.ends_with(".py")) => {
                    (&["python"][..], words)
                }
                None => (&[][..], words),
            };
            let start = start.iter().map(|word| (*word).to_owned());
            let line = start.chain(words.iter().cloned()).collect();
            let options = [before.options.as_slice(), &after.options].concat();
            let project = options.iter().find(|(option, _)| *option == "--project");
            let project = project.and_then(|(_, value)| *value);
            all.extend(in_project(line, directories::find_read(&options), project));
        }
    }
    all
}

/// A program that is found by its name in the environment of a project, as the one of that project: with its directory as the last word.
/// Other words as in `directory`.
fn in_project(
    mut words: Vec<String>,
    directory: Option<&str>,
    project: Option<&str>,
) -> Vec<Vec<String>> {
    let place = directory.map(|directory| directories::joined(None, directory));
    let place = match project {
        Some(project) => Some(directories::joined(place.as_deref(), project)),
        None => place,
    };
    let Some(place) = place.filter(|_| is_by_name(&words)) else {
        return directories::within(words, directory);
    };
    let is_certain = place.starts_with(['/', '~', '\\']) || place.contains([':', '#']);
    let plain = Some(words.clone()).filter(|_| !is_certain || is_made(&place));
    words.push(place);
    plain.into_iter().chain([words]).collect()
}

/// Whether words start a program by its name that is not known to start another one, or a file.
fn is_by_name(words: &[String]) -> bool {
    let Some((program, args)) = words.split_first() else {
        return false;
    };
    let name = &bare(program);
    let starts_another = is_starter(name)
        || has(LAUNCHERS, name)
        || has(OPAQUE, name)
        || name == "eval"
        || WRAPPERS.iter().any(|wrapper| has(wrapper.names, name))
        || STARTING.iter().any(|(names, _)| has(names, name));
    !program.contains(['/', '\\']) && !starts_another && script(name, args).is_none()
}

/// The command lines after the options of a wrapper, in the directory that these give.
fn after(args: &[String], wrapper: &Wrapper) -> Vec<Vec<String>> {
    let options = Options {
        flags: wrapper.flags,
        valued: wrapper.valued,
        named: "",
    };
    let readings = options.readings(args).into_iter();
    let lines = readings.flat_map(|reading| {
        if reading.is_cut {
            return vec![unknown()];
        }
        let words = args[reading.at.min(args.len())..].iter();
        let words = words.skip_while(|word| is_variable(word) || *word == "-");
        let words = words.skip(wrapper.operands).cloned().collect();
        directories::within(words, directories::find_read(&reading.options))
    });
    lines.collect()
}

/// The texts for a shell among the options of a wrapper: `-c TEXT`, `-qc TEXT`, `--command=TEXT`.
fn texts<'a>(args: &'a [String], wrapper: &'static Wrapper) -> impl Iterator<Item = &'a str> {
    let options = wrapper.texts.split(' ').filter(|option| !option.is_empty());
    let options: Vec<&str> = options.collect();
    args.iter().enumerate().filter_map(move |(at, word)| {
        let next = || args.get(at + 1).map(String::as_str);
        options
            .iter()
            .find_map(|option| match word.strip_prefix(option) {
                Some("") => next(),
                Some(rest) => rest.strip_prefix('='),
                None if option.len() == 2 && word.starts_with('-') && !word.starts_with("--") => {
                    word.ends_with(&option[1..]).then(next).flatten()
                }
                None => None,
            })
    })
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
            let at = text_at(name, args)?;
            match (shells::inner(name, args).as_slice(), &args[at..]) {
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
