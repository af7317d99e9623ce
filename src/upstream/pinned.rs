//! Tool calls of servers under `"trust": "pin"` or `"quarantine"`.

use super::slot::Lease;
use super::{CallError, NotListed, Pool, ServerCall};
use crate::tool::ServerName;

impl Pool {
    /// Makes sure that a new process has listed its tools, and that they were compared with the pins, before one is
    /// called. The known tools may be those of another version of the server.
    pub(super) async fn check_pins(
        &self,
        server: &ServerName,
        lease: &Lease,
        call: &ServerCall<'_>,
    ) -> Result<(), CallError> {
        if call.method != "tools/call" || !lease.is_pinned() {
            return Ok(());
        }
        let tool = call.name.unwrap_or_default();
        let uncompared = |reason| CallError::Uncompared {
            server: server.clone(),
            reason,
        };
        if !lease.compared.lock().contains(&lease.user) {
            let compare = async {
                let listing = lease
                    .list(server, call.limit, lease.user)
                    .await
                    .map_err(Box::new)?;
                self.audience.compare(server, listing).await
            };
            tokio::time::timeout(call.limit, Box::pin(compare))
                .await
                .map_err(|_| uncompared(NotListed::Late(call.limit)))?
                .map_err(uncompared)?;
        }
        if self.audience.is_withheld(server, tool) {
            return Err(CallError::Withheld {
                server: server.clone(),
                tool: tool.to_owned(),
            });
        }
        Ok(())
    }
}
