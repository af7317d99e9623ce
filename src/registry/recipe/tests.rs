use serde_json::json;

use super::*;

/// Adds members to an object.
fn extend(object: &mut serde_json::Value, members: serde_json::Value) {
    let serde_json::Value::Object(members) = members else {
        panic!("no object: {members}")
    };
    object.as_object_mut().unwrap().extend(members);
}

fn detail(members: serde_json::Value) -> Detail {
    let mut detail = json!({ "name": "a.b/c", "version": "1.0.0" });
    extend(&mut detail, members);
    serde_json::from_value(detail).unwrap()
}

fn package(kind: &str, identifier: &str, members: serde_json::Value) -> Detail {
    let mut package = json!({ "registryType": kind, "identifier": identifier, "version": "1.2.0", "transport": { "type": "stdio" } });
    extend(&mut package, members);
    detail(json!({ "packages": [package] }))
}

#[track_caller]
fn gives(detail: &Detail, given: &[(&str, &str)], expected: &str) {
    let mut inputs = Given::new();
    for (name, value) in given {
        inputs
            .entry((*name).to_owned())
            .or_default()
            .push((*value).to_owned());
    }
    let recipe = Recipe::of(detail, None).unwrap();
    assert_eq!(
        recipe.entry("srv", &inputs).unwrap().text().to_json(),
        expected
    );
}

