//! System programs that some tests need. If one is missing, these tests fail and say what to install, like the tests
//! with real servers. Either of two variables skips them, which is printed.

use std::io::Write as _;
use std::path::Path;

/// Variables that skip the tests whose programs are missing. The second one skips all tests with real servers as well.
const SKIP: [&str; 2] = ["MCPZIP_TEST_SKIP_MISSING", "MCPZIP_TEST_SKIP_PEERS"];

/// Whether `program` is installed. `package` is its name on Debian. False if the test is skipped.
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
        // stderr may be closed.
        let _ = std::io::stderr().lock().write_all(said.as_bytes());
        return false;
    }
    panic!(
        "`{program}` is not installed: install the package `{package}`, or leave this test out with {}=1",
        SKIP[0]
    );
}
