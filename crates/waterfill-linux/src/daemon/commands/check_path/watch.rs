//! Counts a connection's packets at this end, with and without the option.
//!
//! A packet socket shows what is on the wire, so a path that changes options shows as a difference between both ends.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;
use serde::{Deserialize, Serialize};

use super::socket::{HEADERS_BYTES, filter_port};

/// Maximum number of connections whose counts are kept.
const CONNECTIONS_MAX: usize = 4096;
/// Size of the packet socket's buffer in bytes, enough for a burst of some 10⁴ packets.
const BUFFER_BYTES: usize = 1 << 24;
/// Maximum time for which a reader of the counts waits for the thread.
const LAG_MAX: Duration = Duration::from_secs(1);
const KIND: u8 = 253;
const EXID: [u8; 2] = [0x57, 0x46];
const TCP: u8 = 6;
const SYN: u8 = 0x02;

/// Packet counts of one direction, as seen at one end. Merged segments count as one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) syns: u32,
    pub(super) syns_with_option: u32,
    pub(super) data: u32,
    pub(super) data_with_option: u32,
    /// Data packets with a value that a router has written.
    pub(super) data_written: u32,
    pub(super) acks: u32,
    /// Packets whose option echoes a value to the sender.
    pub(super) echoes: u32,
    /// Packets that echo a value written by a router.
    pub(super) echoes_written: u32,
    /// Minimum remaining TTL or hop limit of the packets; 0 before the first packet.
    pub(super) ttl: u8,
}

/// Packet counts of both directions of a connection, at one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Connection {
    /// Counts of packets from the client to the server.
    pub(super) forward: Seen,
    /// Counts of packets from the server to the client.
    pub(super) reverse: Seen,
}

/// Address and port of a client.
pub(super) type Client = (IpAddr, u16);
type Connections = HashMap<Client, Connection>;

/// A thread that counts the packets of a port by connection.
#[derive(Debug)]
pub(super) struct Watch {
    connections: Arc<Mutex<Connections>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts a thread that counts the packets of a server's port.
    pub(super) fn start(port: u16) -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let fd = socket(AddressFamily::Packet, SockType::Datagram, flags, SockProtocol::EthAll)?;
        filter_port(fd.as_fd(), port)?;
        // Without CAP_NET_ADMIN the kernel's own size stays.
        let _ = setsockopt(&fd, sockopt::RcvBufForce, &BUFFER_BYTES);
        setsockopt(&fd, sockopt::ReceiveTimeout, &TimeVal::new(0, 50_000))?;
        let (connections, stop) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let (shared, stopped) = (Arc::clone(&connections), Arc::clone(&stop));
        let thread = std::thread::spawn(move || watch(&fd, port, &shared, &stopped));
        Ok(Self { connections, stop, thread: Some(thread) })
    }

    /// Returns the packet counts of a client's connection, once the thread has read a packet of `later`, a connection
    /// that began when the first one had ended. Waits for at most a second.
    pub(super) fn of(&self, client: Client, later: Client) -> Connection {
        let began = Instant::now();
        loop {
            let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
            if connections.contains_key(&later) || began.elapsed() > LAG_MAX {
                return connections.get(&client).copied().unwrap_or_default();
            }
            drop(connections);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn watch(fd: &OwnedFd, port: u16, connections: &Mutex<Connections>, stop: &AtomicBool) {
    let mut buffer = [0; HEADERS_BYTES as usize];
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, from)) = recvfrom::<LinkAddr>(fd.as_raw_fd(), &mut buffer) else { continue };
        // A loopback device shows each packet twice; its arrival is enough.
        let is_loopback = from.is_some_and(|from| from.hatype() == libc::ARPHRD_LOOPBACK);
        let leaves = from.is_some_and(|from| from.pkttype() == libc::PACKET_OUTGOING);
        if is_loopback && leaves {
            continue;
        }
        let Some(packet) = parse(&buffer[..length.min(buffer.len())]) else { continue };
        let forward = packet.ports[1] == port;
        let client = if forward { (packet.source, packet.ports[0]) } else { (packet.destination, packet.ports[1]) };
        let mut connections = connections.lock().unwrap_or_else(PoisonError::into_inner);
        if connections.len() >= CONNECTIONS_MAX && !connections.contains_key(&client) {
            connections.clear();
        }
        let connection = connections.entry(client).or_default();
        count(if forward { &mut connection.forward } else { &mut connection.reverse }, &packet);
    }
}

