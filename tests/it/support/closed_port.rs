//! A port that refuses connections for as long as the test lasts.
//!
//! The port of a listener that is dropped may be given to the next server of another test. A socket that is bound but
//! does not listen keeps the port and refuses connections.

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
