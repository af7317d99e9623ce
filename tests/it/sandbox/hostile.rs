//! A server that tries to read keys, to write outside, to reach the network and other programs, and to leave a process behind.
//!
//! Each test first shows that the same attempts work without a sandbox. It runs as the user of the tests and, if that is root, as an
//! ordinary user as well.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::{attempts, for_nobody, has_bubblewrap, text, with_hostile};
use crate::support::command::through;
use crate::support::process::Process;
use crate::support::{Client, Setup, program, tool, until};

/// The targets that the server tries to reach: each of these listens.
struct Outside {
    tcp: TcpListener,
    udp: UdpSocket,
    _by_path: UnixListener,
    _abstract: UnixListener,
    datagrams: UnixDatagram,
    names: [String; 2],
    socket: PathBuf,
    key: PathBuf,
    home: PathBuf,
    /// The time that the process it leaves sleeps, which tells it apart.
    sleep: String,
}

impl Outside {
    fn new(setup: &Setup, sleep: &str) -> Self {
        let home = setup.home().path("home");
        let keys = home.join(".ssh");
        std::fs::create_dir_all(&keys).unwrap();
        std::fs::create_dir_all(home.join("open")).unwrap();
        let key = keys.join("id_test");
        std::fs::write(&key, "a key").unwrap();
        let socket = home.join("open/socket");
        let names = ["stream", "datagram"].map(|kind| format!("mcpzip-test-{kind}-{sleep}"));
        let address = |name: &String| SocketAddr::from_abstract_name(name).unwrap();
        let datagrams = UnixDatagram::bind_addr(&address(&names[1])).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        let by_path = UnixListener::bind(&socket).unwrap();
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o777)).unwrap();
        Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp,
            _by_path: by_path,
            _abstract: UnixListener::bind_addr(&address(&names[0])).unwrap(),
            datagrams,
            names,
            socket,
            key,
            home,
            sleep: sleep.to_owned(),
        }
    }

    /// All attempts, by kind. `own` is the process id of mcpzip.
    fn targets(&self, own: u32) -> Value {
        json!({
            "read": [text(&self.key), "/etc/shadow", "/etc/passwd-", format!("/proc/{own}/environ")],
            "list": [text(&self.home), "/root", "/home", "/var/lib", "/run"],
            "write": [text(&self.home.join("written"))],
            "variables": ["MCPZIP_STATE_DIR="],
            "variable": ["MCPZIP_TEST_SECRET", "SHELL"],
            "process": [own.to_string()],
            "tcp": [self.tcp.local_addr().unwrap().to_string()],
            "udp": [self.udp.local_addr().unwrap().to_string()],
            "unix": [text(&self.socket)],
            "abstract": [self.names[0]],
            "pair": [self.names[1]],
            "own pair": [""],
            "run": ["unshare --user true", format!("kill -0 {own}")],
            "leave": [self.sleep],
        })
    }

    /// Attempts that would change this machine if they worked, so that they are made inside only.
    fn harmful(&self) -> Value {
        json!({
            "write": ["/etc/mcpzip-test", "/usr/mcpzip-test", "/mcpzip-test", "/proc/sys/kernel/domainname", "/proc/self/oom_score_adj", "/proc/sysrq-trigger"],
            "run": ["mount -t tmpfs x /tmp", "mount --bind /usr /tmp", "chroot /usr true"],
        })
    }

    /// Whether a datagram has arrived since the last look, by UDP and at the abstract socket.
    fn arrived(&self) -> [bool; 2] {
        std::thread::sleep(Duration::from_millis(50));
        let mut bytes = [0; 16];
        let mut any = [false, false];
        while self.udp.recv(&mut bytes).is_ok() {
            any[0] = true;
        }
        while self.datagrams.recv(&mut bytes).is_ok() {
            any[1] = true;
        }
        any
    }

    /// The processes that were left behind.
    fn left(&self) -> Vec<Process> {
        let command = format!("sleep {} ", self.sleep);
        Process::all()
            .filter(|process| process.command == command)
            .collect()
    }

    fn end_left(&self) {
        for process in self.left() {
            crate::support::process::signal(process.id, rustix::process::Signal::KILL);
        }
    }
}

