//! A port on which nobody listens, for as long as the test lasts.
//!
//! A listener that is bound and dropped gives its port back, and the next server of a test beside it may get it: a
//! socket that is bound but does not listen keeps it, and refuses whoever comes.

use std::net::SocketAddr;

use tokio::net::TcpSocket;

#[derive(Debug)]
pub(crate) struct ClosedPort(TcpSocket);

impl ClosedPort {
    pub(crate) fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self(socket)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }
}
