//! Finds the programs under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The program that is tested, where it is not the one that was built with the tests: figures need a release build.
const PROGRAM: &str = "MCPZIP_TEST_PROGRAM";

/// The `mcpzip` program.
pub(crate) fn mcpzip() -> &'static Path {
    static PROGRAM_AT: LazyLock<PathBuf> = LazyLock::new(|| {
        #[expect(
            clippy::disallowed_methods,
            reason = "tests have no configuration of their own"
        )]
        let named = std::env::var_os(PROGRAM).map(PathBuf::from);
        if let Some(named) = named {
            assert!(
                named.is_file(),
                "{PROGRAM}: there is no {}",
                named.display()
            );
            return std::path::absolute(named).expect("the working directory is known");
        }
        beside_the_tests("mcpzip").unwrap_or_else(|| env!("CARGO_BIN_EXE_mcpzip").into())
    });
    &PROGRAM_AT
}

/// The fake server, an example.
pub(crate) fn fake_server() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| example("fake_server", "fake_server.rs"));
    &PROGRAM
}

/// The server that tries to leave its sandbox, an example.
#[cfg(target_os = "linux")]
pub(crate) fn hostile_server() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> =
        LazyLock::new(|| example("hostile_server", "hostile_server.rs"));
    &PROGRAM
}

/// An example. `source` is its file or directory. Cargo builds examples with `cargo test`, but not with `cargo test
/// --test it`, so this builds an example that is missing or older than its source.
pub(crate) fn example(name: &str, source: &str) -> PathBuf {
    let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs")).join(source);
    let program = format!("examples/{name}");
    if let Some(built) = beside_the_tests(&program).filter(|built| is_newer(built, &source)) {
        return built;
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--example", name, "--manifest-path"]);
    cargo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    if profile_directory().ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.status().expect("cargo runs");
    assert!(
        status.success(),
        "`{name}` could not be built: {cargo:?}: {status}"
    );
    beside_the_tests(&program).unwrap_or_else(|| {
        panic!(
            "no `{name}` at {}/examples after {cargo:?}",
            profile_directory().display()
        )
    })
}

/// Cargo's directory for this profile. The tests are in its subdirectory `deps`.
fn profile_directory() -> PathBuf {
    let test = std::env::current_exe().expect("the test knows where it is");
    test.parent()
        .and_then(Path::parent)
        .expect("the test is two levels down")
        .to_owned()
}

fn beside_the_tests(name: &str) -> Option<PathBuf> {
    let path = profile_directory()
        .join(name)
        .with_extension(std::env::consts::EXE_EXTENSION);
    path.is_file().then_some(path)
}

/// Whether `built` is newer than `source`, a file or a directory of files.
fn is_newer(built: &Path, source: &Path) -> bool {
    let modified = |path: &Path| {
        path.metadata()
            .and_then(|metadata| metadata.modified())
            .ok()
    };
    let files = std::fs::read_dir(source)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let newest = files
        .chain([source.to_owned()])
        .filter_map(|path| modified(&path))
        .max();
    // A source that does not exist any more cannot be built.
    newest.is_none_or(|newest| modified(built).is_some_and(|built| built >= newest))
}
