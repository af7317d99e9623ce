//! Profiles that cannot be used are refused.

use serde_json::json;

use super::whole;

#[test]
fn an_unknown_empty_or_faulty_profile_is_refused_at_the_start() {
    let setup = whole();
    for (name, reason) in [
        (
            "other",
            "there is no profile `other`; the configuration has empty, gone, review, vaults",
        ),
        ("empty", "the profile `empty` cannot be used"),
        ("gone", "no server is left under `gone`"),
        ("", "there is no profile ``"),
        ("../review", "there is no profile `../review`"),
    ] {
        for arguments in [
            vec!["serve", "--profile", name],
            vec!["serve", "--http", "127.0.0.1:0", "--profile", name],
            vec!["search", "read", "--profile", name],
            vec!["call", "open__read", "{}", "--profile", name],
            vec!["tools", "--profile", name],
        ] {
            let refused = setup.run(&arguments).code(3);
            assert!(refused.stderr.contains(reason), "{arguments:?}: {refused}");
            assert!(!refused.stdout.contains("open"), "{arguments:?}: {refused}");
        }
    }
}

#[test]
fn a_url_of_an_unusable_profile_is_not_there() {
    let gateway = whole().serve(&[]);
    for name in [
        "other",
        "empty",
        "gone",
        "",
        "..",
        "review/x",
        "%00",
        "review%2F",
        "Review",
    ] {
        let path = format!("/mcp/p/{name}");
        let said = gateway.modern("tools/list", "").to(&path).send();
        assert_eq!(said.status, 404, "{path}: {said:?}");
        assert!(
            !said.body.contains("review,") && !said.body.contains("vault"),
            "{said:?}"
        );
    }
}

#[test]
fn a_client_whose_profile_is_unusable_is_refused() {
    let setup = whole().setting(
        "clients",
        json!({ "agent": { "profile": "other" }, "odd": { "profile": 7 } }),
    );
    for name in ["agent", "odd"] {
        let mut client = setup.start();
        let said = client.shake_hands_named(name);
        assert!(
            said.error()["message"]
                .as_str()
                .unwrap()
                .contains("cannot be used"),
            "{name}"
        );
        let said = client.ask("tools/list", "{}");
        assert!(
            said.as_str().contains("cannot be used"),
            "{}",
            said.as_str()
        );
        client.finish();
    }
    let gateway = setup.serve(&[]);
    let said = gateway.modern_of("agent", "tools/list", "").send();
    assert_eq!(said.status, 403, "{said:?}");
    assert_eq!(gateway.modern("tools/list", "").send().status, 200);
}

#[test]
fn commands_use_the_part_of_a_profile() {
    let setup = whole();
    super::know_all(&setup);
    let tools = setup.run(&["tools", "--profile", "review"]).code(0).stdout;
    assert!(
        tools.contains("open__read") && !tools.contains("vault") && !tools.contains("drop"),
        "{tools}"
    );
    let called = setup
        .run(&["call", "vault__read", "{}", "--profile", "review"])
        .code(1);
    assert!(!called.stdout.contains("vault opened"), "{called}");
    let found = setup.run(&["search", "unseal", "--profile", "review"]);
    assert!(!found.stdout.contains("vault"), "{found}");
    let described = setup
        .run(&["describe", "open__drop_table", "--profile", "review"])
        .code(1);
    assert!(!described.stdout.contains("drop"), "{described}");
}

