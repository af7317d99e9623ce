use std::time::{Duration, Instant};

use super::*;
use crate::config::{addresses_of, programs_of};
use crate::day::processor_time;

/// The words of a line; `~` is a space in one of them.
fn words(line: &str) -> (String, Vec<String>) {
    let mut words = line.split(' ').map(|word| word.replace('~', " "));
    (words.next().unwrap(), words.collect())
}

fn may_be_same(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|line| match line.starts_with("http") {
        true => addresses_of(line),
        false => {
            let (command, args) = words(line);
            programs_of(&command, &args)
        }
    });
    !one.is_disjoint(&other)
}

#[test]
fn one_package_is_one_program_in_every_form() {
    let mut wrong = Vec::new();
    for (plain, forms) in [
        (
            "npx -y pkg /x",
            &[
                "npx pkg@2 /x",
                "npx --ignore-scripts pkg /x",
                "npx -s pkg /x",
                "npx --verbose pkg /x",
                "npx --no-color pkg /x",
                "npx --node-options=--a pkg /x",
                "npx --min-release-age=7 pkg /x",
                "npx --unheard-of pkg /x",
                "npx --unheard-of value pkg /x",
                "npx --unheard --of value -y pkg /x",
                "npx -c pkg~/x",
                "npx --call=pkg~/x",
                "npx -p pkg -p helper pkg /x",
                "npx -p helper -p pkg pkg /x",
                "npx alias@npm:pkg@1 /x",
                "npm --silent exec pkg /x",
                "npm x -- pkg /x",
                "pnpm --silent dlx pkg /x",
                "pnpm --package=pkg dlx pkg /x",
                "pnpm dlx --allow-build=x pkg /x",
                "yarn dlx -q pkg /x",
                "bun --bun x pkg /x",
                "bunx --verbose pkg /x",
                "deno run -A npm:pkg /x",
                "deno run --allow-net=a npm:/pkg@1 /x",
                "NPX.CMD -y pkg /x",
                "npx.ps1 pkg /x",
                r"C:\node\npx.cmd pkg /x",
                "cmd /c npx pkg /x",
                "cmd.exe /d /s /c npx~-y~pkg~/x",
                "cmd /c cd C:\\x && npx pkg /x",
                "pwsh -NoProfile -Command npx~-y~pkg~/x",
                "powershell -ExecutionPolicy Bypass -c &~npx~pkg~/x",
                "sh -c npx~-y~pkg~/x sh",
                "sh -c exec~npx~-y~pkg~/x~2>/dev/null",
                "sh -c exec~npx~\"$@\" sh pkg /x",
                "bash -lc cd~/y~&&~A=1~npx~pkg~/x",
                "bash -o pipefail -c npx~pkg~/x~|~tee~log",
                "fish -c npx~pkg~/x",
                "ash -c npx~pkg~/x",
                "zsh -ic (npx~pkg~'/x')",
                "env A=1 npx pkg /x",
                "env -S A=1~npx~-y pkg /x",
                "env -vS npx~pkg~/x",
                "env --split-string=npx~pkg /x",
                "time npx pkg /x",
                "sudo -u me A=1 npx pkg /x",
                "sudo --unheard-of me npx pkg /x",
                "nice -n 5 ionice -c 2 npx pkg /x",
                "setpriv --reuid=1 --clear-groups npx pkg /x",
                "timeout -k 5 99 npx pkg /x",
                "op run --env-file=.env -- npx pkg /x",
                "doppler run -- npx pkg /x",
                "dotenv -- npx pkg /x",
                "mise exec -- npx pkg /x",
                "mise x node@20 -- npx pkg /x",
                "xvfb-run -a npx pkg /x",
                "unheard-of --for 1 npx pkg /x",
                "unheard-of --line npx~pkg~/x",
                "fish --command=npx~pkg~/x",
                "sh -c npx~\\\n~~-y~pkg~/x",
                "sh -c np\\x~-y~pkg~/x",
                "bash -c $'npx'~-y~pkg~/x",
                "sh -c \"$0\"~-y~pkg~/x npx",
                "sh -c npx~-y~$1~/x sh pkg",
                "sh -c eval~'npx~-y~pkg~/x'",
                "sh -c npx~pkg~/x~\"$@\"",
                "docker run --entrypoint npx node -y pkg /x",
                "node /usr/lib/npm/bin/npx-cli.js -y pkg /x",
                "node /usr/lib/npm/bin/npm-cli.js exec pkg /x",
                "pnpm exec pkg /x",
                "bun run pkg /x",
                "npx -y pkg~ /x",
                "sh -c npx~pkg~/x;~z",
                "sh -c exec~3>&1;~:~$(npx~-y~pkg~/x~>&3)",
                "sh -c x=$(npx~-y~pkg~/x)",
                "sh -c x=`npx~-y~pkg~/x`",
                "sh -c echo~\"$(cat~<(npx~-y~pkg~/x))\"",
                "bash -c eval~\"$(fnm~env)\";~npx~-y~pkg~/x",
                "pwsh -c $env:T=\"x\";~npx~-y~pkg~/x",
                "cmd /c start /b npx pkg /x",
            ][..],
        ),
        (
            "uvx mcp-server-git",
            &[
                "uvx mcp_server_git",
                "uvx MCP-Server-Git==1",
                "uvx mcp.server.git[x]>=2",
                "uvx --no-build mcp-server-git",
                "uvx --system-certs mcp-server-git",
                "uvx --allow-insecure-host h mcp-server-git",
                "uvx -w extra mcp-server-git",
                "uvx --no-index --color never mcp-server-git",
                "uvx --from mcp_server_git mcp-server-git",
                "uvx --from git+https://a.example/x/mcp-server-git.git@main mcp-server-git",
                "uv --quiet tool run mcp-server-git",
                "uv tool run --no-sources mcp-server-git",
                "pipx run --fetch-missing-python mcp-server-git",
                "pipx run --spec mcp-server-git mcp-server-git",
            ],
        ),
        (
            "docker run -i x/y",
            &[
                "docker run -itd x/y:2",
                "docker run -dit x/y@sha256:00",
                "docker run -iv /a:/b x/y",
                "docker run -eA=1 x/y",
                "docker run --network-alias n x/y",
                "docker run --sysctl a=b x/y",
                "docker run -P x/y",
                "docker run --entrypoint s x/y",
                "docker run --volumes-from c x/y",
                "docker run --sig-proxy=false x/y",
                "docker run --unheard-of c x/y",
                "docker --context d run x/y",
                "docker -H tcp://a run x/y",
                "docker container run x/y",
                "podman --remote run x/y",
                "finch run x/y",
                "nerdctl run docker.io/x/y",
                "docker run index.docker.io/x/y",
                "podman run docker://docker.io/x/y",
            ],
        ),
        (
            "docker run postgres",
            &[
                "docker run docker.io/library/postgres",
                "docker run library/postgres:16",
            ],
        ),
        (
            "gh-mcp x",
            &[
                "env gh-mcp x",
                "env gh-mcp -S x",
                "sudo -u me gh-mcp x",
                "time gh-mcp x",
                "op run -- gh-mcp x",
                "xvfb-run -a gh-mcp x",
                "bash -c cd~/y~&&~exec~gh-mcp~x",
                "/opt/GH-MCP.exe x",
            ],
        ),
        (
            "npx fetch",
            &["sh -c npx~fetch;~z", "sh -c npx~-y~fetch;~z"],
        ),
        ("python3 s.py", &["python s.py", "/usr/bin/python3.12 s.py"]),
        ("node s.js", &["nodejs s.js"]),
        (
            "sh -c cd~/a~&&~./run.sh~x",
            &["/a/run.sh x", "sh -c cd~/a/;exec~./run.sh~x"],
        ),
        (
            "/a/bin/srv x",
            &[
                "sh -c cd~/a/bin~&&~./srv~x",
                "sh -c cd~/a~&&~./bin/srv~x",
                "sh -c cd~/a/b~&&~../bin/srv~x",
                "sh -c cd~/a;~cd~bin;~./srv~x",
                "sh -c cd~bin~&&~./srv~x",
                "sh -c cd~\"$DIR\"~&&~./srv~x",
                "mise -C /a/bin exec -- ./srv x",
                "srv x",
            ],
        ),
        ("srv x", &["sh -c cd~/a/bin~&&~./srv~x"]),
        (
            "https://a.example/mcp",
            &[
                "https://user:pw@a.example/mcp",
                "https://a.example./mcp",
                "https://A.example:443//mcp/",
                "https://a.example/%6Dcp",
                "https://a.example/mcp?x=y",
                "npx -y mcp-remote https://a.example/mcp",
                "npx mcp-remote https://a.example/mcp --unheard-of",
                "npx -y supergateway --streamableHttp https://a.example/mcp",
                "sh -c npx~mcp-remote@latest~https://a.example/mcp",
            ],
        ),
    ] {
        for form in forms {
            if !may_be_same(plain, form) || !may_be_same(form, plain) {
                wrong.push(form);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_program_in_a_directory_that_may_not_be_the_latest_one_may_be_each_of_them() {
    let home = std::env::home_dir().unwrap().display().to_string();
    let plain = |path: &str| programs_of(path, &["a".to_owned()]);
    let shell = |line: &str| programs_of("sh", &["-c".to_owned(), line.to_owned()]);
    let (there, own) = ("/x/tools/srv", format!("{home}/tools/srv"));
    for (line, path) in [
        ("cd /x/tools && ./srv a", there),
        ("cd /x/tools; (cd /; true); ./srv a", there),
        ("cd /x/tools; cd / ; cd - >/dev/null; ./srv a", there),
        ("cd /x/tools; cd /nowhere || true; ./srv a", there),
        ("pushd /x/tools; pushd /b; popd; ./srv a", there),
        ("cd /b & cd /x/tools; ./srv a", there),
        ("cd ~/tools && ./srv a", &own),
        ("cd; ./tools/srv a", &own),
    ] {
        assert!(!shell(line).is_disjoint(&plain(path)), "{line}");
    }
    let start = programs_of("npm", &["start".to_owned()]);
    for line in [
        "cd /a & npm start",
        "[ -d /a ] && cd /a; npm start",
        "if true; then cd /a; fi; npm start",
    ] {
        assert!(!shell(line).is_disjoint(&start), "{line}");
    }
    let mail = shell("cd /srv/mail && npm start");
    assert!(mail.is_disjoint(&shell("cd /srv/notes && npm start")));
    let many = "cd a; ".repeat(50) + "./srv a";
    assert!(shell(&many).contains(&crate::config::any_program()));
}

#[test]
fn a_program_behind_any_wrapper_or_shell_is_the_same_one() {
    let mut wrong = Vec::new();
    for form in [
        "timeout 9 sh -c /x/srv~a",
        "timeout -k 5 -s TERM 9 /x/srv a",
        "gtimeout --kill-after=5 9 /x/srv a",
        "nice -n 5 /x/srv a",
        "nice -5 /x/srv a",
        "env -u X A=1 /x/srv a",
        "env -u X -C /x ./srv a",
        "env - A=1 /x/srv a",
        "stdbuf -oL -e 0 /x/srv a",
        "setsid -w nohup /x/srv a",
        "sudo -n -u x --preserve-env=A A=1 /x/srv a",
        "sudo -D /x ./srv a",
        "doas -u x /x/srv a",
        "xvfb-run -n 1 -s -screen~0~1x1x8 /x/srv a",
        "time -p /x/srv a",
        "time -f %e -o log /x/srv a",
        "ionice -c 2 -n 7 /x/srv a",
        "ionice -c2 /x/srv a",
        "chrt -f 10 /x/srv a",
        "taskset -c 0-3 /x/srv a",
        "taskset 0x3 /x/srv a",
        "flock -n /tmp/lock /x/srv a",
        "flock -w 5 /tmp/lock -c /x/srv~a",
        "flock /tmp/lock sh -c /x/srv~a",
        "su x -c /x/srv~a",
        "runuser -u x -- /x/srv a",
        "script -qc /x/srv~a /dev/null",
        "gosu x /x/srv a",
        "exec -a name /x/srv a",
        "xargs -n 1 /x/srv a",
        "sh -c trap~'/x/srv~a'~EXIT",
        "sh -c trap~'kill~0'~EXIT;~/x/srv~a",
        "sh -c exec~-a~name~/x/srv~a",
        "sh -c eval~'/x/srv~a'",
        "sh -c .~/x/srv~a",
        "bash -lc /x/srv~a",
        "bash -c -l /x/srv~a",
        "bash -ceuo pipefail /x/srv~a",
        "bash -euo pipefail -c /x/srv~a",
        "bash -C -c /x/srv~a",
        "fish --command=/x/srv~a",
        "bash /x/srv a",
        "bash -x -o pipefail /x/srv a",
        "cmd /c /x/srv a",
        "cmd /d/c /x/srv a",
        "cmd /c/x/srv a",
        "cmd /c cd /x && ./srv a",
        "powershell -NoProfile -File /x/srv a",
        "pwsh -c /x/srv~a",
        "node /x/srv a",
        "python -u /x/srv a",
        "sh -c .~/x/srv~a;~:",
        "sh -c .~/x/srv~a;~cd~/;~exit~0",
        "sh -c source~/x/srv~a;~date",
        "direnv exec /d /x/srv a",
        "nvm exec 20 /x/srv a",
        "nvm exec /x/srv a",
        "fnm exec --using=20 /x/srv a",
        "volta run --node 20 /x/srv a",
        "pixi run /x/srv a",
        "devbox run -- /x/srv a",
        "nix develop /d -c /x/srv a",
        "nix shell nixpkgs#x --command /x/srv a",
        "nix-shell --run /x/srv~a",
        "doppler run --command /x/srv~a",
        "doppler run --command=/x/srv~a",
        "ld-linux-x86-64.so.2 /x/srv a",
        "watch -n 1 /x/srv a",
        "bun run /x/srv.js a",
    ] {
        let program = match form.contains(".js") {
            true => "node /x/srv.js a",
            false => "/x/srv a",
        };
        if !may_be_same(program, form) {
            wrong.push(form);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_file_of_an_interpreter_is_one_program_by_its_path_and_after_cd() {
    let home = std::env::home_dir().unwrap().display().to_string();
    for (one, other) in [
        ("node /a/server.js x", "sh -c cd~/a~&&~node~server.js~x"),
        (
            "node /a/server.js x",
            "sh -c cd~/a~&&~exec~node~./server.js~x",
        ),
        (
            "node /a/src/server.js",
            "sh -c cd~/a~&&~node~--no-warnings~src/server.js",
        ),
        ("node /a/server.js", "env -C /a node server.js"),
        (
            "node -r dotenv/config /a/server.js",
            "sh -c cd~/a~&&~node~server.js",
        ),
        ("node /a/server.js x", "/a/server.js x"),
        ("python3 -u /a/s.py", "bash -c cd~/a;~python~s.py"),
        ("bash /a/run.sh", "sh -c cd~/a~&&~sh~run.sh"),
        (
            r"node C:\a\server.js",
            r"cmd /c cd~/d~C:\a~&&~node~server.js",
        ),
        (
            r"node C:\a\server.js",
            r"cmd /c cd /d C:\a && node server.js",
        ),
        ("uv --directory /a run s.py", "sh -c cd~/a~&&~uv~run~s.py"),
        ("npx -y tsx /a/s.ts x", "sh -c cd~/a~&&~npx~tsx~s.ts~x"),
        ("python /a/s.py x", "uv run /a/s.py x"),
        ("python /a/s.py x", "uv run --frozen python3 -u /a/s.py x"),
        ("python /a/s.py x", "uv --directory /a run python s.py x"),
        ("python /a/s.py x", "uv run --directory /a s.py x"),
        ("a-mcp x", "uv run --extra e a-mcp x"),
        ("python -m foo", "uv run -m foo"),
        ("python -m foo --a b", "uv run --frozen --module foo --a b"),
        (
            "uv --directory /a run -m foo",
            "sh -c cd~/a~&&~python~-m~foo",
        ),
        (
            "uv --directory /a run server",
            "sh -c cd~/a~&&~uv~run~server",
        ),
        ("npx -y pkg", "uv run --project /d npx -y pkg"),
        ("/x/srv a", "uv run --project /d timeout 9 /x/srv a"),
        ("/x/srv a", "poetry -C /d run /x/srv a"),
        (
            "sh -c cd~/a~&&~poetry~run~server",
            "poetry -C /a run server",
        ),
        ("node /a/s.js x", "bun /a/s.js x"),
        ("node /a/s.js x", "bun --watch run /a/s.js x"),
        ("node /a/s.ts x", "bun --cwd /a run s.ts x"),
        ("node /a/s.js x", "deno run -A /a/s.js x"),
        ("npm --prefix=/a start", "sh -c cd~/a~&&~npm~start"),
        (
            "sh -c cd~$HOME/a~&&~node~s.js",
            &format!("node {home}/a/s.js"),
        ),
    ] {
        assert!(may_be_same(one, other), "{one}, {other}");
    }
    let there = programs("node", &["/a/b/s.js".to_owned()]);
    for (directory, line) in [
        ("/a", "node b/s.js"),
        ("/a/b", "timeout 9 node s.js"),
        ("/a/b", "sh -c exec~node~s.js"),
        ("/a", "env A=1 bash -lc cd~b~&&~node~s.js"),
    ] {
        let (command, args) = words(line);
        let found = programs_in(directory, &command, &args);
        assert!(!found.is_disjoint(&there), "{line}");
    }
    for (one, other) in [
        ("node /a/server.js", "node /b/server.js"),
        (
            "node --no-warnings /a/x.js /data",
            "node --no-warnings /b/y.js /data",
        ),
        (
            "sh -c cd~/a~&&~python~-u~s.py",
            "sh -c cd~/b~&&~python~-u~s.py",
        ),
        ("bash /a/run.sh", "bash /b/run.sh"),
        ("sh -c cd~/a~&&~sh~run.sh", "sh -c cd~/b~&&~sh~run.sh"),
        ("python -m a", "python -m b"),
        ("node -e a", "node -e b"),
        (
            "uv --directory /srv/mail run server",
            "uv --directory /srv/notes run server",
        ),
        (
            "uv --directory /a run mcp run server.py",
            "uv --directory /b run mcp run server.py",
        ),
        (
            "uv --directory /a run fastmcp run server.py",
            "uv --directory /b run fastmcp run server.py",
        ),
        (
            "uv --directory /a run -m server",
            "uv --directory /b run -m server",
        ),
        (
            "uv run --directory /a --env-file .env server",
            "uv run --directory /b --env-file .env server",
        ),
        ("uv run --project /a server", "uv run --project /b server"),
        (
            "uv run --project /a -m server",
            "uv run --project /b -m server",
        ),
        ("uv run -m a", "uv run -m b"),
        ("pixi run -m /a server", "pixi run -m /b server"),
        (
            "pixi run --manifest-path /a/pixi.toml server",
            "pixi run --manifest-path /b/pixi.toml server",
        ),
        (
            "devbox run --config /a server",
            "devbox run --config /b server",
        ),
        ("direnv exec /a server", "direnv exec /b server"),
        ("nix develop /a -c server", "nix develop /b -c server"),
        (
            "nix shell nixpkgs#a -c server",
            "nix shell nixpkgs#b -c server",
        ),
        (
            "bash -c source~/c/bin/activate~e~&&~a-mcp",
            "bash -c source~/c/bin/activate~e~&&~b-mcp",
        ),
        (
            "bash -c .~~/.nvm/nvm.sh~--no-use~&&~a-mcp",
            "bash -c .~~/.nvm/nvm.sh~--no-use~&&~b-mcp",
        ),
        ("uv --directory /a run s.py", "uv --directory /b run s.py"),
        (
            "sh -c trap~'kill~0'~EXIT;~a-mcp",
            "sh -c trap~'kill~0'~EXIT;~b-mcp",
        ),
        (
            "bash -c .~~/.nvm/nvm.sh~&&~a-mcp",
            "bash -c .~~/.nvm/nvm.sh~&&~b-mcp",
        ),
        ("nice -n 5 a-mcp", "nice -n 5 b-mcp"),
        ("uv run --directory /a s.py", "uv run --directory /b s.py"),
        ("uv run --frozen a-mcp x", "uv run --frozen b-mcp x"),
        ("uv run python /a/s.py", "uv run python /b/s.py"),
        ("bun run /a/s.js", "bun run /b/s.js"),
        ("direnv exec /d a-mcp", "direnv exec /d b-mcp"),
        ("nix develop -c python -m a", "nix develop -c python -m b"),
        (
            "sh -c T=$(gh~auth~token)~a-mcp",
            "sh -c T=$(gh~auth~token)~b-mcp",
        ),
        (
            "sh -c eval~\"$(fnm~env)\";~a-mcp",
            "sh -c eval~\"$(fnm~env)\";~b-mcp",
        ),
        ("sh -c make~build~&&~a-mcp", "sh -c make~build~&&~b-mcp"),
        ("pwsh -c $env:T=\"x\";~a-mcp", "pwsh -c $env:T=\"x\";~b-mcp"),
        ("sudo -E a-mcp x", "sudo -E b-mcp x"),
        ("xvfb-run -a a-mcp x", "xvfb-run -a b-mcp x"),
    ] {
        assert!(!may_be_same(one, other), "{one}, {other}");
    }
}

#[test]
fn other_programs_are_others() {
    for (one, other) in [
        ("npx pkg /x", "npx pkg /y"),
        ("npx pkg", "npx other"),
        ("npx pkg", "uvx pkg"),
        ("npx pkg", "pkg"),
        ("npx @a/b", "npx @a/c"),
        ("docker run -e TOKEN x/y", "docker run -e TOKEN x/z"),
        (
            "docker run --unheard-of n x/y",
            "docker run --unheard-of n x/z",
        ),
        ("docker run x/y a", "docker run x/y b"),
        (
            "docker run --entrypoint node x/y dist/index.js",
            "docker run --entrypoint node x/z dist/index.js",
        ),
        (
            "docker run --entrypoint=/server -i x/y",
            "docker run --entrypoint=/server -i x/z",
        ),
        ("sh -c cd~/x~&&~a-mcp", "sh -c cd~/x~&&~b-mcp"),
        ("sh -c npm~install~&&~a-mcp", "sh -c npm~install~&&~b-mcp"),
        ("sh -c poetry~install;~a-mcp", "sh -c poetry~install;~b-mcp"),
        (
            "sh -c cd~/srv/mail~&&~npm~start",
            "sh -c cd~/srv/notes~&&~npm~start",
        ),
        ("bash -c cd~~/a~&&~./run.sh", "bash -c cd~~/b~&&~./run.sh"),
        (
            "poetry -C /a run python -m server",
            "poetry -C /b run python -m server",
        ),
        ("env A=1 a-mcp", "env A=1 b-mcp"),
        ("sudo -u me a-mcp", "sudo -u me b-mcp"),
        ("node a.js -- serve", "node b.js -- serve"),
        ("a-mcp hello~world", "b-mcp hello~world"),
        ("x a@1", "x a@2"),
        ("https://a.example/mcp", "https://a.example:8443/mcp"),
        ("https://a.example/mcp", "http://a.example/mcp"),
        ("https://a.example/mcp", "https://b.example/mcp"),
    ] {
        assert!(!may_be_same(one, other), "{one}, {other}");
    }
}

#[test]
fn what_a_shell_makes_or_is_not_read_may_be_any_program() {
    let many = |word: &str| (0..60).map(|at| format!("{word}{at}")).collect::<Vec<_>>();
    let long = format!("sh -c {};~npx~-y~pkg", many("type~t").join(";~"));
    let options = (0..210).map(|at| format!("--z{at}")).collect::<Vec<_>>();
    let options = format!("pnpm dlx {} pkg", options.join(" "));
    let deep = format!("{} npx -y pkg", ["nice"; 12].join(" "));
    let mut wrong = Vec::new();
    let is_any = |line: &str| {
        let (command, args) = words(line);
        programs_of(&command, &args).contains(&crate::config::any_program())
    };
    for line in [
        "sh -c $(which~npx)~-y~pkg",
        "sh -c \"$(which~npx)\"~-y~pkg",
        "sh -c `which~npx`~-y~pkg",
        "sh -c n=npx;~$n~-y~pkg",
        "sh -c P=pkg;~npx~-y~$P",
        "sh -c f(){~python3~\"$@\";~};~f~s.py",
        "bash -c {npx,-y,pkg}",
        "bash -c npx~{-y,pkg}",
        "docker run $IMAGE",
        "sh -c set~--~npx~-y~pkg;~exec~$*",
        "sh -c set~--~npx~-y~pkg;~\"$@\" sh a",
        "cmd /c set~N=npx&&~%N%~-y~pkg",
        "cmd /c %NPX% -y pkg",
        "cmd /v:on /c !N! -y pkg",
        "sh -c /usr/bin/np[x]~-y~pkg",
        "sh -c sr?~x",
        "sh -c printf~'npx~-y~pkg'~|~sh",
        "sh -c printf~'npx~-y~pkg'~|~env~A=1~bash~-s~--~x",
        "sh -c bash~<<<~'npx~-y~pkg'",
        "bash -c bash~<(echo~npx)",
        "bash -c source~<(echo~npx~-y~pkg)",
        "sh -c eval~\"$X\"",
        "sh -c .~\"$F\"",
        "bash -c source~$F~&&~npx~-y~pkg",
        "sh -c printf~'npx~-y~pkg'~|~timeout~9~sh",
        "sh -c printf~'npx~-y~pkg'~|~bash~/dev/stdin",
        "sh -c echo~pkg~|~xargs~npx~-y",
        "xargs -a list npx",
        "sh -c alias~g=npx;~g~-y~pkg",
        "bash -c function~f~{~\"$@\";~};~f~npx~-y~pkg",
        "sh -c trap~\"$X\"~EXIT",
        "powershell -EncodedCommand bgBwAHgA",
        "powershell.exe -NoProfile -enc bgBwAHgA",
        "pwsh -e bgBwAHgA",
        "pwsh -ec bgBwAHgA",
        "pwsh -c iex~$x",
        "cmd /c start /b srv.exe x",
        "timeout 9 $(which~npx) -y pkg",
        "sh -c timeout~9~$(which~npx)~-y~pkg",
        "sh -c exec~-a~npx~$P~-y~pkg",
        "sh -c node~\"$S\"",
        "sh -c node~\"$DIR/server.js\"",
        "sh -c cd~\"$DIR\"~&&~npm~start",
        "sh -c exec~3>&1;~:~$(/x/srv~>&3)",
        "sh -c exec~3>&1;~:~`/x/srv~>&3`",
        "bash -c eval~\"$(echo~/x/srv)\"",
        "bash -c eval~\"$(fnm~env;~echo~/x/srv)\"",
        "bash -c eval~\"$(fnm~env~$X)\"",
        "bash -c eval~\"$(ssh-agent~-s~printf~/x/srv)\"",
        "bash -c eval~\"$(fnm~env)\"~\"$X\"",
        "sh -c find~/x~-name~srv~-exec~{}~a~\\;",
        "sh -c shift;~exec~\"$@\" sh n /x/srv a",
        "awk BEGIN{system(\"/x/srv\")}",
        "bwrap --ro-bind / / /x/srv",
        "cmd /c %USERPROFILE%\\%X%",
        "pwsh -c $env:T=\"x\";~iex~$y",
        "pwsh -c $env:T='a;iex~$y'",
        "cmd /c start /b srv.exe npx x",
        "pwsh -c start~npx~'pkg'",
        &long,
        &options,
        &deep,
    ] {
        if !is_any(line) {
            wrong.push(line);
        }
    }
    for line in [
        "npx -y pkg $HOME",
        "sh -c cd~\"$(dirname~\"$0\")\"~&&~exec~npx~-y~pkg~\"$X\"",
        "sh -c T=$(cat~f)~exec~npx~pkg",
        "sh -c \"$HOME/bin/pkg\"~x",
        "sh -c exec~npx~\"$@\" sh pkg",
        "sh -c npx~pkg~\"$@\"",
        "sh -c .~./.env~&&~npx~pkg",
        "bash -c source~\"$HOME/.nvm/nvm.sh\"~&&~npx~pkg",
        "bash -c [~-s~\"$NVM_DIR/nvm.sh\"~]~&&~.~\"$NVM_DIR/nvm.sh\";~npx~pkg",
        "sh -c trap~'kill~0'~EXIT;~npx~pkg",
        "sh -c node~$HOME/a/server.js~\"$@\"",
        "bash -euo pipefail -c npx~pkg",
        "powershell -ExecutionPolicy Bypass -File C:\\a\\run.ps1",
        "python -m server $X",
        "npx pkg --shell bash --verbose",
        "sudo -E timeout 9 npx pkg",
        "docker run -i --rm x/y $HOME",
        "sh -c a~|~bash~run.sh",
        "sh -c case~x~in~a)~b;;~*)~c;;~esac",
        "uvx pkg[x]>=2",
        "echo costs~$5~and~$(more)",
        "bash -c eval~\"$(fnm~env)\";~npx~-y~foo",
        "bash -c eval~\"$(direnv~export~bash)\"~&&~npx~foo",
        "zsh -c eval~\"$(/opt/homebrew/bin/brew~shellenv)\"~&&~exec~npx~foo",
        "bash -c source~<(fnm~env)~&&~npx~foo",
        "cmd /c %USERPROFILE%\\x\\run.bat",
        "cmd /c %USERPROFILE%\\x\\run.bat~a",
        "pwsh -c $env:T=\"x\";~npx~foo",
        "powershell -Command $env:T~=~'x';~npx~foo",
        "cmd /c start /b npx foo",
        "cmd /c start~\"\"~/b~npx~foo",
        "sh -c T=$(gh~auth~token~2>&1)~npx~foo",
        "sh -c find~.~-name~x~-delete;~npx~foo",
        "sh -c ps~|~awk~'{print~$1}';~npx~foo",
        "bwrap --ro-bind / / npx foo",
    ] {
        if is_any(line) {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn only_what_is_certain_is_one_way() {
    let of = |line: &str| {
        let (command, args) = words(line);
        let way = way(&command, &args);
        (way.command, way.args, way.env)
    };
    for (one, other) in [
        ("npx -y pkg --ro", "bunx pkg@2 --ro"),
        ("npx -y pkg", "npx -q pkg"),
        ("npx -y pkg", "sh -c exec~npx~pkg"),
        ("npx -y pkg", "cmd /c npx -y pkg"),
        ("npx -y pkg", "env npx -y pkg"),
        ("env A=1 npx pkg", "env A=1 bunx pkg"),
        ("uvx pkg", "uv tool run --from pkg pkg"),
        (
            "docker run --rm -i -e A=1 x/y",
            "podman run -i -e A=1 --rm x/y:v2",
        ),
    ] {
        assert_eq!(of(one), of(other), "{one}, {other}");
    }
    for (one, other) in [
        ("npx -y pkg", "npx -y pkg --ro"),
        ("npx -y pkg", "npx --unheard-of pkg"),
        ("npx -y pkg", "npx --registry https://a.example pkg"),
        ("npx -y pkg", "sh -c cd~/x~&&~npx~pkg"),
        ("npx -y pkg", "sh -c A=1~npx~pkg"),
        ("npx -y pkg", "env A=1 npx pkg"),
        ("docker run x/y", "docker run --read-only x/y"),
        ("docker run x/y", "docker run -e A=1 x/y"),
    ] {
        assert_ne!(of(one), of(other), "{one}, {other}");
    }
}

#[test]
fn lines_with_letters_of_another_length_in_lower_case_are_read() {
    let lines = [
        "cmd /d/c npx foo",
        "cmd /s /c/x/srv",
        "pwsh -NoProfile -Command npx~foo",
        "powershell /enc bgBw",
        "sh -ceuo pipefail npx~foo",
        "fish --command=npx~foo",
        "env --split-string=npx~foo",
        "env -vSnpx~foo",
        "docker run -eA=1 x/y:1@sha256:0",
        "npx @a/b@1 https://a.example/x",
        "uvx --from git+https://a/x.git@1 x",
        "node C:\\a\\s.js",
        "script -qc /x/srv~a",
        "cmd /c cd~%X%\\y~&&~./srv",
        "uv --directory=/a run python s.py",
    ];
    for line in lines {
        for at in (0..=line.len()).filter(|at| line.is_char_boundary(*at)) {
            // The first is longer in lower case, the next two are shorter.
            for letter in ["\u{130}", "\u{1e9e}", "\u{212a}", "\u{1f600}", "e\u{301}"] {
                let (before, after) = line.split_at(at);
                let (command, args) = words(&format!("{before}{letter}{after}"));
                let _ = (
                    programs(&command, &args),
                    programs_in("/a", &command, &args),
                    way(&command, &args),
                );
            }
        }
    }
    let (command, args) = words("cmd /\u{130}/c npx foo");
    assert!(!programs(&command, &args).is_disjoint(&programs("npx", &["foo".to_owned()])));
}

#[test]
fn lines_of_any_length_and_depth_are_read_in_a_short_time() {
    let shells = |quote: fn(&str) -> String, depth: usize| {
        let mut text = "npx -y pkg".to_owned();
        for _ in 0..depth {
            if text.len() < 1 << 20 {
                text = format!("sh -c {}", quote(&text));
            }
        }
        text
    };
    let escaped = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut texts = vec![
        shells(|text| format!("\"{text}\""), 1000),
        shells(|text| format!("'{text}'"), 1000),
        shells(escaped, 1000),
        "cd a; ".repeat(5000) + "./srv a",
        "cd a && npm start; ".repeat(800),
        "env A=1 ".repeat(2000) + "npx pkg",
        "trap 'trap x' X; ".repeat(900),
        "$(".repeat(8000),
        "`".repeat(8001),
        "f() { x; }; ".repeat(1300),
        "npm ".repeat(4000),
        "node -x ".repeat(2000),
        "a ".repeat(8000),
        "\\ ".repeat(8000),
    ];
    texts.extend([";", "(", "'", "\"", "x;", "${", "<(", "\\"].map(|part| part.repeat(1 << 20)));
    texts.push("x".repeat(1 << 20));
    // Each is also read as a text of nearly the longest that is.
    let cut = |text: &String| text.chars().take(7_900).collect::<String>();
    texts.extend(Vec::from_iter(texts.iter().map(cut)));
    let numbered = |form: fn(usize) -> String| (0..600).map(form).collect::<String>();
    texts.extend(
        [
            "cd a; ".repeat(16) + &"./b x; ".repeat(1_100),
            "cd a; ".repeat(16) + &numbered(|at| format!("./b{at} x; ")),
            "cd a; ".repeat(16) + &numbered(|at| format!("npm run {at}\n")),
            "cd /a\n".repeat(2) + &numbered(|at| format!("node {at}.js; ")),
            numbered(|at| format!("sh -c n{at}; ")),
            numbered(|at| format!("$(npx a{at}) ")),
        ]
        .map(|text| text.chars().take(7_900).collect()),
    );
    let mut lines: Vec<(&str, Vec<String>)> = Vec::new();
    for text in &texts {
        for (command, first) in [
            ("sh", "-c"),
            ("cmd", "/c"),
            ("srv", "--x"),
            ("env", "-S"),
            ("npx", "-c"),
        ] {
            lines.push((command, vec![first.to_owned(), text.clone()]));
        }
    }
    let words = [
        "npx",
        "--x",
        "-x",
        "sh -c 'sh -c npx'",
        "((((",
        "env",
        "nice",
        "sh",
        "-c",
        "node",
        "npm",
        "A=1",
        "cd /a && node s.js",
        "--directory",
        "run",
        "x",
        "&&",
    ];
    for (word, many) in words
        .into_iter()
        .flat_map(|word| [(word, 10_000), (word, 900)])
    {
        let args = vec![word.to_owned(); many];
        let mixed = (0..many).map(|at| {
            if at % 2 == 0 {
                word.to_owned()
            } else {
                format!("--z{at}")
            }
        });
        let mixed: Vec<String> = mixed.collect();
        for command in ["npm", "docker", "sh", "cmd", "sudo", "uv", "other"] {
            lines.push((command, args.clone()));
            lines.push((command, mixed.clone()));
        }
    }
    let mut slow = Vec::new();
    for (command, args) in &lines {
        let time = || {
            let (start, before) = (Instant::now(), processor_time());
            let _ = programs_of(command, args);
            let after = processor_time();
            after
                .zip(before)
                .map_or(start.elapsed(), |(after, before)| after - before)
        };
        if (0..3).all(|_| time() > Duration::from_millis(50)) {
            let start: String = args.join(" ").chars().take(40).collect();
            slow.push((time(), *command, args.len(), start));
        }
        let _ = way(command, args);
        let _ = programs_in("/a", command, args);
    }
    assert!(slow.is_empty(), "{slow:#?}");
}