#[test]
fn each_kind_of_package_has_its_runner() {
    for (kind, identifier, expected) in [
        (
            "npm",
            "@a/b",
            r#"{"command":"npx","args":["-y","@a/b@1.2.0"]}"#,
        ),
        ("pypi", "a-b", r#"{"command":"uvx","args":["a-b@1.2.0"]}"#),
        (
            "oci",
            "docker.io/a/b:9",
            r#"{"command":"docker","args":["run","-i","--rm","docker.io/a/b:9"]}"#,
        ),
        (
            "oci",
            "a/b",
            r#"{"command":"docker","args":["run","-i","--rm","a/b:1.2.0"]}"#,
        ),
        (
            "nuget",
            "A.B",
            r#"{"command":"dnx","args":["A.B@1.2.0","--yes"]}"#,
        ),
    ] {
        gives(&package(kind, identifier, json!({})), &[], expected);
    }
    let older = package(
        "oci",
        "a/b",
        json!({ "registryBaseUrl": "https://ghcr.io" }),
    );
    gives(
        &older,
        &[],
        r#"{"command":"docker","args":["run","-i","--rm","ghcr.io/a/b:1.2.0"]}"#,
    );
    let hinted = package(
        "oci",
        "a/b",
        json!({ "runtimeHint": "podman", "environmentVariables": [{ "name": "K", "default": "v" }] }),
    );
    gives(
        &hinted,
        &[],
        r#"{"command":"podman","args":["run","-i","--rm","-e","K","a/b:1.2.0"],"env":{"K":"v"}}"#,
    );
}

#[test]
fn arguments_and_variables_are_put_where_they_belong() {
    let whole = package(
        "npm",
        "p",
        json!({
            "runtimeArguments": [{ "type": "named", "name": "--yes", "isRequired": true }, { "type": "positional", "value": "--silent" }],
            "packageArguments": [
                { "type": "positional", "valueHint": "dir", "isRequired": true, "isRepeated": true },
                { "type": "named", "name": "--mode", "default": "local", "choices": ["local", "far"] },
                { "type": "named", "name": "--port", "format": "number" },
                { "type": "named", "name": "--mount", "value": "src={from},dst=/x", "variables": { "from": { "isRequired": true } } },
                { "type": "positional", "value": "in ${HOME} {unknown}" },
            ],
            "environmentVariables": [
                { "name": "API_KEY", "isRequired": true, "isSecret": true },
                { "name": "AUTH", "value": "Bearer {token}", "isRequired": true, "variables": { "token": { "isSecret": true } } },
                { "name": "OTHER_KEY", "isSecret": true, "default": "everybody's" },
                { "name": "LEVEL", "default": "info" },
                { "name": "NOT_ASKED" },
            ],
        }),
    );
    let recipe = Recipe::of(&whole, None).unwrap();
    let inputs = recipe.inputs("srv");
    let names: Vec<(&str, bool, bool)> = inputs
        .iter()
        .map(|input| (input.name.as_str(), input.is_required, input.is_secret))
        .collect();
    assert_eq!(
        names,
        [
            ("API_KEY", true, true),
            ("token", true, true),
            ("OTHER_KEY", false, true),
            ("LEVEL", false, false),
            ("NOT_ASKED", false, false),
            ("dir", true, false),
            ("mode", false, false),
            ("port", false, false),
            ("from", true, false),
        ]
    );
    gives(
        &whole,
        &[
            ("dir", "/a"),
            ("dir", "/b ${HOME}"),
            ("from", "/f"),
            ("port", "80"),
            ("API_KEY", "sk-1"),
            ("token", "${MINE}"),
        ],
        r#"{"command":"npx","args":["--yes","--silent","p@1.2.0","/a","/b ${HOME}","--mode","local","--port","80","--mount","src=/f,dst=/x","in $${HOME} {unknown}"],"env":{"API_KEY":"${API_KEY}","AUTH":"Bearer ${MINE}","LEVEL":"info"}}"#,
    );
    let wrong = |name: &str, value: &str| {
        let given = Given::from([(name.to_owned(), vec![value.to_owned()])]);
        recipe.entry("srv", &given).unwrap_err().to_string()
    };
    assert_eq!(wrong("mode", "near"), "`mode` must be one of local, far");
    assert_eq!(wrong("port", "x; rm"), "`port` must be a number");
}

#[test]
fn a_remote_server_comes_after_packages_and_when_it_is_asked_for() {
    let both = detail(json!({
        "packages": [
            { "registryType": "mcpb", "identifier": "https://x/y.mcpb" },
            { "registryType": "npm", "identifier": "own", "transport": { "type": "streamable-http", "url": "http://localhost" } },
            { "registryType": "pypi", "identifier": "p", "version": "2" },
        ],
        "remotes": [
            { "type": "sse", "url": "https://r.example/sse" },
            { "type": "streamable-http", "url": "https://r.example/{tenant}/mcp", "variables": { "tenant": { "default": "main" } },
              "headers": [{ "name": "X-Key", "isRequired": true, "isSecret": true }, { "name": "X-Region", "choices": ["eu"] }] },
        ],
    }));
    gives(&both, &[], r#"{"command":"uvx","args":["p@2"]}"#);
    assert_eq!(ways(&both), ["pypi", "remote"]);
    let remote = Recipe::of(&both, Some(Way::Remote)).unwrap();
    let entry = remote
        .entry(
            "my-srv",
            &Given::from([("X-Region".to_owned(), vec!["eu".to_owned()])]),
        )
        .unwrap();
    assert_eq!(
        entry.text().to_json(),
        r#"{"url":"https://r.example/main/mcp","headers":{"X-Key":"${MY_SRV_X_KEY}","X-Region":"eu"}}"#
    );
    let refused = Recipe::of(&both, Some(Way::Npm)).unwrap_err().to_string();
    assert!(
        refused
            .contains("no npm among what it has: mcpb, npm as a server of its own, pypi, remote"),
        "{refused}"
    );
    let only_sse =
        detail(json!({ "remotes": [{ "type": "sse", "url": "https://r.example/sse" }] }));
    gives(
        &only_sse,
        &[],
        r#"{"type":"sse","url":"https://r.example/sse"}"#,
    );
}

#[test]
fn the_users_variables_are_out_of_a_registrys_reach() {
    for (value, variables, expected) in [
        ("${AWS_SECRET}", json!({}), "$${AWS_SECRET}"),
        (
            "${x}",
            json!({ "x": { "default": "{AWS_SECRET}" } }),
            "$${AWS_SECRET}",
        ),
        (
            "{x}{AWS_SECRET}",
            json!({ "x": { "value": "$" } }),
            "$${AWS_SECRET}",
        ),
        (
            "$${x}",
            json!({ "x": { "default": "${AWS_SECRET}" } }),
            "$$$${AWS_SECRET}",
        ),
    ] {
        let hostile = package(
            "npm",
            "p",
            json!({ "environmentVariables": [{ "name": "X", "value": value, "variables": variables }] }),
        );
        let entry = Recipe::of(&hostile, None)
            .unwrap()
            .entry("srv", &Given::new())
            .unwrap();
        assert_eq!(
            entry.env,
            [("X".to_owned(), expected.to_owned())],
            "{value}"
        );
    }
}

#[test]
fn what_is_no_name_is_not_run() {
    for (kind, identifier, members) in [
        ("npm", "--eval", json!({})),
        ("npm", "../../x", json!({})),
        ("npm", "a;rm -rf ~", json!({})),
        ("npm", "git+https://x/y", json!({})),
        ("npm", "a\u{1b}[2J", json!({})),
        ("pypi", "-c", json!({})),
        ("oci", "--privileged", json!({})),
        ("npm", "p", json!({ "version": "1 || evil" })),
        ("npm", "p", json!({ "version": "../2" })),
        ("npm", "p", json!({ "runtimeHint": "/bin/sh" })),
        (
            "npm",
            "p",
            json!({ "environmentVariables": [{ "name": "A=B", "value": "x" }] }),
        ),
        (
            "npm",
            "p",
            json!({ "environmentVariables": [{ "name": "A", "value": "x\u{0}y" }] }),
        ),
        (
            "npm",
            "p",
            json!({ "packageArguments": [{ "type": "shell", "value": "x" }] }),
        ),
    ] {
        let told = Recipe::of(&package(kind, identifier, members), None)
            .unwrap_err()
            .to_string();
        assert!(!told.contains(|c: char| c.is_control()), "{told:?}");
    }
    for url in [
        "http://r.example/mcp",
        "file:///etc/passwd",
        "https://",
        "https://a b/",
        "https://u@r.example/",
        "javascript:x",
    ] {
        let remote = detail(json!({ "remotes": [{ "type": "streamable-http", "url": url }] }));
        assert!(Recipe::of(&remote, None).is_err(), "{url}");
    }
}