fn count(seen: &mut Seen, packet: &Packet<'_>) {
    seen.ttl = if seen.ttl == 0 { packet.ttl } else { seen.ttl.min(packet.ttl) };
    let option = find_option(packet.options);
    if packet.flags & SYN != 0 {
        seen.syns += 1;
        seen.syns_with_option += u32::from(option.is_some());
        return;
    }
    let role = option.map_or(0, |option| option[4] % 4);
    if packet.payload > 0 {
        seen.data += 1;
        seen.data_with_option += u32::from(role & 1 != 0);
        seen.data_written += u32::from(option.is_some_and(|option| role & 1 != 0 && forward_written(option)));
    } else {
        seen.acks += 1;
    }
    seen.echoes += u32::from(role & 2 != 0);
    seen.echoes_written += u32::from(option.is_some_and(|option| role & 2 != 0 && echo_written(option)));
}

/// Header fields, TCP options and payload length of a packet.
#[derive(Debug)]
struct Packet<'a> {
    source: IpAddr,
    destination: IpAddr,
    ttl: u8,
    ports: [u16; 2],
    flags: u8,
    options: &'a [u8],
    payload: usize,
}

/// Parses a packet that begins with its IP header. Returns `None` if it is not TCP.
fn parse(bytes: &[u8]) -> Option<Packet<'_>> {
    let word = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let (source, destination, ttl, protocol, header, length) = match bytes.first()? >> 4 {
        4 => {
            let address = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(bytes.get(at..at + 4)?).ok()?));
            let header = usize::from(bytes[0] & 15) * 4;
            (address(12)?, address(16)?, *bytes.get(8)?, *bytes.get(9)?, header, usize::from(word(2)?))
        }
        6 => {
            let address = |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(bytes.get(at..at + 16)?).ok()?));
            (address(8)?, address(24)?, *bytes.get(7)?, *bytes.get(6)?, 40, 40 + usize::from(word(4)?))
        }
        _ => return None,
    };
    if protocol != TCP {
        return None;
    }
    let tcp = usize::from(bytes.get(header + 12)? >> 4) * 4;
    let options = bytes.get(header + 20..header + tcp)?;
    let ports = [word(header)?, word(header + 2)?];
    // A super-packet of more than 64 kB says 0.
    let payload = if length == 0 { 1 } else { length.saturating_sub(header + tcp) };
    Some(Packet { source, destination, ttl, ports, flags: bytes[header + 13], options, payload })
}

/// Finds Waterfill's option among a packet's TCP options, or returns `None`. The returned bytes begin with the option's
/// kind.
fn find_option(mut options: &[u8]) -> Option<&[u8]> {
    loop {
        match *options {
            [1, ref rest @ ..] => options = rest,
            [kind, length, ..] if kind > 1 && length >= 2 => {
                let (option, rest) = options.split_at_checked(usize::from(length))?;
                if kind == KIND && option.len() >= 8 && option[2..4] == EXID {
                    return Some(option);
                }
                options = rest;
            }
            _ => return None,
        }
    }
}

/// Numbers of the laws of the XCP family in the option's type byte (`kernel/<law>.h`). The law's family determines
/// which bytes show that a router wrote a value.
const XCP_LAWS: [u8; 3] = [5, 6, 7];
const JETMAX: u8 = 8;

fn forward_written(option: &[u8]) -> bool {
    let value = &option[5..];
    match option[4] / 4 {
        law if XCP_LAWS.contains(&law) => value.get(6..11).is_some_and(|feedback| feedback != [0; 5]),
        JETMAX => value.get(11).is_some_and(|next| next & 31 != 0),
        _ => value[0] & 0x7f != 0 || value[1..3] != [0; 2],
    }
}

