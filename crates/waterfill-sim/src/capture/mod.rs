//! Captures of a run as pcapng, for Wireshark and tshark: one interface per link direction.
//!
//! Packets of the simulator have no TCP header. A capture makes one for each: sequence numbers from packet numbers, the
//! acknowledgement with its selective blocks, and the law's option as a kernel's host would write it
//! ([`waterfill_laws::kernel::option`]). A flow with QUIC's recovery becomes UDP datagrams. A packet is recorded when it arrives at the far end of a link; one that the wire
//! loses is recorded then too, with a comment. What a queue drops is never on the link and is only counted: recorded at
//! its arrival it would overtake the packets before it in the queue. A capture that is off costs one branch per hop.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use waterfill_laws::capture::Values;
use waterfill_laws::kernel::option::{encode, encode_syn_ack};
use waterfill_laws::protocol::{Ecn, PacketKind, Retransmission};
use waterfill_laws::units::Instant;
use waterfill_network::{Network, TCP_IP_BYTES};

use crate::flow::{Owner, SendingHost};
use crate::packet::{Blocks, Cargo, Flags, Packet, Role, Sacks, expects, marked_bytes, named};
use crate::sender::SenderSpec;
use crate::sender::ecn::ACE_INITIAL;
use frame::{ACK, AE, CWR, ECE, Frame, Ip, Options, SYN, Tcp};
use pcapng::{Captured, Interface, Writer};

mod frame;
mod pcapng;

/// Port of every connection's receiver. `TRAFFIC_PORT` is the port of traffic sources.
const SERVER_PORT: u16 = 5001;
const TRAFFIC_PORT: u16 = 9;
const TTL: u8 = 64;
/// IPv4 network of the flows' addresses, two per flow. `TRAFFIC_NETWORK` holds the traffic sources' addresses.
const FLOW_NETWORK: u32 = 0x0a00_0000;
const TRAFFIC_NETWORK: u32 = 0xac10_0000;
/// Maximum number of flows whose addresses are named in the file.
const NAMED_FLOWS: usize = 4096;
/// Zero bytes that are written as payload.
static ZEROS: [u8; 65_536] = [0; 65_536];

/// Options of a capture: links, size limit, bytes per packet.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// Maximum number of bytes recorded of each packet; 80 bytes hold all headers.
    pub snaplen: u32,
    /// Maximum size of the file, in bytes. Later packets are not recorded.
    pub limit_bytes: u64,
    /// Indices of the recorded link directions; empty to record all of them.
    pub links: Vec<u32>,
}

/// Totals of a capture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CaptureReport {
    /// Number of packets in the file.
    pub packets: u64,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// Time at which the file reached its size limit, in seconds; `None` if it did not.
    pub full_at_s: Option<f64>,
}

/// Time and interface of a recorded packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapturePoint {
    pub(crate) now: Instant,
    pub(crate) link: u32,
    /// Number of links that the packet has crossed before this one.
    pub(crate) hop: usize,
}

/// Capture interface and packet counters of a link direction.
#[derive(Clone, Copy, Debug, Default)]
struct Tap {
    /// Index of the link's interface in the file; `None` if the link is not recorded.
    interface: Option<u32>,
    arrived: u64,
    gone: u64,
}

/// Option values of a connection's packets, kept from the first packet on.
#[derive(Clone, Copy, Debug)]
struct Connection {
    incarnation: u16,
    values: Option<Values>,
}

/// A running capture.
#[derive(Debug)]
pub(crate) struct Capture {
    out: Writer<BufWriter<File>>,
    snaplen: usize,
    limit_bytes: u64,
    taps: Box<[Tap]>,
    connections: Vec<Option<Connection>>,
    /// Bytes of the packet being written.
    buffer: Vec<u8>,
    packets: u64,
    full_at: Option<Instant>,
    failed: Option<io::Error>,
}