fn connected(setup: &Setup, is_nobody: bool) -> Client {
    let mut client = if is_nobody {
        setup.start_command(for_nobody(setup))
    } else {
        setup.start()
    };
    client.shake_hands("2025-11-25");
    client
}

/// Runs all attempts in `sandbox`, as root if the tests are and as an ordinary user, and checks what works.
#[track_caller]
fn check(
    sandbox: &Value,
    number: u32,
    permitted: &dyn Fn(&Outside) -> Vec<String>,
    datagrams: [bool; 2],
) {
    if !has_bubblewrap() {
        return;
    }
    let is_root = rustix::process::geteuid().is_root();
    let as_nobody = is_root && tool::has("setpriv", "util-linux");
    for is_nobody in [false, true]
        .into_iter()
        .filter(|nobody| !nobody || as_nobody)
    {
        let time = format!("59{number}.{}{}", std::process::id(), u8::from(is_nobody));
        let setup = Setup::new()
            .alone()
            .variable("MCPZIP_TEST_SECRET", "do not pass on");
        let outside = Outside::new(&setup, &time);

        let bare = with_hostile(setup.clone(), None);
        let mut client = connected(&bare, is_nobody);
        let own = client.process();
        let worked = attempts(&mut client, &outside.targets(own));
        for needed in [
            format!("read {}", text(&outside.key)),
            format!("write {}", text(&outside.home.join("written"))),
            "variables MCPZIP_STATE_DIR=".to_owned(),
            format!("unix {}", text(&outside.socket)),
            format!("abstract {}", outside.names[0]),
        ] {
            assert!(
                worked.contains(&needed),
                "{needed} without a sandbox: {worked:?}"
            );
        }
        assert_eq!(outside.arrived(), [true, true], "without a sandbox");
        client.finish();
        assert_eq!(outside.left().len(), 1, "without a sandbox");
        outside.end_left();
        std::fs::remove_file(outside.home.join("written")).unwrap();

        let boxed = with_hostile(setup, Some(&sandbox_of(sandbox, &outside)));
        let mut client = connected(&boxed, is_nobody);
        let own = client.process();
        let worked = attempts(&mut client, &outside.targets(own));
        let mut expected = permitted(&outside);
        expected.extend(["own pair ".to_owned(), format!("leave {time}")]);
        // It may send into a network of its own, and write to a `/tmp` of its own; whether anything came is looked at here.
        let is_elsewhere = |what: &String| what.starts_with("udp ") || what.starts_with("write ");
        let mut worked: Vec<String> = worked
            .into_iter()
            .filter(|what| !is_elsewhere(what))
            .collect();
        assert!(!outside.home.join("written").exists());
        let harmful = attempts(&mut client, &outside.harmful());
        assert!(harmful.is_empty(), "{harmful:?}");
        worked.sort();
        expected.sort();
        assert_eq!(worked, expected, "nobody: {is_nobody}");
        assert_eq!(outside.arrived(), datagrams, "nobody: {is_nobody}");
        assert_eq!(outside.left().len(), 1, "it runs as long as the server");
        client.finish();
        until("the process it left has ended", || {
            outside.left().is_empty().then_some(())
        });

        // After a kill only the guard is there to end it.
        let mut client = connected(&boxed, is_nobody);
        attempts(&mut client, &json!({ "leave": [time] }));
        until("the process runs", || {
            (outside.left().len() == 1).then_some(())
        });
        client.signal(rustix::process::Signal::KILL);
        until("the process it left has ended", || {
            outside.left().is_empty().then_some(())
        });
    }
}

/// The sandbox with the paths of this test in place of `OPEN`.
fn sandbox_of(sandbox: &Value, outside: &Outside) -> Value {
    let open = text(&outside.home.join("open"));
    serde_json::from_str(&sandbox.to_string().replace("OPEN", &open)).unwrap()
}

