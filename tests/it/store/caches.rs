//! What replicas add up or pass to each other: statistics, and lists of servers.

use std::fs;

use rustix::process::Signal;

use super::replica;
use crate::identities::{As, execute, said, token};
use crate::support::gateway::Gateway;
use crate::support::postgres::Postgres;
use crate::support::script::hang;
use crate::support::{Server, until};

fn end(mut gateway: Gateway) {
    gateway.process().signal(Signal::TERM);
    assert!(gateway.process().wait().success());
}

#[test]
fn statistics_of_all_replicas_are_added_up() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let (here, there) = (replica(&database), replica(&database));
    let (first, second) = (here.serve(&[]), there.serve(&[]));
    let anna = token(&here, &["anna", "--role", "dev"]);
    for _ in 0..3 {
        assert_eq!(execute(&first, "git__log", &anna), "200 the log");
        assert_eq!(execute(&second, "git__log", &anna), "200 the log");
    }
    end(first);
    end(second);
    for setup in [&here, &there, &replica(&database)] {
        let counted = setup.run(&["stats", "--json"]).code(0).json();
        assert_eq!(counted["tools"][0]["calls"], 6, "{counted}");
    }
    assert!(!here.home().path("state/statistics").exists());
    // A copy has them.
    let copy = here.home().path("copy.jsonl");
    let copy = copy.to_str().unwrap();
    let _ = here.run(&["store", "export", copy]).code(0);
    let new = Postgres::database().unwrap();
    let moved = replica(&new);
    let _ = moved.run(&["store", "import", copy]).code(0);
    let counted = moved.run(&["stats", "--json"]).code(0).json();
    assert_eq!(counted["tools"][0]["calls"], 6, "{counted}");
    let checked = moved.run(&["store", "check", "--json"]).code(0).json();
    assert_eq!(checked["contents"]["usage_days"], 1, "{checked}");
}

#[test]
fn a_replica_that_starts_finds_the_lists_of_another() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let setup = replica(&database);
    let gateway = setup.serve(&[]);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    until("the list to be in the store", || {
        let lists = "select count(*) from shelf where kind = 'lists' and key like 'git-%'";
        (database.run(lists) != "0").then_some(())
    });
    end(gateway);
    // A replica without a cache, whose server lists nothing in time.
    fs::remove_dir_all(setup.cache_path()).unwrap();
    let setup = setup.server("git", Server::new().on("tools/list", [hang()]));
    let gateway = setup.serve(&[]);
    let query = r#""name":"search_tools","arguments":{"query":"log"}"#;
    let found = said(gateway.modern("tools/call", query).by(&anna));
    assert!(found.contains("git__log"), "{found}");
}

/// It is open which of two replicas works. The other one takes the vectors.
#[cfg(feature = "semantic")]
#[test]
fn one_replica_embeds_the_tools_for_all() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let open = || {
        let setup = replica(&database).setting("search", serde_json::json!({ "semantic": true }));
        setup.log_level("debug")
    };
    let (here, there) = (open(), open());
    let gateways = [here.serve(&[]), there.serve(&[])];
    let anna = token(&here, &["anna", "--role", "dev"]);
    for gateway in &gateways {
        assert_eq!(execute(gateway, "git__log", &anna), "200 the log");
    }
    // The number of vectors in the file of a replica, if it has one.
    let vectors = |setup: &crate::support::Setup| {
        let directory = setup.cache_path().join("search/vectors/v1");
        let files = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut paths = files.map(|file| file.path());
        let path = paths.find(|path| path.extension().is_some_and(|end| end == "vectors"))?;
        let bytes = fs::read(path).ok()?;
        Some(u32::from_le_bytes(*bytes[12..].first_chunk()?))
    };
    let embedded = |setup: &crate::support::Setup| {
        let log = fs::read_to_string(setup.home().path("state/logs/mcpzip.log")).unwrap();
        let parts = log.split("tools are embedded tools=").skip(1);
        let counts = parts.map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_digit());
            rest[..end.unwrap_or(rest.len())].parse::<u32>().unwrap()
        });
        counts.sum::<u32>()
    };
    let count = until("both to have the vectors of all tools", || {
        let (first, second) = (vectors(&here)?, vectors(&there)?);
        (first == second && first >= 4).then_some(first)
    });
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(
        embedded(&here) + embedded(&there),
        count,
        "each of them once"
    );
}
