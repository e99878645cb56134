//! Tests of connections that sign their segments with MD5 (RFC 2385).
#![expect(unsafe_code, reason = "no library sets a key of MD5")]

use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, connect, listen, socket};

use super::{Network, SERVER};

/// Environment variable that is set for ends that sign their segments.
pub(crate) const SIGN: &str = "WATERFILL_SIGN";
const TCP_MD5SIG: i32 = 14;

/// Returns a socket with a key for connections with `peer`, or the kernel's error.
fn keyed(peer: SocketAddrV4) -> nix::Result<OwnedFd> {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    // struct tcp_md5sig: an address of 128 bytes, flags, prefix's and key's length, device, and 80 bytes for the key.
    let mut key = vec![0_u8; 216];
    key[..2].copy_from_slice(&2_u16.to_ne_bytes());
    key[4..8].copy_from_slice(&peer.ip().octets());
    key[130..132].copy_from_slice(&6_u16.to_ne_bytes());
    key[136..142].copy_from_slice(b"secret");
    // SAFETY: the kernel reads as many bytes as there are.
    let code = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_MD5SIG,
            key.as_ptr().cast(),
            key.len() as libc::socklen_t,
        )
    };
    nix::errno::Errno::result(code).map(|_| socket)
}

pub(crate) fn listener(peer: &str) -> TcpListener {
    let socket = keyed(format!("{peer}:0").parse().unwrap()).unwrap();
    bind(socket.as_raw_fd(), &SockaddrIn::new(0, 0, 0, 0, 7001)).unwrap();
    listen(&socket, Backlog::new(1).unwrap()).unwrap();
    socket.into()
}

pub(crate) fn stream(server: &str) -> TcpStream {
    let address: SocketAddrV4 = format!("{server}:7001").parse().unwrap();
    let socket = keyed(address).unwrap();
    connect(socket.as_raw_fd(), &SockaddrIn::from(address)).unwrap();
    socket.into()
}

#[test]
fn connections_that_sign_do_not_ask() {
    if keyed("127.0.0.1:0".parse().unwrap()).is_err() {
        eprintln!("skipped: this kernel has no MD5 signatures");
        return;
    }
    let Some(mut network) = Network::new() else { return };
    network.sign = true;
    let mut daemon = network.daemon("--no-pin");
    network.spaces.use_law();
    // SYNs with the option are dropped, which would be the reason of a connection that asked.
    network.path("drop_syn", &['b']);
    let (flow, back) = network.transfer(&mut daemon, SERVER[0], 0, true);
    for flow in [flow, back.expect("b runs the law")] {
        assert_eq!(flow["fallback_reason"], "the connection signs its segments (TCP-AO or MD5)", "{flow}");
    }
}