#[test]
fn connect_writes_a_profile_and_refuses_one_that_cannot_be_used() {
    let setup = whole();
    let refused = setup
        .run(&["connect", "cursor", "--profile", "gone"])
        .code(3);
    assert!(
        refused.stderr.contains("no server is left under `gone`"),
        "{refused}"
    );
    let file = setup.home().path("home/.cursor/mcp.json");
    assert!(!file.exists());
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let _ = setup
        .run(&["connect", "cursor", "--profile", "review"])
        .code(0);
    let written = std::fs::read_to_string(&file).unwrap();
    let written: serde_json::Value = serde_json::from_str(&written).unwrap();
    let arguments = written["mcpServers"]["mcpzip"]["args"].to_string();
    assert!(arguments.contains(r#""--profile","review""#), "{written}");
    let _ = setup
        .run(&["connect", "cursor", "--profile", "review"])
        .code(0);
    // An entry without the profile would show more than is asked for.
    let other = setup
        .run(&["connect", "cursor", "--profile", "vaults"])
        .code(1);
    assert!(
        other.stderr.contains("does not have this profile"),
        "{other}"
    );
    let _ = setup.run(&["doctor", "--fix"]);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.contains("--profile"), "{kept}");
}

#[test]
fn rules_check_judges_a_call_under_profiles() {
    let setup = whole().setting("clients", json!({ "cursor": { "profile": "review" } }));
    super::know_all(&setup);
    for (arguments, code, reason) in [
        (&["open__read"][..], 0, ""),
        (&["open__drop_table"], 0, ""),
        (&["vault__read"], 0, ""),
        (&["open__read", "--profile", "review"], 0, ""),
        (
            &["open__drop_table", "--profile", "review"],
            1,
            "profiles.review.tools",
        ),
        (
            &["vault__read", "--profile", "review"],
            1,
            "outside of the session's profile (review)",
        ),
        (
            &["vault__read", "--client", "cursor"],
            1,
            "outside of the session's profile (review)",
        ),
        (
            &["open__read", "--client", "cursor", "--profile", "vaults"],
            1,
            "no server is left under `vaults` and `review`",
        ),
        (
            &["open__read", "--profile", "other"],
            1,
            "there is no profile `other`",
        ),
    ] {
        let command = [&["--json", "rules", "check"], arguments].concat();
        let said = setup.run(&command).code(code).json();
        let rule = said["rule"].as_str().unwrap_or_default();
        assert!(rule.contains(reason), "{arguments:?}: {said}");
    }
}

#[test]
fn status_and_doctor_show_profiles_and_their_faults() {
    let setup = whole().setting("clients", json!({ "cursor": { "profile": "other" } }));
    super::know_all(&setup);
    let status = setup.run(&["status", "--json"]).code(0).json();
    assert_eq!(
        status["profiles"][2]["servers"],
        json!(["open"]),
        "{status}"
    );
    let doctor = setup.run(&["doctor", "--json"]).code(1).json();
    let findings = doctor["findings"].as_array().unwrap().iter();
    let about: Vec<&str> = findings
        .filter(|finding| finding["code"] == "profile-unusable")
        .filter_map(|finding| finding["subject"].as_str())
        .collect();
    assert_eq!(
        about,
        ["empty", "gone", "clients.cursor.profile"],
        "{doctor}"
    );
}

#[test]
fn a_directory_whose_profile_has_a_fault_shows_nothing() {
    let setup = whole();
    let here = setup.home().path("home");
    let elsewhere = setup.home().path("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    // Its directories can be read, or any directory may be meant.
    for (profiles, is_known) in [
        (
            json!({ "docs": { "servers": ["open"], "tool": {}, "projects": [here] } }),
            true,
        ),
        (
            json!({ "docs": { "servers": [], "projects": [here] } }),
            true,
        ),
        (
            json!({ "docs": { "servers": ["open"], "surface": "wide", "projects": [here] } }),
            true,
        ),
        (
            json!({ "docs": { "servers": ["open"], "projects": here } }),
            false,
        ),
        (
            json!({ "docs": { "servers": ["open"], "projects": 7 } }),
            false,
        ),
        (
            json!({ "docs": { "servers": ["open"], "projects": null } }),
            false,
        ),
        (
            json!({ "docs": { "servers": ["open"], "projects": ["home"] } }),
            false,
        ),
        (
            json!({ "docs": { "servers": ["open"], "project": [here] } }),
            false,
        ),
        (json!({ "docs": 7 }), false),
        (json!(7), false),
    ] {
        let setup = setup.clone().setting("profiles", profiles.clone());
        setup.save();
        for (directory, is_refused) in [(&here, true), (&elsewhere, !is_known)] {
            let mut command = setup.command(&["serve"]);
            command.current_dir(directory);
            let ended = crate::support::command::run(command, "");
            match is_refused {
                true => drop(ended.code(3)),
                false => drop(ended.code(0)),
            }
        }
    }
}

#[test]
fn a_restriction_that_cannot_be_read_as_one_is_a_fault() {
    let setup = whole();
    setup.save();
    let lists = r#""servers":["open"]"#;
    for members in [
        r#""tools":{"denny":["open__read"]}"#,
        r#""tools":{"Deny":["open__read"]}"#,
        r#""tools":{"deny":null}"#,
        r#""tools":{"override":{}}"#,
        r#""tools":{"deny":["open__read"],"deny":[]}"#,
        r#""tools":{"deny":["open__read"]},"tools":{}"#,
        r#""servers":["*"]"#,
        r#""management":null"#,
    ] {
        let text = std::fs::read_to_string(setup.config_path()).unwrap();
        let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
        config["profiles"] = json!("HERE");
        let profile = format!(r#"{{"odd":{{{lists},{members}}}}}"#);
        let text = config.to_string().replace(r#""HERE""#, &profile);
        std::fs::write(setup.config_path(), text).unwrap();
        // The file is not made anew.
        let command = setup.command(&["serve", "--profile", "odd"]);
        let refused = crate::support::command::run(command, "").code(3);
        assert!(
            refused.stderr.contains("`odd` cannot be used"),
            "{members}: {refused}"
        );
    }
}

#[test]
fn a_slip_in_the_entry_of_a_client_does_not_widen_its_sessions() {
    let two = r#""servers":["open"]"#;
    for written in [
        r#""clients":{"test":{"profil":"review"}}"#,
        r#""clients":{"test":{"profile":"review","profile":null}}"#,
        r#""clients":{"test":{"profile":null}}"#,
    ] {
        let setup = whole();
        setup.save();
        let text = std::fs::read_to_string(setup.config_path()).unwrap();
        let text = text.strip_suffix('}').unwrap();
        setup.save_text(&format!("{text},{written}}}"));
        let mut client = setup.start_command(setup.command(&["serve"]));
        let greeting = client.shake_hands("2025-11-25");
        let reached = client.execute("vault__read");
        assert!(
            reached
                .as_str()
                .contains("cannot be used, so nothing is served"),
            "{written}: {greeting:?} {reached:?}"
        );
        client.finish();
    }
    let review = r#""test":{"profile":"review"}"#;
    for written in [
        format!(r#""clients":{{{review}}},"clients":{{}}"#),
        format!(r#""clients":{{{review}}},"clients":null"#),
        format!(r#""clients":{{{review},"test":{{}}}}"#),
    ] {
        let setup = whole();
        setup.save();
        let text = std::fs::read_to_string(setup.config_path()).unwrap();
        let text = text.strip_suffix('}').unwrap();
        setup.save_text(&format!("{text},{written}}}"));
        let refused = crate::support::command::run(setup.command(&["serve"]), "").code(3);
        let said = [
            "is there twice",
            "it is unknown which profile the session has",
        ];
        let is_said = said.iter().any(|said| refused.stderr.contains(said));
        assert!(is_said, "{written}: {refused}");
    }
    for written in [
        format!(r#""profiles":{{"review":{{{two}}}}}"#),
        r#""profiles":null"#.to_owned(),
    ] {
        let setup = whole();
        setup.save();
        let text = std::fs::read_to_string(setup.config_path()).unwrap();
        let text = text.strip_suffix('}').unwrap();
        setup.save_text(&format!("{text},{written}}}"));
        let mut tools = setup.command(&["tools", "--profile", "review"]);
        let refused = tools.output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(3), "{written}: {said}");
        assert!(said.contains("`profiles`"), "{written}: {said}");
    }
}

#[test]
fn an_empty_variable_is_an_unknown_profile() {
    let setup = whole().variable("MCPZIP_PROFILE", "");
    let refused = setup.run(&["tools"]).code(3);
    assert!(
        refused.stderr.contains("there is no profile ``"),
        "{refused}"
    );
}
