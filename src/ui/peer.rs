//! The user at the other end of a loopback connection.

use std::net::SocketAddr;

/// Whether the socket at `peer`, which is connected to `own`, belongs to the user of this process. Where the system does not say, the
/// link and the cookie alone decide.
#[cfg(target_os = "linux")]
pub(super) fn is_own_user(peer: SocketAddr, own: SocketAddr) -> bool {
    let Ok(table) = std::fs::read_to_string("/proc/net/tcp") else {
        return true;
    };
    let (from, to) = (hex(peer), hex(own));
    let user = table.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let is_it = words.next() == from.as_deref() && words.next() == to.as_deref();
        // State, queues, timer and retransmissions come before it.
        words.nth(4).filter(|_| is_it)
    });
    let own = rustix::process::geteuid().as_raw().to_string();
    user == Some(own.as_str())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_own_user(_peer: SocketAddr, _own: SocketAddr) -> bool {
    true
}

/// An address as the system's table has it. `None` for IPv6, which the window does not listen on.
#[cfg(target_os = "linux")]
fn hex(address: SocketAddr) -> Option<String> {
    let SocketAddr::V4(address) = address else {
        return None;
    };
    let host = u32::from_ne_bytes(address.ip().octets());
    Some(format!("{host:08X}:{:04X}", address.port()))
}
