//! What lies on disk: shared, damaged, forbidden or half written, it never costs more than listing again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::faults::Outcome;
use crate::support::script::{answer, say};
use crate::support::{Client, Server, Setup, until};

pub(crate) const OUTCOMES: &[Outcome] = &[
    Outcome {
        fault: "each file of the cache is damaged: a byte, a cut, zeros, emptied",
        gets: "search and calls work",
        after: "at once; the damaged part, when its server is listed",
        then: "the damaged file is set aside, and the server is listed again",
    },
    Outcome {
        fault: "the cache is read-only",
        gets: "search and calls work, and a refresh",
        after: "at once",
        then: "the next start has the data from before",
    },
    Outcome {
        fault: "there is a file where the cache should be",
        gets: "search and calls work",
        after: "when the servers are listed",
        then: "the next start has no data of earlier runs",
    },
];

fn two_servers() -> Setup {
    Setup::new()
        .server(
            "garden",
            Server::new().tool("water_plants", [answer("watered")]),
        )
        .server(
            "kitchen",
            Server::new().tool("bake_bread", [answer("baked")]),
        )
}

#[track_caller]
fn until_both_found(client: &mut Client) {
    until("both servers' tools", || {
        let found = client.search("does water plants bake bread");
        (found.contains("garden__water_plants") && found.contains("kitchen__bake_bread"))
            .then_some(())
    });
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn two_processes_share_a_cache() {
    let setup = two_servers();
    let (mut one, mut two) = (setup.connect(), setup.connect());
    until_both_found(&mut one);
    until_both_found(&mut two);
    for client in [&mut one, &mut two] {
        client.call("proxy_refresh", "{}").text();
    }
    // A tool that only one of them knows moves the index of that one alone.
    let setup = setup.server(
        "cellar",
        Server::new().tool("fetch_wine", [answer("fetched")]),
    );
    let mut three = setup.connect();
    until("the new tool", || {
        three
            .search("does fetch wine")
            .contains("cellar__fetch_wine")
            .then_some(())
    });
    until_both_found(&mut one);
    until_both_found(&mut two);
    assert_eq!(two.execute("garden__water_plants").text(), "watered");
    for client in [one, two, three] {
        client.finish();
    }
}

#[test]
fn damage_anywhere_in_the_cache_is_repaired() {
    let setup = two_servers();
    let mut client = setup.connect();
    until_both_found(&mut client);
    client.finish();
    let all = files(&setup.cache_path());
    assert!(all.len() > 4, "{all:?}");
    // Offsets that differ from run to run would find more, and tell less when they do.
    let mut seed = 0x9E37_79B9_u64;
    let mut random = move |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below.max(1)
    };
    type Damage = fn(&mut Vec<u8>, usize);
    let damage: [(&str, Damage); 4] = [
        ("a flipped byte", |bytes, at| {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 0x55;
            }
        }),
        ("a cut", Vec::truncate),
        ("zeros", |bytes, at| bytes[at..].fill(0)),
        ("nothing", |bytes, _| bytes.clear()),
    ];
    for (what, damage) in damage {
        for path in files(&setup.cache_path()) {
            let Ok(mut bytes) = fs::read(&path) else {
                continue;
            };
            let at = random(bytes.len());
            damage(&mut bytes, at);
            fs::write(&path, bytes).unwrap();
        }
        let mut client = setup.connect();
        until_both_found(&mut client);
        assert_eq!(
            client.execute("kitchen__bake_bread").text(),
            "baked",
            "{what}"
        );
        let stderr = client.stderr();
        assert!(!stderr.contains("panicked"), "{what}: {stderr}");
        client.finish();
    }
}

#[test]
fn a_damaged_definition_does_not_delay_the_first_search() {
    let setup = two_servers();
    let mut client = setup.connect();
    until_both_found(&mut client);
    client.finish();
    // One server was never listed, and the index has to be built without the definition of the other.
    for path in files(&setup.cache_path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("kitchen-") {
            let mut bytes = fs::read(&path).unwrap();
            let definition = bytes.windows(11).rposition(|part| part == b"inputSchema");
            bytes[definition.unwrap()] ^= 1;
            fs::write(&path, bytes).unwrap();
        } else if name.starts_with("garden-") || name.ends_with(".index") {
            fs::remove_file(&path).unwrap();
        }
    }
    let mut client = setup.connect();
    let start = Instant::now();
    client.search("does water plants");
    assert!(start.elapsed() < Duration::from_secs(5));
    until_both_found(&mut client);
    client.finish();
}

#[test]
fn a_cache_directory_that_cannot_be_used_costs_only_the_next_start() {
    let setup = two_servers();
    fs::remove_dir(setup.cache_path()).unwrap();
    fs::write(setup.cache_path(), "a file where the directory should be").unwrap();
    for _ in 0..2 {
        let mut client = setup.connect();
        until_both_found(&mut client);
        assert_eq!(client.execute("garden__water_plants").text(), "watered");
        assert!(!client.stderr().contains("panicked"), "{}", client.stderr());
        client.finish();
    }
}

