//! Limits that all gateways count together.

use serde_json::json;

use super::replica;
use crate::identities::{As, execute, token};
use crate::support::postgres::Postgres;

#[test]
fn a_limit_holds_for_all_replicas_together() {
    // A small one is asked about at each call, of a larger one shares are taken.
    for (most, calls) in [(7, 20), (80, 110)] {
        let Some(database) = Postgres::database() else {
            return;
        };
        let limits = json!([{ "for": "git__log", "calls_per_day": most }]);
        let limited = || replica(&database).setting("limits", limits.clone());
        let (here, there) = (limited(), limited());
        let (first, second) = (here.serve(&[]), there.serve(&[]));
        let anna = token(&here, &["anna", "--role", "dev"]);
        let bo = token(&here, &["bo", "--role", "dev"]);
        let passed = |token: &str| {
            let said = (0..calls).map(|call| {
                let gateway = if call % 2 == 0 { &first } else { &second };
                execute(gateway, "git__log", token)
            });
            let said: Vec<String> = said.collect();
            said.iter().filter(|said| *said == "200 the log").count()
        };
        let of_anna = passed(&anna);
        assert!(of_anna <= most, "{of_anna} of {most}");
        // What a replica had left of its share may be missing.
        assert!(of_anna * 10 >= most * 8, "{of_anna} of {most}");
        assert!(passed(&bo) > 0, "each person has their own");
        let used = database.run("select max(used) from allowance");
        assert!(used.parse::<usize>().unwrap() <= most, "{used}");
    }
}

#[test]
fn requests_and_bytes_are_counted_together_too() {
    for (most, requests) in [(5_u64, 12), (70, 100)] {
        let Some(database) = Postgres::database() else {
            return;
        };
        let limits = json!([{ "requests_per_minute": most }]);
        let limited = || replica(&database).setting("limits", limits.clone());
        let (here, there) = (limited(), limited());
        let (first, second) = (here.serve(&[]), there.serve(&[]));
        let anna = token(&here, &["anna", "--role", "dev"]);
        // All within one minute of the clock.
        database.run("select pg_sleep(case when extract(second from now()) > 40 then 61 - extract(second from now()) else 0 end)");
        let passed = (0..requests).filter(|number| {
            let gateway = if number % 2 == 0 { &first } else { &second };
            gateway.modern("tools/list", "").by(&anna).send().status == 200
        });
        let passed = passed.count() as u64;
        assert!(
            passed <= most && passed * 10 >= most * 7,
            "{passed} of {most}"
        );
    }
    let Some(database) = Postgres::database() else {
        return;
    };
    // An answer and its question have a few dozen bytes.
    let limits = json!([{ "for": "git__log", "bytes_per_day": 1000 }]);
    let limited = || replica(&database).setting("limits", limits.clone());
    let (here, there) = (limited(), limited());
    let (first, second) = (here.serve(&[]), there.serve(&[]));
    let anna = token(&here, &["anna", "--role", "dev"]);
    let mut passed = 0;
    for number in 0..200 {
        let gateway = if number % 2 == 0 { &first } else { &second };
        passed += u32::from(execute(gateway, "git__log", &anna) == "200 the log");
    }
    let used: u64 = database
        .run("select max(used) from allowance where key like 'BytesPerDay%'")
        .parse()
        .unwrap();
    assert!(passed > 3 && used <= 1200, "{passed} calls, {used} bytes");
    assert!(execute(&first, "git__log", &anna).contains("1000 bytes a day"));
    assert!(execute(&second, "git__log", &anna).contains("1000 bytes a day"));
}
