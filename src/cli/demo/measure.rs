//! Compares the time of a call through the gateway with that of a direct call to the server.

use std::time::Duration;

use super::client::Client;

/// Calls per side.
pub(super) const CALLS: usize = 200;

/// Calls per side and round. The sides alternate, so that other load on the machine affects both.
const ROUND: usize = 20;

/// The median times of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallTimes {
    pub(super) through: Duration,
    pub(super) direct: Duration,
}

/// Makes [`CALLS`] calls on each side, one after the other. `direct` is a client of the `units` server.
pub(super) async fn call_times(
    gateway: &mut Client,
    direct: &mut Client,
) -> anyhow::Result<CallTimes> {
    let arguments = r#"{"value":26.2,"from":"miles","to":"km"}"#;
    let inner = format!(r#"{{"name":"units__convert_units","arguments":{arguments}}}"#);
    let through = format!(r#"{{"name":"execute_tool","arguments":{inner}}}"#);
    let straight = format!(r#"{{"name":"convert_units","arguments":{arguments}}}"#);
    let (mut times_through, mut times_direct) = (Vec::new(), Vec::new());
    for _ in 0..CALLS / ROUND {
        round(gateway, &through, &mut times_through).await?;
        round(direct, &straight, &mut times_direct).await?;
    }
    Ok(CallTimes {
        through: median(times_through),
        direct: median(times_direct),
    })
}

async fn round(client: &mut Client, params: &str, times: &mut Vec<Duration>) -> anyhow::Result<()> {
    for _ in 0..ROUND {
        times.push(client.ask("tools/call", params).await?.took);
    }
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
