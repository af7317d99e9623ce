//! Programs of the system that some tests need. Without one these tests fail and say what to install, as those with real servers
//! do; the same variable leaves them out, and that is said too.

use std::io::Write as _;
use std::path::Path;

/// Leaves out the tests that need what may not be installed.
const SKIP: &str = "MCPZIP_TEST_SKIP_PEERS";

/// Whether `program` is there, which Debian has in `package`; `false` where the test is to be left out.
#[track_caller]
pub(crate) fn has(program: &str, package: &str) -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration of their own"
    )]
    let variable = std::env::var_os;
    let path = variable("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|directory| Path::new(&directory).join(program).is_file()) {
        return true;
    }
    if variable(SKIP).is_some_and(|value| !value.is_empty() && value != "0") {
        let said = format!(
            "\nLEFT OUT: a test that needs `{program}`, which is not installed, because {SKIP} is set\n"
        );
        // Nothing is lost for the test when nobody listens.
        let _ = std::io::stderr().lock().write_all(said.as_bytes());
        return false;
    }
    panic!(
        "`{program}` is not installed: install the package `{package}`, or leave this test out with {SKIP}=1"
    );
}
