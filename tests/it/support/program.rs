//! Where the programs under test are.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The `mcpzip` program.
pub(crate) fn mcpzip() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> =
        LazyLock::new(|| beside_the_tests("mcpzip").unwrap_or_else(|| env!("CARGO_BIN_EXE_mcpzip").into()));
    &PROGRAM
}

/// The fake server, an example. Cargo builds examples with `cargo test`, but not with `cargo test --test it`; where it is
/// missing or older than its source, it is built here.
pub(crate) fn fake_server() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/fake_server.rs");
        if let Some(built) = beside_the_tests("examples/fake_server").filter(|built| is_newer(built, source.as_ref())) {
            return built;
        }
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--example", "fake_server", "--manifest-path"]);
        cargo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        if profile_directory().ends_with("release") {
            cargo.arg("--release");
        }
        let status = cargo.status().expect("cargo runs");
        assert!(status.success(), "the fake server could not be built: {cargo:?}: {status}");
        beside_the_tests("examples/fake_server").unwrap_or_else(|| {
            panic!("no fake server at {}/examples/fake_server after {cargo:?}", profile_directory().display())
        })
    });
    &PROGRAM
}

/// The directory that cargo builds this profile into: the tests are in `deps` under it.
fn profile_directory() -> PathBuf {
    let test = std::env::current_exe().expect("the test knows where it is");
    test.parent().and_then(Path::parent).expect("the test is two levels down").to_owned()
}

fn beside_the_tests(name: &str) -> Option<PathBuf> {
    let path = profile_directory().join(name).with_extension(std::env::consts::EXE_EXTENSION);
    path.is_file().then_some(path)
}

fn is_newer(built: &Path, source: &Path) -> bool {
    let modified = |path: &Path| path.metadata().and_then(|metadata| metadata.modified());
    // A source that is not there any more cannot be built either.
    matches!((modified(built), modified(source)), (Ok(built), Ok(source)) if built >= source) || !source.exists()
}
