use super::*;
use crate::config::{addresses_of, programs_of};

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
        ("cd ~/tools && ./srv a", &own),
        ("cd; ./tools/srv a", &own),
    ] {
        assert!(!shell(line).is_disjoint(&plain(path)), "{line}");
    }
    let mail = shell("cd /srv/mail && npm start");
    assert!(mail.is_disjoint(&shell("cd /srv/notes && npm start")));
    let many = "cd a; ".repeat(50_000) + "./srv a";
    let start = std::time::Instant::now();
    assert!(shell(&many).contains(&crate::config::any_program()));
    assert!(start.elapsed() < std::time::Duration::from_secs(10));
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
        ("sh -c cd~/x~&&~a-mcp", "sh -c cd~/x~&&~b-mcp"),
        ("sh -c npm~install~&&~a-mcp", "sh -c npm~install~&&~b-mcp"),
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
        &long,
        &options,
        &deep,
    ] {
        assert!(is_any(line), "{line}");
    }
    for line in [
        "npx -y pkg $HOME",
        "sh -c cd~\"$(dirname~\"$0\")\"~&&~exec~npx~-y~pkg~\"$X\"",
        "sh -c T=$(cat~f)~exec~npx~pkg",
        "sh -c \"$HOME/bin/pkg\"~x",
        "sh -c exec~npx~\"$@\" sh pkg",
        "sh -c npx~pkg~\"$@\"",
        "sh -c .~./.env~&&~npx~pkg",
        "sh -c a~|~bash~run.sh",
        "sh -c case~x~in~a)~b;;~*)~c;;~esac",
        "uvx pkg[x]>=2",
        "echo costs~$5~and~$(more)",
    ] {
        assert!(!is_any(line), "{line}");
    }
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
fn long_and_deep_lines_end() {
    for word in ["npx", "--x", "-p", "sh -c 'sh -c npx'", "((((", "env"] {
        let args: Vec<String> = (0..500).map(|_| word.to_owned()).collect();
        for command in ["npx", "docker", "sh", "env", "other"] {
            let _ = programs_of(command, &args);
        }
    }
}
