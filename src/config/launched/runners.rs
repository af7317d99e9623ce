//! The packages and images that runners start: `npx`, `uvx`, `docker run` and others.

use super::lines::UNKNOWN;
use super::options::{Options, Reading, has};
use super::scripts::is_shell;
use super::spelling::{bare, names};
use super::{Kind, directories};
use crate::config::runner::without_cmd;

/// A package or image that a runner starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::config) struct Package<'a> {
    pub(in crate::config) kind: Kind,
    /// Its name with its version, as it is written.
    pub(in crate::config) spec: &'a str,
    /// The program of it, if the package is named by an option.
    pub(in crate::config) program: Option<&'a str>,
    /// The options of the runner.
    pub(in crate::config) options: Vec<(&'a str, Option<&'a str>)>,
    /// The arguments after it.
    pub(in crate::config) args: &'a [String],
}

/// The words after a runner that make it start a package.
type Start = &'static [&'static str];

const RUNNERS: &[(&str, Kind, &[Start])] = &[
    ("npx bunx pnpx", Kind::Npm, &[&[]]),
    ("npm", Kind::Npm, &[&["exec"], &["x"]]),
    ("pnpm yarn", Kind::Npm, &[&["dlx"]]),
    ("bun", Kind::Npm, &[&["x"]]),
    ("uvx", Kind::Pypi, &[&[]]),
    ("uv", Kind::Pypi, &[&["tool", "run"]]),
    ("pipx", Kind::Pypi, &[&["run"]]),
    (
        "docker podman nerdctl finch",
        Kind::Image,
        &[&["run"], &["container", "run"]],
    ),
];

/// The endings of files that Node runs, and others in its place.
const SCRIPTS: &str = "js mjs cjs jsx ts mts cts tsx";

/// Flags of containers that change what a server can do.
const LIMITING: &[&str] = &["--privileged", "--read-only"];

const NPM: Options = Options {
    flags: "-y --yes -q --quiet -s --silent -d -dd -ddd --verbose --bun --prefer-offline --prefer-online --offline --no-install \
            --ignore-existing --no-audit --no-fund --no-update-notifier --ignore-scripts --no-color",
    valued: "--registry --cache --prefix --userconfig --loglevel --node-options --min-release-age --allow-build -c --call",
    named: "-p --package",
};

pub(super) const PYPI: Options = Options {
    flags: "-q --quiet --no-progress --isolated --refresh --offline -U --upgrade --reinstall -n --no-cache -v --verbose --native-tls \
            --system-certs --no-config --no-env-file --managed-python --no-managed-python --no-python-downloads --no-build \
            --no-binary --no-index --no-sources --fetch-missing-python --frozen --locked --dev --no-dev --no-project --no-sync \
            --all-extras --all-groups --exact --active --script",
    valued: "-p --python -w --with -i --index --index-url --prerelease --default-index --extra-index-url --index-strategy -f \
             --find-links --with-editable --with-requirements -c --constraints -b --build-constraints --overrides --resolution \
             --exclude-newer --refresh-package --cache-dir --config-file --env-file --directory --project --pip-args \
             --allow-insecure-host --color --upgrade-package --reinstall-package --keyring-provider --link-mode \
             --extra --group --package",
    named: "--from --spec",
};

const IMAGE: Options = Options {
    flags: "-i --interactive -t --tty --rm -d --detach --privileged --no-healthcheck --init --read-only -q --quiet -P --publish-all \
            --sig-proxy --disable-content-trust --oom-kill-disable --remote --tls --tlsverify -D --debug",
    valued: "-e --env --env-file -v --volume --mount --name --network --network-alias --platform --pull -u --user -w --workdir -m \
             --memory --cpus --cap-drop --add-host -l --label -p --publish --net -h --hostname --dns --expose --gpus --device \
             --cap-add --security-opt --group-add --userns --pid --ipc --tmpfs --shm-size --memory-swap --pids-limit --ulimit \
             --restart --runtime --stop-timeout --stop-signal --cidfile --label-file --log-driver --log-opt --sysctl --entrypoint \
             --volumes-from --link --ip --mac-address --cgroupns --cpu-shares --cpuset-cpus -a --attach --annotation --secret \
             --context -H --host --config --log-level --connection --url --namespace",
    named: "",
};