impl Capture {
    /// Creates the capture file, with an interface for each recorded link direction.
    pub(crate) fn new(
        file: &Path,
        options: &CaptureOptions,
        network: &Network,
        senders: &[SendingHost],
    ) -> io::Result<Self> {
        let application = concat!("waterfill ", env!("CARGO_PKG_VERSION"));
        let comment = format!("simulated, seed {}", network.seed);
        let mut out = Writer::new(BufWriter::with_capacity(1 << 18, File::create(file)?), application, &comment)?;
        let mut taps = vec![Tap::default(); network.links.len()];
        let mut interfaces = 0;
        for ((link, spec), tap) in (0u32..).zip(&network.links).zip(&mut taps) {
            if !options.links.is_empty() && !options.links.contains(&link) {
                continue;
            }
            let description = format!("{} bit/s, {} s: arrivals at the far end", spec.rate_bps, spec.delay_s);
            out.interface(&Interface {
                name: &spec.name,
                description: &description,
                speed_bps: spec.rate_bps as u64,
                snaplen: options.snaplen,
            })?;
            tap.interface = Some(interfaces);
            interfaces += 1;
        }
        let named = (0u32..).zip(senders).take(NAMED_FLOWS).filter_map(|(f, host)| {
            let Owner::Group(group) = host.owner else { return None };
            let spec = &network.flows[group as usize];
            let index = if spec.count > 1 { format!("[{}]", host.sender.spec.index) } else { String::new() };
            Some((f, format!("{}{index}", spec.name)))
        });
        out.names(named.flat_map(|(f, name)| {
            let [source, receiver] = addresses(FLOW_NETWORK, f);
            [(source, name.clone()), (receiver, format!("{name}.receiver"))]
        }))?;
        Ok(Self {
            out,
            snaplen: options.snaplen as usize,
            limit_bytes: options.limit_bytes,
            taps: taps.into(),
            connections: vec![None; senders.len()],
            buffer: Vec::with_capacity(options.snaplen as usize),
            packets: 0,
            full_at: None,
            failed: None,
        })
    }

    /// Records a packet that arrives at the far end of a link.
    #[cold]
    #[inline(never)]
    pub(crate) fn record(
        &mut self,
        at: CapturePoint,
        packet: &Packet,
        senders: &[SendingHost],
        network: &Network,
        sacks: &Sacks,
    ) {
        // A late packet and both copies of a duplicated one arrive by themselves.
        let lost = packet.flags.has(Flags::LOST);
        if packet.flags.has(Flags::OF_A_WIRE) && !lost {
            return;
        }
        let tap = &mut self.taps[at.link as usize];
        tap.arrived += u64::from(!lost);
        tap.gone += u64::from(lost);
        if tap.interface.is_none() || self.full_at.is_some() || self.failed.is_some() {
            return;
        }
        let frame = match packet.role {
            Role::Traffic => datagram(packet, at.hop),
            Role::Endpoint => return, // `start_capture` refuses them
            _ => {
                let host = &senders[packet.to as usize];
                // The answer to a SYN has the receiver's index there.
                let answers_syn = packet.role == Role::SynAck && host.sender.spec.has_handshake();
                let packet = &Packet { number: if answers_syn { 0 } else { packet.number }, ..*packet };
                if host.sender.spec.host.retransmission == Retransmission::Quic {
                    quic_packet(packet, at.hop)
                } else {
                    let values = self.values(packet, host, network);
                    segment((packet, at.hop), sacks.get(packet.sack), &host.sender.spec, values)
                }
            }
        };
        self.write(at, lost, &frame);
    }

    /// Counts a packet that a queue dropped.
    pub(crate) fn count_drop(&mut self, link: u32) {
        self.taps[link as usize].gone += 1;
    }

    /// Returns the option values of a packet's connection, or `None` if its protocol has no option. The values start
    /// with the connection's first packet.
    fn values(&mut self, packet: &Packet, host: &SendingHost, network: &Network) -> Option<&mut Values> {
        let f = packet.to as usize;
        if self.connections.len() <= f {
            self.connections.resize(f + 1, None);
        }
        let incarnation = packet.incarnation;
        let connection = &mut self.connections[f];
        if connection.is_none_or(|connection| connection.incarnation != incarnation) {
            let params = network.params_of(host.protocol).ok();
            let values = params.and_then(|params| Values::new(&params, network.packet_bytes));
            *connection = Some(Connection { incarnation, values });
        }
        connection.as_mut()?.values.as_mut()
    }

