//! Programs of the system that some tests need. Without one these tests fail and say what to install, as those with real servers
//! do. Either of two variables leaves them out, and that is said too.

use std::io::Write as _;
use std::path::Path;

/// Leave out the tests that need what is not installed; the second one all tests with real servers as well.
const SKIP: [&str; 2] = ["MCPZIP_TEST_SKIP_MISSING", "MCPZIP_TEST_SKIP_PEERS"];

/// Whether `program` is there, which Debian has in `package`; `false` where the test is to be left out.
#[track_caller]
pub(crate) fn has(program: &str, package: &str) -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration of their own"
    )]
    let variable = |name: &str| std::env::var_os(name);
    let path = variable("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|directory| Path::new(&directory).join(program).is_file()) {
        return true;
    }
    let is_set =
        |name: &&str| variable(name).is_some_and(|value| !value.is_empty() && value != "0");
    if let Some(skip) = SKIP.into_iter().find(is_set) {
        let said = format!(
            "\nLEFT OUT: a test that needs `{program}`, which is not installed, because {skip} is set\n"
        );
        // Nothing is lost for the test when nobody listens.
        let _ = std::io::stderr().lock().write_all(said.as_bytes());
        return false;
    }
    panic!(
        "`{program}` is not installed: install the package `{package}`, or leave this test out with {}=1",
        SKIP[0]
    );
}
