//! A replica writes to itself when it starts, at the URL by which the others reach it.

use std::time::Duration;

use super::{Content, Replicas};

/// How often a replica tries to reach itself after its start, and the letters that must arrive.
const REACHES: usize = 40;
const LETTERS_TO_ITSELF: usize = 4;

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(250);

impl Replicas {
    /// Writes letters to this replica at the URL by which others reach it, until one arrives. One that never does is in the log and in `mcpzip store check`.
    pub(super) async fn reach_itself(&self) {
        let mut reason = String::new();
        for _ in 0..REACHES {
            // Several, because a balancer sends some of them here.
            let mut arrived = 0;
            while arrived < LETTERS_TO_ITSELF {
                let (session, stream, number) = (String::new(), 0, 0);
                let content = Content::Missed {
                    session,
                    stream,
                    number,
                };
                match self.send(&self.id, content, b"").await {
                    Ok(_) => arrived += 1,
                    Err(error) => {
                        reason = error.to_string();
                        break;
                    }
                }
            }
            if arrived == LETTERS_TO_ITSELF {
                self.backing.note_reached(true);
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.backing.note_reached(false);
        let url = self.backing.peer(&self.id).unwrap_or_default();
        tracing::error!(
            url,
            reason,
            "this replica does not reach itself at `http.peer`, and others may not either: what they pass on is lost. Set it to the URL of this replica alone, not to that of a balancer"
        );
    }
}