impl Package<'_> {
    /// Its name, in the spelling of all that mean the same.
    pub(in crate::config) fn name(&self) -> String {
        let [_, name] = names(self.kind, self.spec);
        name
    }

    /// The runner's options that may change what the package does.
    fn weighty_options(&self) -> Vec<(&str, Option<&str>)> {
        let known = options_of(self.kind);
        let is_it = |(option, _): &&(&str, Option<&str>)| {
            !has(known.named, option) && (LIMITING.contains(option) || !known.is_flag(option))
        };
        let mut options: Vec<_> = self.options.iter().filter(is_it).copied().collect();
        options.sort_unstable();
        options
    }

    /// The words that decide what it does: in one order, without the package.
    pub(super) fn way(&self) -> Vec<String> {
        let options = self.weighty_options().into_iter();
        let options = options.flat_map(|(option, value)| [Some(option), value]);
        // A package has a program of its own name.
        let is_other = |program: &&str| names(self.kind, program)[1] != self.name();
        let words = options.chain([self.program.filter(is_other)]).flatten();
        words.map(str::to_owned).chain(self.args.to_vec()).collect()
    }
}

fn options_of(kind: Kind) -> &'static Options {
    match kind {
        Kind::Pypi => &PYPI,
        Kind::Image => &IMAGE,
        _ => &NPM,
    }
}

/// Whether a program is one of the runners.
pub(super) fn is_runner(name: &str) -> bool {
    name == "deno" || RUNNERS.iter().any(|(names, ..)| has(names, name))
}

/// The package that a command line certainly starts: all options of its runner are known.
pub(in crate::config) fn package<'a>(command: &'a str, args: &'a [String]) -> Option<Package<'a>> {
    let (command, args) = without_cmd(command, args);
    let name = bare(command);
    let mut readings = readings(&name, args);
    let (kind, reading) = readings.pop().filter(|_| readings.is_empty())?;
    let first = args.get(reading.at)?;
    // They start another program of it.
    let is_other = |(option, _): &(&str, _)| match kind {
        Kind::Npm => ["-c", "--call"].contains(option),
        _ => *option == "--entrypoint",
    };
    if reading.is_unsure || reading.named.len() > 1 || reading.options.iter().any(is_other) {
        return None;
    }
    let named = reading.named.first().copied();
    Some(Package {
        kind,
        spec: named.unwrap_or(first),
        program: named.and(Some(first)),
        options: reading.options,
        args: &args[reading.at + 1..],
    })
}

/// The arguments of the package or program `name`, if a command line certainly starts it and the runner's options do not change what it does.
pub(crate) fn arguments_of<'a>(
    name: &str,
    command: &'a str,
    args: &'a [String],
) -> Option<&'a [String]> {
    let Some(package) = package(command, args) else {
        return (bare(command) == name).then_some(args);
    };
    let is_it = package.name() == name && package.program.is_none_or(|program| program == name);
    (is_it && package.weighty_options().is_empty()).then_some(package.args)
}

/// Every package that a runner may start.
pub(super) fn packages<'a>(name: &str, args: &'a [String]) -> Vec<Package<'a>> {
    if name == "deno" {
        let at = args.iter().position(|arg| arg.starts_with("npm:"));
        let of = |at: usize| Package {
            kind: Kind::Npm,
            spec: &args[at],
            program: None,
            options: Vec::new(),
            args: &args[at + 1..],
        };
        return at.map(of).into_iter().collect();
    }
    let mut all = Vec::new();
    for (kind, reading) in readings(name, args) {
        let first = args.get(reading.at).map(String::as_str);
        let after = args.get(reading.at + 1..).unwrap_or_default();
        let mut specs = reading.named;
        if specs.is_empty() {
            specs.extend(first);
        }
        if reading.is_cut {
            specs = vec![UNKNOWN];
        }
        all.extend(specs.into_iter().map(|spec| Package {
            kind,
            spec,
            program: None,
            options: Vec::new(),
            args: after,
        }));
    }
    all
}

