//! Follows changes of tokens and roles, and ends what they end.

use std::sync::Arc;
use std::time::Duration;

use super::shared::Shared;
use crate::config::Entitlement;
use crate::identity::Authenticator;

/// The interval at which changes are looked for.
const LOOK: Duration = Duration::from_secs(1);

/// Follows changes of tokens and of the configuration, until the run ends.
pub(super) async fn follow(authenticator: Arc<Authenticator>, shared: Arc<Shared>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = shared.tasks.stopped() => return,
        }
        // An issuer that does not answer must not delay the look at tokens and roles.
        let renewing = authenticator.clone();
        shared.tasks.spawn(async move { renewing.refresh().await });
        // Nor must a store that does not answer.
        let renewing = authenticator.clone();
        drop(shared.tasks.spawn_blocking(move || renewing.renew_keys()));
        authenticator.renew(&shared.proxies.whole());
        shared.sessions.end_unidentified();
        let (authenticator, proxies) = (authenticator.clone(), shared.proxies.clone());
        // Ending a server takes its time, which the next look must not wait for.
        shared.tasks.spawn(async move {
            let is_in_use = |entitlement: &Entitlement| authenticator.is_in_use(entitlement);
            proxies.end_others(is_in_use).await;
        });
    }
}