fn echo_written(option: &[u8]) -> bool {
    let law = option[4] / 4;
    let forward = match (option[4] % 4, law) {
        (2, _) => 0,
        (_, 3) => 5,
        (_, 5 | 6) => 11,
        (_, 7) => 15,
        (_, JETMAX) => 12,
        _ => 3,
    };
    let Some(value) = option.get(5 + forward..).filter(|value| value.len() >= 3) else { return false };
    match law {
        law if XCP_LAWS.contains(&law) => value[0] & 0x80 != 0,
        JETMAX => value.get(10).is_some_and(|next| next & 31 != 0),
        _ => value[0] & 0x7f != 0 || value[1..3] != [0; 2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an IPv4 packet with these TCP flags, this option and a payload of `payload` bytes.
    fn segment(flags: u8, option: &[u8], payload: u8) -> Vec<u8> {
        let mut options = option.to_vec();
        options.resize(option.len().next_multiple_of(4), 1);
        let length = 40 + options.len() as u8 + payload;
        let mut bytes = vec![0x45, 0, 0, length, 0, 0, 0, 0, 61, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        bytes.extend([0x12, 0x34, 0x1d, 0x29, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([((20 + options.len()) as u8 / 4) << 4, flags, 0, 0, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes.resize(usize::from(length), 0);
        bytes
    }

    fn counted(packets: &[Vec<u8>]) -> Seen {
        let mut seen = Seen::default();
        for packet in packets {
            count(&mut seen, &parse(packet).unwrap());
        }
        seen
    }

    #[test]
    fn counts_wait_for_a_thread_that_is_late() {
        let watch = Watch { connections: Arc::default(), stop: Arc::default(), thread: None };
        let client = |port: u16| (IpAddr::from([10, 0, 0, 1]), port);
        let shared = Arc::clone(&watch.connections);
        let late = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            let mut connections = shared.lock().unwrap();
            let forward = Seen { data: 7, ..Seen::default() };
            connections.insert(client(1), Connection { forward, ..Connection::default() });
            connections.insert(client(2), Connection::default());
        });
        assert_eq!(watch.of(client(1), client(2)).forward.data, 7);
        late.join().unwrap();
    }

    #[test]
    fn packets_are_counted_by_what_they_carry() {
        let option = |role: u8, value: [u8; 3]| [&[1, 1, 253, 8, 0x57, 0x46, role], &value[..]].concat();
        let seen = counted(&[
            segment(SYN, &option(1, [0x80, 0, 0]), 0),
            segment(SYN, &[2, 4, 5, 0xb4], 0),
            segment(16, &option(1, [0, 0, 0]), 7),
            segment(16, &option(1, [0, 0, 1]), 7),
            segment(16, &[], 7),
            segment(16, &option(2, [0, 0, 0]), 0),
            segment(16, &option(2, [0x80, 1, 0]), 0),
        ]);
        let expected = Seen {
            syns: 2,
            syns_with_option: 1,
            data: 3,
            data_with_option: 2,
            data_written: 1,
            acks: 2,
            echoes: 2,
            echoes_written: 1,
            ttl: 61,
        };
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_is_cut_off_or_not_ours_is_left_alone() {
        assert!(parse(&[]).is_none() && parse(&[0x45; 20]).is_none() && parse(&[0x60; 30]).is_none());
        let whole = segment(16, &[253, 8, 0x57, 0x46, 1, 0, 0, 1], 0);
        for length in 0..whole.len() {
            assert!(parse(&whole[..length]).is_none(), "{length}");
        }
        for options in [&[253, 8, 0x57, 0x47, 1, 0, 0, 1][..], &[253, 8, 0x57], &[0, 253, 8], &[5, 1, 253, 8], &[5]] {
            assert_eq!(find_option(options), None, "{options:?}");
        }
    }
}