#[cfg(unix)]
#[test]
fn a_cache_that_may_only_be_read_still_serves() {
    use std::os::unix::fs::PermissionsExt as _;
    let setup = two_servers();
    let mut client = setup.connect();
    until_both_found(&mut client);
    client.finish();
    let set = |mode: u32| {
        let mut directories = vec![setup.cache_path()];
        directories.extend(
            files(&setup.cache_path())
                .iter()
                .map(|path| path.parent().unwrap().to_owned()),
        );
        for directory in directories {
            fs::set_permissions(directory, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    set(0o500);
    let mut client = setup.connect();
    until_both_found(&mut client);
    client.call("proxy_refresh", "{}").text();
    assert_eq!(client.execute("garden__water_plants").text(), "watered");
    client.finish();
    set(0o700);
}

#[cfg(unix)]
#[test]
fn killed_again_and_again_the_next_start_is_fine() {
    let setup = two_servers();
    for round in 0..20_u64 {
        let mut client = setup.connect();
        client.begin("search_tools", r#"{"query":"does water plants"}"#);
        // Each round a little further into the work.
        std::thread::sleep(Duration::from_millis(round * 4));
        client.signal(rustix::process::Signal::KILL);
        client.wait();
        assert!(!client.stderr().contains("panicked"), "{}", client.stderr());
        // Another list each time, so that there is something to write.
        let name = format!("bake_bread_{round}");
        setup
            .clone()
            .server(
                "kitchen",
                Server::new()
                    .tool("bake_bread", [answer("baked")])
                    .tool(&name, []),
            )
            .save();
    }
    let mut client = setup.connect();
    until_both_found(&mut client);
    assert_eq!(client.execute("kitchen__bake_bread").text(), "baked");
    let warnings: Vec<_> = client
        .stderr()
        .lines()
        .filter(|line| line.contains("damaged"))
        .map(str::to_owned)
        .collect();
    assert!(
        warnings.is_empty(),
        "a kill damaged the cache: {warnings:#?}"
    );
    client.finish();
    // What was half written is swept up once it is old enough to have no writer any more.
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    for path in files(&setup.cache_path())
        .into_iter()
        .filter(|path| is_temporary(path))
    {
        fs::File::options()
            .append(true)
            .open(path)
            .unwrap()
            .set_modified(old)
            .unwrap();
    }
    let setup = setup.server(
        "cellar",
        Server::new().tool("fetch_wine", [answer("fetched")]),
    );
    let mut client = setup.connect();
    until("the new tool", || {
        client
            .search("does fetch wine")
            .contains("cellar__fetch_wine")
            .then_some(())
    });
    client.finish();
    let left: Vec<_> = files(&setup.cache_path())
        .into_iter()
        .filter(|path| is_temporary(path))
        .collect();
    assert!(left.is_empty(), "temporary files stay behind: {left:?}");
}

fn is_temporary(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.ends_with(".tmp") || text.contains("building-") || text.contains("removed-")
}

#[test]
fn secrets_stay_where_they_belong() {
    let (secret, header, argument) = (
        "s3cr3t-in-the-environment",
        "s3cr3t-in-a-header",
        "s3cr3t-in-an-argument",
    );
    let setup = Setup::new()
        .server_with("a", Server::new().tool("t", [answer("done")]), json!({ "env": { "TOKEN": "${TOKEN}" } }))
        .server_with("dead", Server::new().at_start([say("no luck")]), json!({ "env": { "API_KEY": secret } }))
        .entry("absent", r#"{"command":"/no/such/program","args":["--token=${ARGUMENT}"],"env":{"X":"${TOKEN}"}}"#)
        .entry(
            "remote",
            r#"{"url":"http://127.0.0.1:1/mcp?key=${ARGUMENT}","headers":{"Authorization":"Bearer ${HEADER}"}}"#,
        )
        .variable("TOKEN", secret)
        .variable("HEADER", header)
        .variable("ARGUMENT", argument)
        .log_level("trace");
    let mut client = setup.connect();
    for tool in ["a__t", "dead__t", "absent__t", "remote__t"] {
        client.execute(tool);
    }
    client.call("proxy_refresh", "{}");
    client.call("proxy_status", "{}");
    client.search("does t");
    client.close_stdin();
    client.wait();
    let mut seen = vec![
        ("stdout".to_owned(), client.stdout()),
        ("stderr".to_owned(), client.stderr()),
    ];
    for command in [
        &["servers"][..],
        &["tools"],
        &["call", "absent__t"],
        &["search", "does t"],
    ] {
        let outcome = setup.run(command);
        seen.push((format!("{command:?}"), outcome.stdout + &outcome.stderr));
    }
    for directory in [setup.cache_path(), setup.home().path("state")] {
        let read = |path: PathBuf| {
            (
                path.display().to_string(),
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
            )
        };
        seen.extend(files(&directory).into_iter().map(read));
    }
    assert!(seen.len() > 6, "too little was looked at");
    for (place, text) in &seen {
        for secret in [secret, header, argument] {
            assert!(
                !text.contains(secret),
                "`{secret}` is in {place}: {text:.2000}"
            );
        }
    }
}

#[cfg(unix)]
#[test]
fn files_are_open_to_the_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let setup = two_servers();
    let mut client = setup.connect();
    until_both_found(&mut client);
    client.finish();
    for path in files(&setup.cache_path())
        .into_iter()
        .filter(|path| path.starts_with(setup.cache_path().join("catalog")))
    {
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", path.display());
    }
}
