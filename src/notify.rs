//! Desktop notifications about approvals that wait for the user (`notify`, off by default).
//!
//! A notification names servers and tools and the command to run, and contains no text of a server. On Linux and
//! other systems with D-Bus it goes to the notification service of the session's bus, on macOS to `osascript`.
//! Windows has no notifications.

#[cfg(all(unix, not(target_os = "macos")))]
mod freedesktop;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(windows)]
mod windows;

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

#[cfg(all(unix, not(target_os = "macos")))]
use freedesktop as system;
#[cfg(target_os = "macos")]
use macos as system;
#[cfg(windows)]
use windows as system;

use crate::config::Environment;
use crate::shutdown::Tasks;

/// The time that the notification service gets for its answer.
#[cfg(all(unix, not(target_os = "macos")))]
const LIMIT: Duration = Duration::from_secs(2);

/// The maximum length of a name that is shown.
const LONGEST: usize = 64;

/// The maximum number of servers about which notifications are held back at once.
const MOST: usize = 256;

/// Something that waits for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    /// A call waits for `mcpzip approvals`.
    Call { server: String, tool: String },
    /// Something of the server is held back until `mcpzip approve`.
    Held { server: String },
    /// The server was added or redirected by an agent, and is not started before `mcpzip approve`.
    Unstarted { server: String },
}

/// The title and the text of a notification.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    title: &'static str,
    text: String,
}

/// The kind of a notice, and the server that it is about.
type Subject = (mem::Discriminant<Notice>, String);

/// Shows notifications on the user's desktop.
#[derive(Debug)]
pub(crate) struct Notifier {
    environment: Environment,
    /// The subjects of which something was shown lately, each with the notice that came after it.
    recent: Mutex<HashMap<Subject, Option<Notice>>>,
    pub(crate) shown: AtomicU64,
    pub(crate) failed: AtomicU64,
    tasks: Tasks,
}

impl Notice {
    fn server(&self) -> &str {
        match self {
            Self::Call { server, .. } | Self::Held { server } | Self::Unstarted { server } => {
                server
            }
        }
    }

    /// The least time between two notifications of this kind about one server. A server can change its tools all the time.
    fn pause(&self) -> Duration {
        Duration::from_secs(match self {
            Self::Call { .. } => 10,
            Self::Held { .. } | Self::Unstarted { .. } => 600,
        })
    }

    fn shown(&self) -> Shown {
        let server = shown_name(self.server()).unwrap_or("a server");
        let argument = shown_name(self.server()).unwrap_or_default();
        match self {
            Self::Call { tool, .. } => Shown {
                title: "mcpzip: a call waits for you",
                text: format!(
                    "An agent asks to call {} of {server}. Run: mcpzip approvals list",
                    shown_name(tool).unwrap_or("a tool")
                ),
            },
            Self::Held { .. } => Shown {
                title: "mcpzip: a server waits for you",
                text: format!(
                    "New or changed texts of {server} are held back. Run: mcpzip approve {argument}"
                ),
            },
            Self::Unstarted { .. } => Shown {
                title: "mcpzip: a server waits for you",
                text: format!(
                    "An agent added or redirected {server}, which is not started. Run: mcpzip approve {argument}"
                ),
            },
        }
    }
}

/// A name, if it has nothing in it that a desktop could take for markup or a person for a sentence.
fn shown_name(name: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    (!name.is_empty() && name.len() <= LONGEST && name.chars().all(is_plain)).then_some(name)
}

impl Notifier {
    /// Creates the notifier of a run, for the desktop of the session with these variables.
    #[must_use]
    pub(crate) fn new(environment: Environment, tasks: Tasks) -> Arc<Self> {
        Arc::new(Self {
            environment,
            recent: Mutex::default(),
            shown: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            tasks,
        })
    }

    /// Shows a notification soon. Of several in a short time about one server, the first and the last are shown.
    pub(crate) fn notify(self: &Arc<Self>, notice: Notice) {
        let key = (mem::discriminant(&notice), notice.server().to_owned());
        let mut recent = self.recent.lock();
        if let Some(next) = recent.get_mut(&key) {
            *next = Some(notice);
            return;
        }
        if recent.len() >= MOST {
            return;
        }
        recent.insert(key.clone(), None);
        drop(recent);
        let (notifier, tasks) = (self.clone(), self.tasks.clone());
        let shows = async move {
            let mut notice = notice;
            loop {
                let pause = notice.pause();
                notifier.show(notice).await;
                tokio::select! {
                    () = notifier.tasks.stopped() => return,
                    () = tokio::time::sleep(pause) => {}
                }
                let mut recent = notifier.recent.lock();
                match recent.get_mut(&key).and_then(Option::take) {
                    Some(next) => notice = next,
                    None => {
                        recent.remove(&key);
                        return;
                    }
                }
            }
        };
        tasks.spawn(shows);
    }

    async fn show(&self, notice: Notice) {
        let environment = self.environment.clone();
        let show = move || system::show(&environment, &notice.shown());
        let outcome = self.tasks.spawn_blocking(show).await;
        match outcome.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(()) => self.shown.fetch_add(1, Ordering::Relaxed),
            Err(reason) => {
                tracing::info!(reason, "no desktop notification was shown");
                self.failed.fetch_add(1, Ordering::Relaxed)
            }
        };
    }
}

/// Asks whether notifications can be shown in a session with these variables.
///
/// # Errors
/// The reason why they cannot.
pub(crate) fn check(environment: &Environment) -> Result<(), String> {
    system::check(environment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_has_plain_names_and_no_other_word_of_a_server() {
        let text = |server: &str, tool: &str| {
            let (server, tool) = (server.to_owned(), tool.to_owned());
            Notice::Call { server, tool }.shown().text
        };
        assert_eq!(
            text("files", "notes/write.v2"),
            "An agent asks to call notes/write.v2 of files. Run: mcpzip approvals list"
        );
        let long = "x".repeat(LONGEST + 1);
        for tool in [
            "<b>a</b>",
            "approve all",
            "a\u{202e}b",
            "a\nb",
            "ä",
            "",
            &long,
        ] {
            assert_eq!(
                text("files", tool),
                "An agent asks to call a tool of files. Run: mcpzip approvals list"
            );
        }
        let server = "a b".to_owned();
        let held = Notice::Held { server }.shown().text;
        assert!(
            held.contains("texts of a server are") && held.ends_with("approve "),
            "{held}"
        );
    }
}