/// The ways to read the words after a runner.
fn readings<'a>(name: &str, args: &'a [String]) -> Vec<(Kind, Reading<'a>)> {
    let mut all = Vec::new();
    let mut runners = RUNNERS.iter();
    let Some((_, kind, starts)) = runners.find(|(names, ..)| has(names, name)) else {
        return all;
    };
    let options = options_of(*kind);
    for before in options.readings(args) {
        for start in *starts {
            if start.is_empty() || before.is_cut {
                all.push((*kind, before.clone()));
                continue;
            }
            let rest = &args[before.at.min(args.len())..];
            let is_it = rest.len() >= start.len()
                && rest.iter().zip(*start).all(|(one, other)| one == other);
            let after = is_it.then(|| options.readings(&rest[start.len()..]));
            all.extend(after.into_iter().flatten().map(|after| {
                let reading = Reading {
                    at: before.at + start.len() + after.at,
                    options: [before.options.clone(), after.options].concat(),
                    named: [before.named.clone(), after.named].concat(),
                    is_unsure: before.is_unsure || after.is_unsure,
                    is_cut: after.is_cut,
                };
                (*kind, reading)
            }));
        }
    }
    all
}

/// The command lines that a runner starts in another place than usual: the entrypoint of a container, a program that is there, or a runner
/// by the path of its script.
pub(super) fn elsewhere(name: &str, args: &[String]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for (kind, reading) in readings(name, args) {
        let entrypoint = reading.options.iter().find(|(it, _)| *it == "--entrypoint");
        if let (Kind::Image, Some((_, Some(program)))) = (kind, entrypoint) {
            let after = args.get(reading.at + 1..).unwrap_or_default();
            let mut line = [vec![(*program).to_owned()], after.to_vec()].concat();
            // The program is in the image, as another is in a directory. A package that a runner starts there is not.
            let name = bare(program);
            if !is_runner(&name) && !is_shell(&name) {
                let image = args.get(reading.at);
                line.extend(image.map(|image| names(kind, image)[1].clone()));
            }
            all.push(line);
        }
    }
    let is_script = |word: &String| {
        word.rsplit_once('.')
            .is_some_and(|(_, ending)| has(SCRIPTS, ending))
    };
    if let Some(at) = args.iter().position(is_script)
        && ["bun", "deno"].contains(&name)
        && !args[..at]
            .iter()
            .any(|word| word == "x" || word.starts_with("npm:"))
    {
        let line = [vec!["node".to_owned()], args[at..].to_vec()].concat();
        all.extend(directories::within(line, directories::find_given(args)));
    }
    let is_there = match (name, args.first().map(String::as_str)) {
        ("pnpm" | "yarn", Some("exec")) | ("bun", Some("run")) => Some(1),
        ("bun", Some(word)) if !word.starts_with('-') && word != "x" => Some(0),
        _ => None,
    };
    if let Some(at) = is_there {
        all.push([vec!["npx".to_owned()], args[at..].to_vec()].concat());
    }
    let script = args.first().map(|word| bare(word));
    let runner = match (name, script.as_deref()) {
        ("node", Some("npx-cli.js")) => Some("npx"),
        ("node", Some("npm-cli.js")) => Some("npm"),
        _ => None,
    };
    if let Some(runner) = runner {
        all.push([vec![runner.to_owned()], args[1..].to_vec()].concat());
    }
    all
}

/// The lines of `npx -c LINE`.
pub(super) fn called<'a>(name: &str, args: &'a [String]) -> Vec<&'a str> {
    let readings = readings(name, args).into_iter();
    let options = readings
        .filter(|(kind, _)| *kind == Kind::Npm)
        .flat_map(|(_, reading)| reading.options);
    let lines = options.filter(|(option, _)| ["-c", "--call"].contains(option));
    lines.filter_map(|(_, line)| line).collect()
}
