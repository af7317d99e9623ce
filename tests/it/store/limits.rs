//! Limits that all gateways count together.

use serde_json::json;

use super::replica;
use crate::identities::{execute, token};
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
