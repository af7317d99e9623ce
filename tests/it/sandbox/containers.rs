//! Sandboxes with an `image`, with a stand-in for `podman` and `docker` that notes its arguments and runs the command itself.

use serde_json::{Value, json};

use super::refusals::script;
use crate::support::script::{answer, surroundings};
use crate::support::{Server, Setup, program, until};

/// A stand-in: `info` succeeds, `run` becomes the command after the image, `rm` is noted.
const STAND_IN: &str = r#"
echo "$(basename "$0") $*" >> "$(dirname "$0")/calls"
env | grep '^API_KEY=\|^MCPZIP_' >> "$(dirname "$0")/variables"
case $1 in
  info) exit 0 ;;
  rm) exit 0 ;;
esac
while [ "$1" != example.com/image:1 ]; do
  [ "$1" = --entrypoint ] && command=$2
  shift
done
shift
exec "$command" "$@""#;

fn setup(engine: &str, text: &str) -> Setup {
    let setup = Setup::new().alone();
    let programs = setup.home().path("programs");
    script(&programs.join(engine), text);
    // No other engine of this machine.
    for name in ["sh", "basename", "dirname", "grep", "env", "cat"] {
        let target = std::path::Path::new("/usr/bin").join(name);
        std::os::unix::fs::symlink(target, programs.join(name)).unwrap();
    }
    let path = programs.to_str().unwrap().to_owned();
    setup
        .variable("PATH", &path)
        .variable("MCPZIP_SECRET_KEY", "a-key-of-secrets")
        .variable("MCPZIP_LOGIN_KEY", "a-key-of-logins")
}

/// The variables that the engine got.
#[track_caller]
fn variables(setup: &Setup) -> String {
    let variables = std::fs::read_to_string(setup.home().path("programs/variables")).unwrap();
    assert!(!variables.contains("a-key-of"), "{variables}");
    variables
}

fn members(sandbox: Value) -> Value {
    json!({ "env": { "API_KEY": "s3cret" }, "sandbox": sandbox })
}

#[test]
fn a_container_is_started_with_what_the_sandbox_permits_and_removed_at_the_end() {
    let setup = setup("podman", STAND_IN);
    let open = setup.home().path("open");
    std::fs::create_dir(&open).unwrap();
    let sandbox = json!({ "image": "example.com/image:1", "read": [open] });
    let script = Server::new().tool("t", [surroundings()]);
    let setup = setup.server_with("a", script, members(sandbox));
    let mut client = setup.connect();
    assert!(client.execute("a__t").result().contains("process"));
    let calls = || std::fs::read_to_string(setup.home().path("programs/calls")).unwrap();
    let text = calls();
    let run = text
        .lines()
        .find(|line| line.starts_with("podman run"))
        .unwrap();
    for part in [
        " --rm -i --init --name mcpzip-",
        " --network none",
        " --read-only",
        " --cap-drop ALL",
        " --security-opt no-new-privileges",
        " --env API_KEY ",
        " --env HOME=/data",
        " --http-proxy=false ",
        &format!(
            " --workdir /data --entrypoint {} example.com/image:1 ",
            program::fake_server().display()
        ),
    ] {
        assert!(run.contains(part), "{part}: {run}");
    }
    let mount = format!("type=bind,source={0},target={0},readonly", open.display());
    assert!(run.contains(&mount), "{run}");
    assert!(run.contains("/sandboxes/a,target=/data "), "{run}");
    assert!(!run.contains("s3cret"), "{run}");
    let given = variables(&setup);
    assert!(
        given.contains("API_KEY=s3cret"),
        "the engine gets it: {given}"
    );
    let name = run
        .split(" --name ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    let removed = format!("podman rm --force {name}");
    assert!(!text.contains(&removed), "{text}");
    client.finish();
    assert!(calls().contains(&removed), "{}", calls());
    variables(&setup);
}

#[test]
fn a_variable_that_configures_an_engine_is_not_given_to_a_container() {
    for name in [
        "CONTAINER_HOST",
        "DOCKER_HOST",
        "GODEBUG",
        "PODMAN_USERNS",
        "REGISTRY_AUTH_FILE",
        "STORAGE_DRIVER",
        "TMPDIR",
        "_CONTAINERS_USERNS_CONFIGURED",
    ] {
        let script = Server::new().tool("t", [answer("done")]);
        let members =
            json!({ "env": { name: "x" }, "sandbox": { "image": "example.com/image:1" } });
        let setup = setup("podman", STAND_IN).server_with("a", script, members);
        let mut client = setup.connect();
        let said = client.execute("a__t").as_str().to_owned();
        client.finish();
        assert!(
            said.contains("cannot be given to a container"),
            "{name}: {said}"
        );
    }
}

#[test]
fn the_guard_removes_the_container_of_a_mcpzip_that_was_killed() {
    let sandbox = json!({ "image": "example.com/image:1", "network": "all" });
    let script = Server::new().tool("t", [answer("done")]);
    let setup = setup("docker", STAND_IN).server_with("a", script, members(sandbox));
    let mut client = setup.connect();
    assert!(client.execute("a__t").text().contains("done"));
    let calls = || std::fs::read_to_string(setup.home().path("programs/calls")).unwrap();
    assert!(!calls().contains("--network"), "{}", calls());
    client.signal(rustix::process::Signal::KILL);
    until("the container is removed", || {
        calls().contains("docker rm --force mcpzip-").then_some(())
    });
    variables(&setup);
}

#[test]
fn an_engine_that_does_not_answer_refuses_the_server() {
    let sandbox = json!({ "image": "example.com/image:1" });
    let said = |setup: Setup| {
        let script = Server::new().tool("t", [answer("done")]);
        let setup = setup.server_with("a", script, members(sandbox.clone()));
        let mut client = setup.connect();
        let said = client.execute("a__t").as_str().to_owned();
        client.finish();
        said
    };
    let dead = "echo 'Cannot connect to the Docker daemon' >&2; exit 1";
    let text = said(setup("docker", dead));
    assert!(
        text.contains("Cannot connect to the Docker daemon")
            && text.contains("its daemon does not answer"),
        "{text}"
    );
}