#[test]
fn a_strict_sandbox_keeps_everything_from_a_hostile_server() {
    check(&json!("strict"), 1, &|_| Vec::new(), [false, false]);
}

#[test]
fn sockets_in_an_open_directory_are_not_reached() {
    let sandbox = json!({ "write": ["OPEN"] });
    let home = |outside: &Outside| vec![format!("list {}", text(&outside.home))];
    check(&sandbox, 2, &home, [false, false]);
}

#[test]
fn with_the_network_abstract_sockets_and_sockets_by_path_stay_closed() {
    let sandbox = json!({ "network": "all", "read": ["OPEN"] });
    let network = |outside: &Outside| {
        let tcp = format!("tcp {}", outside.tcp.local_addr().unwrap());
        vec![tcp, format!("list {}", text(&outside.home))]
    };
    check(&sandbox, 3, &network, [true, false]);
}

#[test]
fn a_link_in_a_writable_directory_leads_nowhere_now_or_at_the_next_start() {
    if !has_bubblewrap() {
        return;
    }
    let setup = Setup::new().alone();
    let home = setup.home().path("home");
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::fs::create_dir_all(home.join("work/part")).unwrap();
    std::fs::write(home.join(".ssh/key"), "a key").unwrap();
    let (work, part) = (text(&home.join("work")), text(&home.join("work/part")));
    let sandbox = json!({ "write": [work, part] });
    let setup = with_hostile(setup, Some(&sandbox));
    let mut client = setup.connect();
    let link = format!("{work}/link to {}", text(&home.join(".ssh")));
    let moved = format!("rmdir {part} && ln -s {} {part}", text(&home.join(".ssh")));
    let through = [format!("{work}/link/key"), format!("{part}/key")];
    let worked = attempts(&mut client, &json!({ "link": [link], "run": [moved] }));
    assert_eq!(worked.len(), 2, "it may write there: {worked:?}");
    assert!(attempts(&mut client, &json!({ "read": through })).is_empty());
    client.finish();
    // The entry names `part`, which is a link to the keys now.
    let mut client = setup.connect();
    assert!(attempts(&mut client, &json!({ "read": through })).is_empty());
    client.finish();
    // One that names it for reading alone is refused.
    let setup = with_hostile(setup, Some(&json!({ "write": [work], "read": [part] })));
    let answer = setup.connect().execute_with("h__attempt", "{}");
    assert!(
        answer.as_str().contains("could put a link there"),
        "{answer:?}"
    );
}

#[test]
fn a_project_that_became_a_link_is_refused() {
    if !has_bubblewrap() {
        return;
    }
    let setup = with_hostile(Setup::new().alone(), Some(&json!("project")));
    setup.save();
    let home = setup.home().path("home");
    let project = home.join("work/part");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    let mut command = setup.command(&["serve"]);
    command.current_dir(&project);
    let mut client = setup.start_command(command);
    client.shake_hands("2025-11-25");
    // As a server of a session in the directory above could do.
    std::fs::remove_dir(&project).unwrap();
    std::os::unix::fs::symlink(home.join(".ssh"), &project).unwrap();
    let planted = text(&home.join(".ssh/planted"));
    let answer = client.execute_with("h__attempt", &json!({ "write": [planted] }).to_string());
    assert!(answer.as_str().contains("through a link"), "{answer:?}");
    client.finish();
    assert!(!home.join(".ssh/planted").exists());
    // A session that begins there has the directory of the keys.
    let mut command = setup.command(&["serve"]);
    command.current_dir(&project);
    let mut client = setup.start_command(command);
    client.shake_hands("2025-11-25");
    let answer = client.execute_with("h__attempt", "{}");
    assert!(answer.as_str().contains("settings or keys"), "{answer:?}");
    client.finish();
}