    fn write(&mut self, at: CapturePoint, lost: bool, frame: &Frame) {
        let Some(interface) = self.taps[at.link as usize].interface else { return };
        let length = frame.length().min(self.snaplen);
        if self.out.written() + (length + 80) as u64 > self.limit_bytes {
            self.full_at = Some(at.now);
            return;
        }
        let headers = frame.headers();
        self.buffer.clear();
        self.buffer.extend_from_slice(&headers[..headers.len().min(length)]);
        self.buffer.extend_from_slice(&ZEROS[..length - self.buffer.len()]);
        let captured = Captured {
            interface,
            time_ns: nanoseconds(at.now),
            bytes: &self.buffer,
            length: frame.length() as u32,
            comment: lost.then_some("lost on the wire"),
        };
        self.packets += 1;
        self.failed = self.out.packet(&captured).err();
    }

    /// Writes the counters of each interface and closes the file.
    pub(crate) fn finish(mut self, now: Instant) -> io::Result<CaptureReport> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let full_at_s = self.full_at.map(Instant::as_secs);
        let full = full_at_s.map(|s| format!("the capture reached its limit at {s} s"));
        for tap in &self.taps {
            let Some(interface) = tap.interface else { continue };
            let (received, dropped) = (tap.arrived + tap.gone, tap.gone);
            self.out.statistics(interface, nanoseconds(now), received, dropped, full.as_deref())?;
        }
        self.out.flush()?;
        Ok(CaptureReport { packets: self.packets, bytes: self.out.written(), full_at_s })
    }
}

fn nanoseconds(time: Instant) -> u64 {
    time.as_ps() / 1000
}

/// Returns the addresses of a source and its receiver. The flow network has 2²³ pairs, the traffic network 2¹⁹.
fn addresses(network: u32, number: u32) -> [u32; 2] {
    let bits = if network == FLOW_NETWORK { 23 } else { 19 };
    let first = network + 2 * (number % ((1 << bits) - 1)) + 1;
    [first, first + 1]
}

/// Builds the IP header of a packet that has crossed `hop` links.
fn ip(packet: &Packet, hop: usize, [source, destination]: [u32; 2]) -> Ip {
    let ecn = match packet.flags {
        flags if !flags.has(Flags::MARKABLE) => 0,
        flags if flags.has(Flags::MARKED) => 3,
        flags if flags.is_l4s() => 1,
        _ => 2,
    };
    Ip { source, destination, id: packet.number as u16, ttl: TTL.saturating_sub(hop.min(63) as u8), ecn }
}

/// Builds the headers of a traffic source's UDP datagram.
fn datagram(packet: &Packet, hop: usize) -> Frame {
    let pair = addresses(TRAFFIC_NETWORK, packet.flow);
    let payload = usize::from(packet.bytes).saturating_sub(28);
    Frame::udp(&ip(packet, hop, pair), [TRAFFIC_PORT; 2], payload)
}

/// Builds the headers of the UDP datagram of a flow that recovers by QUIC's rules. What a real one carries is encrypted.
fn quic_packet(packet: &Packet, hop: usize) -> Frame {
    let [source, receiver] = addresses(FLOW_NETWORK, packet.to);
    let (client, server) = ((source, client_port(packet)), (receiver, SERVER_PORT));
    let ((from, from_port), (to, to_port)) =
        if packet.role.kind() == PacketKind::Ack { (server, client) } else { (client, server) };
    let payload = usize::from(packet.bytes).saturating_sub(28);
    Frame::udp(&ip(packet, hop, [from, to]), [from_port, to_port], payload)
}

/// Returns the port of a connection's source.
const fn client_port(packet: &Packet) -> u16 {
    32_768 + packet.incarnation % 28_000
}

