//! GraphQL interfaces whose queries and mutations are tools (`"graphql": …`).

use serde_json::{Value, json};

use crate::support::http::{HttpServer, Reply, Request};
use crate::support::{Client, Setup};

fn named(kind: &str, name: &str) -> Value {
    json!({ "kind": kind, "name": name })
}

fn required(inner: &Value) -> Value {
    json!({ "kind": "NON_NULL", "ofType": inner })
}

fn field(name: &str, args: Value, kind: Value) -> Value {
    json!({ "name": name, "description": format!("About {name}"), "args": args, "type": kind })
}

/// The schema of a shop with animals.
fn schema() -> Value {
    let (id, text) = (named("SCALAR", "ID"), named("SCALAR", "String"));
    let pet = named("OBJECT", "Pet");
    let argument = |name: &str, kind: Value| json!({ "name": name, "type": kind });
    json!({
        "queryType": { "name": "Query" }, "mutationType": { "name": "Mutation" },
        "types": [
            { "kind": "OBJECT", "name": "Query", "fields": [
                field("pet", json!([argument("id", required(&id))]), pet.clone()),
                field("pets", json!([argument("first", named("SCALAR", "Int")), argument("kind", named("ENUM", "Kind"))]), named("OBJECT", "PetConnection")),
                field("version", json!([]), text.clone()),
            ] },
            { "kind": "OBJECT", "name": "Mutation", "fields": [
                field("createPet", json!([argument("input", required(&named("INPUT_OBJECT", "PetInput")))]), named("OBJECT", "Payload")),
            ] },
            { "kind": "OBJECT", "name": "Pet", "fields": [
                field("id", json!([]), id), field("name", json!([]), text.clone()),
                field("owner", json!([]), named("OBJECT", "Owner")),
                field("photo", json!([argument("size", required(&named("SCALAR", "Int")))]), text.clone()),
            ] },
            { "kind": "OBJECT", "name": "Owner", "fields": [field("login", json!([]), text.clone()), field("age", json!([]), named("SCALAR", "Int"))] },
            { "kind": "OBJECT", "name": "PetConnection", "fields": [field("totalCount", json!([]), named("SCALAR", "Int")), field("nodes", json!([]), json!({ "kind": "LIST", "ofType": pet }))] },
            { "kind": "OBJECT", "name": "Payload", "fields": [field("pet", json!([]), pet)] },
            { "kind": "INPUT_OBJECT", "name": "PetInput", "inputFields": [argument("name", required(&text)), argument("parent", named("INPUT_OBJECT", "PetInput"))] },
            { "kind": "ENUM", "name": "Kind", "enumValues": [{ "name": "CAT" }, { "name": "DOG" }] },
            { "kind": "SCALAR", "name": "ID" }, { "kind": "SCALAR", "name": "String" }, { "kind": "SCALAR", "name": "Int" },
        ],
    })
}

fn shop(request: &Request, reply: &mut Reply) {
    let query = request.body["query"].as_str().unwrap_or_default();
    let answer = if query.contains("__schema") {
        json!({ "data": { "__schema": schema() } })
    } else if query.contains("version") {
        json!({ "data": null, "errors": [{ "message": "no version", "path": ["version"] }] })
    } else {
        json!({ "data": { "query": query, "variables": request.body["variables"], "key": request.header("x-key").len() } })
    };
    reply.json(&answer.to_string());
}

fn setup(web: &HttpServer, members: Value) -> Setup {
    let mut entry = json!({ "graphql": web.url("/graphql"), "headers": { "X-Key": "a-secret" } });
    entry
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    Setup::new().entry("shop", &entry.to_string())
}

/// The request that a call makes, as the interface echoes it.
#[track_caller]
fn sent(client: &mut Client, tool: &str, arguments: Value) -> (String, Value) {
    let text = client
        .execute_with(&format!("shop__{tool}"), &arguments.to_string())
        .text();
    let echo: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
    assert_eq!(echo["key"], 8);
    (
        echo["query"].as_str().unwrap().to_owned(),
        echo["variables"].clone(),
    )
}