#[test]
fn a_project_is_open_and_what_is_around_it_is_not() {
    if !has_bubblewrap() {
        return;
    }
    let setup = with_hostile(Setup::new().alone(), Some(&json!("project")));
    setup.save();
    let home = setup.home().path("home");
    std::fs::create_dir_all(home.join("project")).unwrap();
    std::fs::create_dir_all(home.join("other")).unwrap();
    std::fs::write(home.join("project/file"), "mine").unwrap();
    std::fs::write(home.join("other/file"), "theirs").unwrap();
    let mut command = setup.command(&["serve"]);
    command.current_dir(home.join("project"));
    let mut client = setup.start_command(command);
    client.shake_hands("2025-11-25");
    let worked = attempts(
        &mut client,
        &json!({
            "read": [text(&home.join("project/file")), text(&home.join("other/file")), "file"],
            "write": [text(&home.join("project/new")), text(&home.join("new"))],
        }),
    );
    // The directory above exists inside for the mount only, in a `/tmp` that ends with the server.
    let above = format!("write {}", text(&home.join("new")));
    let worked: Vec<String> = worked.into_iter().filter(|what| *what != above).collect();
    assert!(!home.join("new").exists());
    let expected = [
        format!("read {}", text(&home.join("project/file"))),
        "read file".to_owned(),
        format!("write {}", text(&home.join("project/new"))),
    ];
    assert_eq!(worked, expected);
    assert!(home.join("project/new").exists());
    client.finish();
    // The home directory is not a project.
    let answer = setup.connect().execute_with("h__attempt", "{}");
    assert!(
        answer.as_str().contains("start the client in a project"),
        "{answer:?}"
    );
}

/// Starts `plain` with the directory `/` open as the descriptor 9.
fn with_an_open_directory(plain: &Command) -> Command {
    let mut command = through("sh", plain);
    command
        .args(["-c", "exec 9</; exec \"$0\" \"$@\""])
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(plain.get_current_dir().unwrap());
    command
}

#[test]
fn a_descriptor_that_the_client_left_open_reaches_no_server() {
    if !has_bubblewrap() {
        return;
    }
    let is_root = rustix::process::geteuid().is_root();
    let as_nobody = is_root && tool::has("setpriv", "util-linux");
    for is_nobody in [false, true] {
        if is_nobody && !as_nobody {
            continue;
        }
        for sandbox in [None, Some(json!("strict"))] {
            let setup = with_hostile(Setup::new().alone(), sandbox.as_ref());
            setup.save();
            let key = setup.home().path("home/key");
            std::fs::write(&key, "a key").unwrap();
            let command = match is_nobody {
                true => for_nobody(&setup),
                false => setup.command(&["serve"]),
            };
            let mut client = setup.start_command(with_an_open_directory(&command));
            client.shake_hands("2025-11-25");
            let through = format!("/proc/self/fd/9{}", text(&key));
            let worked = attempts(&mut client, &json!({ "read": [through] }));
            assert!(worked.is_empty(), "{sandbox:?}, nobody: {is_nobody}");
            client.finish();
        }
    }
}

