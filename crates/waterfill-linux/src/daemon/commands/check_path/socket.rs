//! TCP sockets with a chosen congestion control, and the kernel's statistics of their connections.

#![allow(unsafe_code, reason = "TCP_INFO and socket filters have no safe wrapper")]

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::time::Duration;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket, sockopt};
use nix::sys::time::TimeVal;
use serde::Serialize;

/// Opens a TCP connection with the named congestion control, or fails after `timeout`.
pub(super) fn connect_with(law: &str, to: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let fd = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&fd, sockopt::TcpCongestion, &law.into())?;
    // This limits connect() as well as writes.
    let limit = TimeVal::new(timeout.as_secs() as i64, i64::from(timeout.subsec_micros()));
    setsockopt(&fd, sockopt::SendTimeout, &limit)?;
    connect(fd.as_raw_fd(), &SockaddrStorage::from(to)).map_err(|e| match e {
        nix::Error::EINPROGRESS => io::Error::from(io::ErrorKind::TimedOut),
        other => other.into(),
    })?;
    Ok(fd.into())
}

/// TCP's statistics of a connection.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Info {
    pub(super) rtt_s: f64,
    pub(super) min_rtt_s: f64,
    pub(super) retransmissions: u32,
    pub(super) bytes_acked: u64,
    pub(super) segments_sent: u32,
    /// Maximum segment size without headers, in bytes.
    pub(super) mss: u32,
    /// Path MTU in bytes, as far as TCP knows it.
    pub(super) path_mtu: u32,
}

/// Byte offset of the maximum segment size in `struct tcp_info` (linux/tcp.h). New kernels only append fields, so
/// offsets stay valid.
const SND_MSS: usize = 16;
const PMTU: usize = 60;
const RTT: usize = 68;
const TOTAL_RETRANS: usize = 100;
const BYTES_ACKED: usize = 120;
const MIN_RTT: usize = 148;
const DATA_SEGS_OUT: usize = 156;

/// Reads TCP_INFO of a connection.
pub(super) fn info(stream: &TcpStream) -> io::Result<Info> {
    let mut bytes = [0_u8; 256];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the kernel writes no more than `length` bytes of `bytes`.
    let code = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let wide = |at: usize| {
        let [low, high] = [word(at), word(at + 4)].map(u64::from);
        if cfg!(target_endian = "little") { high << 32 | low } else { low << 32 | high }
    };
    let min_rtt_us = word(MIN_RTT);
    Ok(Info {
        rtt_s: f64::from(word(RTT)) / 1e6,
        min_rtt_s: if min_rtt_us == u32::MAX { 0.0 } else { f64::from(min_rtt_us) / 1e6 },
        retransmissions: word(TOTAL_RETRANS),
        bytes_acked: wide(BYTES_ACKED),
        segments_sent: word(DATA_SEGS_OUT),
        mss: word(SND_MSS),
        path_mtu: word(PMTU),
    })
}

/// Bytes kept of each packet, enough for all headers. Keeping no more lets more packets fit the socket's buffer.
pub(super) const HEADERS_BYTES: u32 = 256;

/// Restricts a packet socket to the TCP packets of one port. The filter passes IPv4 packets without fragments and IPv6
/// packets without extension headers. The socket's packets begin with the IP header.
pub(super) fn filter_port(socket: BorrowedFd<'_>, port: u16) -> io::Result<()> {
    let port = u32::from(port);
    let op = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let (load, load_x, jump, ret) = (libc::BPF_LD, libc::BPF_LDX, libc::BPF_JMP | libc::BPF_JEQ, libc::BPF_RET);
    let (byte, half) = (libc::BPF_B | libc::BPF_ABS, libc::BPF_H | libc::BPF_ABS);
    // Accept is instruction 17, refuse 18; jumps are relative to the next instruction.
    let mut program = [
        op(load | byte, 0, 0, 0),
        op(libc::BPF_ALU | libc::BPF_RSH, 0, 0, 4),
        op(jump, 0, 7, 4), // IPv4, else 10
        op(load | byte, 0, 0, 9),
        op(jump, 0, 13, 6), // TCP
        op(load_x | libc::BPF_B | libc::BPF_MSH, 0, 0, 0),
        op(load | libc::BPF_H | libc::BPF_IND, 0, 0, 0),
        op(jump, 9, 0, port),
        op(load | libc::BPF_H | libc::BPF_IND, 0, 0, 2),
        op(jump, 7, 8, port),
        op(jump, 0, 7, 6), // IPv6
        op(load | byte, 0, 0, 6),
        op(jump, 0, 5, 6), // TCP
        op(load | half, 0, 0, 40),
        op(jump, 2, 0, port),
        op(load | half, 0, 0, 42),
        op(jump, 0, 1, port),
        op(ret, 0, 0, HEADERS_BYTES),
        op(ret, 0, 0, 0),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the kernel copies `len` instructions from a live array.
    let code = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const filter).cast(),
            size_of_val(&filter) as libc::socklen_t,
        )
    };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