#[test]
fn queries_and_mutations_are_found_described_and_called() {
    let web = HttpServer::start(shop);
    let mut client = setup(&web, json!({})).connect();
    assert!(client.search("create pet").contains("shop__createPet"));
    let described = client
        .call(
            "describe_tool",
            r#"{"names":["shop__createPet","shop__pets"]}"#,
        )
        .text();
    assert!(
        described.contains(r#""required":["input"]"#)
            && described.contains(r#""enum":["CAT","DOG"]"#),
        "{described}"
    );
    assert!(
        described.contains(r#""readOnlyHint":true"#)
            && described.contains(r#""readOnlyHint":false"#),
        "{described}"
    );

    let (query, variables) = sent(&mut client, "pet", json!({ "id": "7" }));
    assert_eq!(
        query,
        "query($id: ID!) { pet(id: $id) { id name owner { login } } }"
    );
    assert_eq!(variables, json!({ "id": "7" }));
    let (query, _) = sent(
        &mut client,
        "pets",
        json!({ "first": 2, "fields": "nodes { name }" }),
    );
    assert_eq!(
        query,
        "query($first: Int) { pets(first: $first) { nodes { name } } }"
    );
    let (query, _) = sent(&mut client, "pets", json!({}));
    assert_eq!(
        query,
        "query { pets { totalCount nodes { id name owner { login } } } }"
    );
    let (query, variables) = sent(
        &mut client,
        "createPet",
        json!({ "input": { "name": "Rex\"}" } }),
    );
    assert_eq!(
        query,
        "mutation($input: PetInput!) { createPet(input: $input) { pet { id name owner { login } } } }"
    );
    assert_eq!(variables["input"]["name"], "Rex\"}");

    let refused = client.execute("shop__version");
    assert!(
        refused.is_tool_error() && refused.text().contains("no version (at [\"version\"])"),
        "{}",
        refused.text()
    );
    let wrong = client.execute_with("shop__createPet", r#"{"input":{}}"#);
    assert!(
        wrong.is_tool_error() && wrong.text().contains("input.name"),
        "{}",
        wrong.text()
    );
}

#[test]
fn a_selection_cannot_ask_for_another_field() {
    let web = HttpServer::start(shop);
    let mut client = setup(&web, json!({ "include": ["pet"] })).connect();
    let before = {
        sent(&mut client, "pet", json!({ "id": "7" }));
        web.requests().len()
    };
    for fields in [
        "id } pets { totalCount",
        "id # }",
        "",
        "id { ",
        "a(b: \"\"\"}\"\"\")",
    ] {
        let arguments = json!({ "id": "7", "fields": fields }).to_string();
        let answer = client.execute_with("shop__pet", &arguments);
        assert!(answer.is_tool_error(), "{fields}: {}", answer.text());
    }
    let answer = client.execute_with("shop__createPet", r#"{"input":{"name":"x"}}"#);
    assert!(answer.is_tool_error(), "{}", answer.text());
    assert_eq!(web.requests().len(), before);
}

#[test]
fn an_interface_without_introspection_says_why() {
    let web = HttpServer::start(|_, reply| {
        reply.json(r#"{"errors":[{"message":"introspection is off"}]}"#);
    });
    let outcome = setup(&web, json!({})).run(&["tools", "shop"]);
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(
        said.contains("refuses an introspection: introspection is off"),
        "{said}"
    );
    let both = setup(&web, json!({ "openapi": "http://a" })).run(&["list"]);
    assert!(
        format!("{}{}", both.stdout, both.stderr).contains("keep one of them"),
        "{both}"
    );
}

#[test]
fn the_secrets_of_its_url_are_in_no_answer() {
    let web = HttpServer::start(|request, reply| {
        let is_call = !request.text.contains("__schema");
        match is_call {
            true => reply.json(&json!({ "data": { "path": request.path } }).to_string()),
            false => shop(request, reply),
        }
    });
    let entry = json!({ "graphql": web.url("/graphql?api_key=${KEY}") });
    let setup = Setup::new()
        .entry("shop", &entry.to_string())
        .variable("KEY", "the-secret-key");
    let mut client = setup.connect();
    let text = client.execute("shop__version").text();
    assert_eq!(text, r#"{"path":"/graphql?api_key=***"}"#);
    client.finish();
}

#[test]
fn an_interface_is_added_with_a_header_from_a_variable() {
    let web = HttpServer::start(shop);
    let setup = Setup::new().variable("SHOP_KEY", "a-secret");
    let url = web.url("/graphql");
    let added = setup.run(&["add", "shop", "--graphql", &url, "-H", "X-Key: ${SHOP_KEY}"]);
    assert_eq!(added.json()["check"]["tools"], 4, "{added}");
    let written = std::fs::read_to_string(setup.config_path()).unwrap();
    assert!(written.contains(r#""X-Key": "${SHOP_KEY}""#), "{written}");
    let sent = web.requests();
    assert!(
        sent.iter()
            .all(|request| request.header("x-key") == "a-secret"),
        "{sent:?}"
    );
}

#[test]
fn trust_holds_for_queries_and_mutations() {
    use crate::pins::is_held;
    let is_changed = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let changed = is_changed.clone();
    let web = HttpServer::start(move |request, reply| {
        let is_asked = request.body["query"]
            .as_str()
            .is_some_and(|query| query.contains("__schema"));
        if !is_asked || !changed.load(std::sync::atomic::Ordering::SeqCst) {
            return shop(request, reply);
        }
        let text = json!({ "data": { "__schema": schema() } }).to_string();
        reply.json(&text.replace("About createPet", "About createPet and its mail"));
    });
    let pinned = setup(&web, json!({ "trust": "pin" }));
    let mut client = pinned.connect();
    client.call("proxy_refresh", "{}").text();
    sent(&mut client, "pet", json!({ "id": "1" }));
    is_changed.store(true, std::sync::atomic::Ordering::SeqCst);
    client.call("proxy_refresh", "{}").text();
    is_held(&mut client, "shop__createPet");
    sent(&mut client, "pet", json!({ "id": "1" }));
    client.finish();
    let mut client = setup(&web, json!({ "trust": "quarantine" })).connect();
    client.call("proxy_refresh", "{}").text();
    is_held(&mut client, "shop__pet");
    assert!(!client.search("create pet").contains("createPet"));
    client.finish();
}
