//! Logins and the keychain of the system: what it protects, and that nothing waits for one that cannot be used.
#![cfg(target_os = "linux")]

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::authority::{Authority, Manner, log_in, status_after_kill};
use crate::support::keyring::Keyring;
use crate::support::{SOON, Setup, until};

/// The file of the only login, and what is in it.
#[track_caller]
fn kept(setup: &Setup) -> (PathBuf, String) {
    let files = std::fs::read_dir(setup.home().path("state/logins"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let path = files
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "json"))
        .expect("a login is kept");
    let text = std::fs::read_to_string(&path).unwrap();
    (path, text)
}

#[test]
fn a_login_is_sealed_where_there_is_a_keychain() {
    let Some(mut keyring) = Keyring::start() else {
        return;
    };
    let authority = Authority::start(Manner {
        method: "client_secret_post",
        ..Manner::default()
    });
    let setup = authority.setup(json!({}));
    let sealed = keyring.around(&setup);
    assert_eq!(log_in(&sealed)["sealed"], true);
    let (path, text) = kept(&setup);
    authority.is_silent("the file", &text);
    assert!(!text.contains("client-1"), "{text}");
    assert_eq!(sealed.connect().execute("web__t").text(), "fine");
    // It is renewed and written by another process.
    authority.revoke(false);
    assert_eq!(sealed.connect().execute("web__t").text(), "fine");
    let (_, text) = kept(&setup);
    authority.is_silent("the file", &text);

    // Without the keychain it says nothing, and is not lost.
    keyring.close();
    // A daemon that has read it before still has the key.
    let sealed = sealed.alone();
    let mut client = sealed.connect();
    let said = client.execute("web__t").tool_error();
    for words in [
        "cannot be decrypted",
        "keychain",
        "login needed: run `mcpzip login web`",
    ] {
        assert!(said.contains(words), "{said}");
    }
    let status = sealed.run(&["auth", "status"]).code(0);
    assert!(
        status.json() == json!([]) && status.stderr.contains("cannot be decrypted"),
        "{status}"
    );
    assert_eq!(kept(&setup), (path, text));
    // Nor does a locked one open it, nor one that lost the key.
    keyring.open(false);
    let said = sealed.run(&["call", "web__t"]);
    assert!(
        said.to_string().contains("the keychain is locked"),
        "{said}"
    );
    keyring.open(true);
    assert_eq!(sealed.connect().execute("web__t").text(), "fine");
    let other = Keyring::start().unwrap();
    let said = other.around(&setup).run(&["call", "web__t"]);
    assert!(
        said.to_string().contains("the keychain has no key for it"),
        "{said}"
    );
    // A new login replaces it.
    log_in(&other.around(&setup));
    assert_eq!(
        other.around(&setup).connect().execute("web__t").text(),
        "fine"
    );
}

#[test]
fn a_plain_login_goes_on_and_is_sealed_when_it_is_renewed() {
    let Some(keyring) = Keyring::start() else {
        return;
    };
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({}));
    assert_eq!(log_in(&setup)["sealed"], false);
    let sealed = keyring.around(&setup);
    let mut client = sealed.connect();
    assert_eq!(client.execute("web__t").text(), "fine");
    assert!(kept(&setup).1.contains("access-"));
    authority.revoke(false);
    assert_eq!(client.execute("web__t").text(), "fine");
    authority.is_silent("the file", &kept(&setup).1);
    client.finish();
    // And back, by whoever wants files.
    authority.revoke(false);
    let plain = sealed.variable("MCPZIP_CREDENTIALS", "file");
    assert_eq!(plain.connect().execute("web__t").text(), "fine");
    assert!(kept(&setup).1.contains("access-"));
    assert_eq!(
        authority.read(|state| (state.refreshes, state.reuses)),
        (2, 0)
    );
}