#[test]
fn a_link_that_one_server_left_leads_another_one_nowhere() {
    if !has_bubblewrap() {
        return;
    }
    let setup = Setup::new().alone();
    let home = setup.home().path("home");
    for name in [".ssh", "work"] {
        std::fs::create_dir_all(home.join(name)).unwrap();
    }
    std::fs::write(home.join(".ssh/key"), "a key").unwrap();
    let (work, planted) = (home.join("work"), home.join("work/planted"));
    let program = program::hostile_server();
    let entry = |command: &Path, sandbox: Value| {
        json!({ "command": command, "sandbox": sandbox }).to_string()
    };
    let setup = with_hostile(setup, Some(&json!({ "write": [work] })))
        .entry("reads", &entry(program, json!({ "read": [planted] })))
        .entry("writes", &entry(program, json!({ "write": [planted] })))
        .entry("runs", &entry(&work.join("tool"), json!("strict")))
        .entry("beside", &entry(program, json!({ "read": [work] })))
        .setting(
            "profiles",
            json!({ "only": { "servers": ["reads", "writes", "runs"] } }),
        );
    let mut client = setup.connect();
    let link = format!("{} to {}", text(&planted), text(&home.join(".ssh")));
    let made =
        json!({ "link": [link], "run": [format!("cp /bin/true {}", text(&work.join("tool")))] });
    assert_eq!(attempts(&mut client, &made).len(), 2);
    let key = json!({ "read": [planted.join("key")] }).to_string();
    let are_refused = |client: &mut Client| {
        for (server, words) in [
            ("reads", "could put a link there"),
            ("writes", "could put a link there"),
            ("runs", "could put another one there"),
        ] {
            let answer = client.execute_with(&format!("{server}__attempt"), &key);
            let said = answer.as_str();
            assert!(
                said.contains(words) && said.contains("did not start"),
                "{server}: {said}"
            );
        }
    };
    are_refused(&mut client);
    // Also where a profile hides the server that left it.
    let mut narrowed = setup.start_with(&["serve", "--profile", "only"]);
    narrowed.shake_hands("2025-11-25");
    are_refused(&mut narrowed);
    narrowed.finish();
    // The directory as a whole is opened; the link in it leads nowhere.
    let said = client.execute_with("beside__attempt", &key).text();
    assert!(said.contains("false"), "{said}");
    // Its link stays when its entry goes.
    let written = std::fs::read_to_string(setup.config_path()).unwrap();
    let mut config: Value = serde_json::from_str(&written).unwrap();
    config["mcpServers"].as_object_mut().unwrap().remove("h");
    std::fs::write(setup.config_path(), config.to_string()).unwrap();
    until("the entry to be gone", || {
        let answer = client.execute_with("h__attempt", "{}");
        answer.as_str().contains("there is no").then_some(())
    });
    are_refused(&mut client);
    client.finish();
}

#[test]
fn an_open_directory_shows_none_of_the_files_of_mcpzip_in_it() {
    if !has_bubblewrap() {
        return;
    }
    let setup = Setup::new().alone();
    let home = setup.home().path("");
    let (kept, alias) = (home.join("kept"), home.join("alias"));
    std::fs::create_dir_all(kept.join("state")).unwrap();
    std::fs::write(kept.join("plain"), "text").unwrap();
    std::fs::write(kept.join("state/secrets.json"), "{}").unwrap();
    std::os::unix::fs::symlink(&kept, &alias).unwrap();
    let setup = setup
        .variable("MCPZIP_STATE_DIR", &text(&kept.join("state")))
        .variable("MCPZIP_CACHE_DIR", &text(&kept.join("cache")));
    // By the name of a link, too.
    for named in [&kept, &alias] {
        let setup = with_hostile(setup.clone(), Some(&json!({ "read": [named] })));
        let mut client = setup.connect();
        let data = kept.join("state/sandboxes/h/note");
        let read = [&kept, &alias].map(|outer| outer.join("state/secrets.json"));
        let list = [&kept, &alias].map(|outer| outer.join("state/logs"));
        let worked = attempts(
            &mut client,
            &json!({
                "read": [named.join("plain"), read[0], read[1]],
                "list": [list[0], list[1], kept.join("cache"), alias.join("cache")],
                "write": [data, kept.join("state/planted")],
            }),
        );
        let expected = [
            format!("read {}", text(&named.join("plain"))),
            format!("write {}", text(&data)),
        ];
        assert_eq!(worked, expected);
        client.finish();
    }
    // A part that the entry names is open.
    let secrets = kept.join("state/secrets.json");
    let sandbox = json!({ "read": [kept, secrets] });
    let mut client = with_hostile(setup.clone(), Some(&sandbox)).connect();
    assert_eq!(
        attempts(&mut client, &json!({ "read": [secrets] })).len(),
        1
    );
    client.finish();
    // The file of the configuration cannot be hidden: an edit puts another one in its place.
    let setup = with_hostile(setup, Some(&json!({ "read": [home] })));
    let mut client = setup.connect();
    let said = client.execute_with("h__attempt", "{}");
    assert!(said.as_str().contains("cannot be hidden there"), "{said:?}");
    client.finish();
}
