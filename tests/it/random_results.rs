//! Ten thousand results by chance, each byte for byte what its server sent.

use serde_json::json;

use crate::support::random::Random;
use crate::support::script::given;
use crate::support::{Client, Server, Setup};

/// Calls that are under way at once.
const AT_ONCE: usize = 64;

fn setup(duplicates: &str) -> Setup {
    let server = Server::new().tool_as(
        "t",
        r#"{"name":"t","inputSchema":{"type":"object"}}"#,
        [given()],
    );
    Setup::new()
        .server("a", server)
        .setting("results", json!({ "budget": 0, "duplicates": duplicates }))
        .log_level("warn")
}

/// Has the server send `count` results, and fails at the first that came otherwise.
#[track_caller]
fn check(client: &mut Client, seed: u64, count: usize) {
    let mut random = Random::new(seed);
    let results: Vec<String> = (0..count).map(|_| random.result()).collect();
    for batch in results.chunks(AT_ONCE) {
        let ids: Vec<u64> = batch
            .iter()
            .map(|result| {
                client.begin(
                    "execute_tool",
                    &format!(r#"{{"name":"a__t","arguments":{{"result":{result}}}}}"#),
                )
            })
            .collect();
        for (id, sent) in ids.into_iter().zip(batch) {
            let answer = client.answer(id);
            assert!(
                answer.result() == sent,
                "seed {seed}: sent {sent:.2000}\ncame {:.2000}",
                answer.result()
            );
        }
    }
}

#[test]
fn results_of_all_kinds_pass_byte_for_byte() {
    let mut client = setup("auto").connect();
    check(&mut client, 1, 8_000);
    client.finish();
}

#[test]
fn a_client_that_shows_one_of_two_gets_both_where_the_user_wants_that() {
    let mut client = setup("keep").start();
    client.shake_hands_named("claude-code");
    check(&mut client, 2, 2_000);
    client.finish();
}