#[test]
fn processes_that_begin_together_agree_on_one_key_and_renew_once() {
    let Some(keyring) = Keyring::start() else {
        return;
    };
    let known = Some(("me", "hand-made-secret"));
    let machine = Authority::start(Manner {
        method: "client_secret_post",
        known,
        ..Manner::default()
    });
    let oauth = json!({ "grant": "client_credentials", "client_id": "me", "client_secret": "hand-made-secret" });
    let mut setup = Setup::new();
    for number in 0..6 {
        setup = setup.entry(
            &format!("web{number}"),
            &machine.web.entry(json!({ "oauth": oauth })),
        );
    }
    let setup = keyring.around(&setup);
    setup.save();
    let logins: Vec<_> = (0..6)
        .map(|number| {
            setup
                .command(&["login", &format!("web{number}")])
                .spawn()
                .unwrap()
        })
        .collect();
    for mut login in logins {
        assert!(until("the login to end", || login.try_wait().unwrap()).success());
    }
    let status = setup.run(&["auth", "status"]).code(0).json();
    let sealed = status
        .as_array()
        .unwrap()
        .iter()
        .filter(|login| login["sealed"] == true)
        .count();
    assert_eq!(sealed, 6, "{status}");

    let authority = Authority::start(Manner {
        pause: Duration::from_millis(200),
        ..Manner::default()
    });
    let setup = keyring.around(&authority.setup(json!({})));
    log_in(&setup);
    authority.renews_once(&setup, 6);
}

#[test]
fn a_keychain_that_cannot_be_used_holds_up_nothing() {
    let authority = Authority::start(Manner::default());
    let directory = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(directory.path().join("silent")).unwrap();
    // It takes connections and says nothing.
    std::thread::spawn(move || drop(listener.incoming().flatten().collect::<Vec<_>>()));
    let unused = directory.path().join("nobody");
    let mut addresses = vec![
        (
            format!("unix:path={}", directory.path().join("silent").display()),
            "no answer within",
        ),
        (
            format!("unix:path={}", unused.display()),
            "no keychain on this machine",
        ),
        (
            "tcp:host=127.0.0.1,port=1".to_owned(),
            "no keychain on this machine",
        ),
    ];
    let bus = Keyring::without_daemon();
    addresses.extend(
        bus.as_ref()
            .map(|bus| (bus.address.clone(), "no keychain on this machine")),
    );
    for (address, words) in &addresses {
        let setup = authority
            .setup(json!({}))
            .variable("DBUS_SESSION_BUS_ADDRESS", address);
        let setup = setup
            .variable("MCPZIP_CREDENTIALS", "auto")
            .log_level("warn");
        let start = Instant::now();
        setup.connect().finish();
        assert!(
            start.elapsed() < Duration::from_secs(15),
            "{address}: {:?}",
            start.elapsed()
        );
        assert_eq!(log_in(&setup)["sealed"], false, "{address}");
        assert!(start.elapsed() < SOON, "{address}: {:?}", start.elapsed());
        let mut client = setup.connect();
        assert_eq!(client.execute("web__t").text(), "fine");
        for _ in 0..2 {
            authority.revoke(false);
            assert_eq!(client.execute("web__t").text(), "fine", "{address}");
        }
        let said = client.stderr();
        assert_eq!(said.matches(words).count(), 1, "{address}: {said}");
    }
    // Who wants a keychain and nothing else is told, before anything is spent.
    for word in ["keychain", "keychian"] {
        let refused = authority
            .setup(json!({}))
            .variable("MCPZIP_CREDENTIALS", word)
            .run(&["login", "web"])
            .code(1);
        assert!(
            refused.stderr.contains(
                "`credentials` is \"keychain\", and there is no keychain on this machine"
            ),
            "{refused}"
        );
    }
    let refused = authority
        .setup(json!({}))
        .setting("credentials", json!("vault"))
        .run(&["auth", "status"])
        .code(3);
    assert!(
        refused.stderr.contains("`credentials` must be"),
        "{refused}"
    );
}

#[test]
fn a_kill_in_the_middle_of_sealing_loses_nothing() {
    let Some(keyring) = Keyring::start() else {
        return;
    };
    let authority = Authority::start(Manner {
        expires_in: Some(0),
        is_strict: false,
        ..Manner::default()
    });
    let setup = keyring.around(&authority.setup(json!({})));
    log_in(&setup);
    for delay in [0, 5, 15, 40] {
        let known = status_after_kill(&setup, delay);
        assert_eq!(known[0]["sealed"], true, "after {delay} ms: {known}");
    }
    assert!(
        !setup.home().listing().contains("damaged"),
        "{}",
        setup.home().listing()
    );
}