/// Returns the TCP flags AE, CWR and ECE that hold an ACE field (RFC 9768).
const fn ace(count: u8) -> u16 {
    (count as u16 & 7) << 6
}

/// Builds the headers of a packet's TCP segment.
fn segment(
    (packet, hop): (&Packet, usize),
    blocks: Option<&Blocks>,
    spec: &SenderSpec,
    values: Option<&mut Values>,
) -> Frame {
    let [source, receiver] = addresses(FLOW_NETWORK, packet.to);
    let client_port = client_port(packet);
    // First numbers differ between connections, as hosts' do.
    let first = (packet.to + 1).wrapping_mul(0x9e37_79b1) ^ u32::from(packet.incarnation) << 16;
    let (client, server) = (first.wrapping_add(1), first.reverse_bits().wrapping_add(1));
    let at = |number: u64| client.wrapping_add(spec.sizes.payload_before(number) as u32);
    let mut options = Options::new();
    let ecn = spec.uses_ecn();
    let with = |flag: u16, on: bool| if on { flag } else { 0 };
    let counts = spec.host.ecn.counts();
    match packet.role {
        Role::Syn | Role::Open | Role::Data | Role::First | Role::Early | Role::Datagram => {
            let handshake = packet.role == Role::Syn;
            if handshake {
                options.push_handshake(spec.sizes.packet_bytes() - TCP_IP_BYTES);
            }
            if let (Some(values), Cargo::Header(header)) = (values, &packet.cargo) {
                let value = values.forward(header);
                if let Some(option) = encode(values.law(), Some(&value), None) {
                    options.push(option.as_bytes());
                }
            }
            let (sequence, acknowledgement, flags) = if handshake {
                (first, 0, SYN | with(ECE | CWR, ecn) | with(AE, counts))
            } else {
                let reports = if counts { ace(ACE_INITIAL) } else { with(CWR, packet.flags.has(Flags::REDUCED)) };
                (at(packet.number), server, ACK | reports)
            };
            let tcp = Tcp { ports: [client_port, SERVER_PORT], sequence, acknowledgement, flags };
            let payload = if handshake { 0 } else { usize::from(spec.sizes.payload(packet.bytes)) };
            Frame::tcp(&ip(packet, hop, [source, receiver]), &tcp, &options, payload)
        }
        Role::SynAck | Role::Ack | Role::AckFrame | Role::Traffic | Role::Endpoint => {
            let handshake = packet.role == Role::SynAck && spec.has_handshake();
            if handshake {
                options.push_handshake(spec.sizes.packet_bytes() - TCP_IP_BYTES);
            }
            if let Some(blocks) = blocks {
                let (_, blocks) = named(Some(blocks));
                let present = blocks.iter().flatten().filter(|(from, to)| from < to);
                options.push_sack(present.map(|&(from, to)| (at(from), at(to))));
            }
            if spec.host.ecn == Ecn::Counted && !handshake {
                options.push_accecn(spec.host.l4s, marked_bytes(packet.number));
            }
            if let (Some(values), Cargo::Echo(echo)) = (values, &packet.cargo) {
                let value = values.echo(echo, hop == 0);
                let option = if handshake {
                    encode_syn_ack(values.law(), &values.request(), &value)
                } else {
                    encode(values.law(), None, Some(&value))
                };
                if let Some(option) = option {
                    options.push(option.as_bytes());
                }
            }
            let reports = match handshake {
                true if counts => CWR, // [rfc9768:§3.1.1] AccECN, and the SYN was not ECN-capable
                false if counts => ace(packet.flags.ace()),
                _ => with(ECE, packet.flags.has(Flags::REPORTS_MARK) || handshake && ecn),
            };
            let (sequence, acknowledgement, flags) = if handshake {
                (server.wrapping_sub(1), client, SYN | ACK | reports)
            } else {
                (server, at(expects(packet.number)), ACK | reports)
            };
            let tcp = Tcp { ports: [SERVER_PORT, client_port], sequence, acknowledgement, flags };
            Frame::tcp(&ip(packet, hop, [receiver, source]), &tcp, &options, 0)
        }
    }
}
