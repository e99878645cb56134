//! Specification of a sender: the sizes of its packets, its host and its times.

use std::num::NonZeroU16;

use waterfill_laws::protocol::{Connection, Ecn, Host, PathView, Retransmission, Validation};
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::{FlowSpec, Network, TCP_IP_BYTES};

use crate::binding::FlowProtocol;
use crate::packet::{Flags, Opening};
use crate::recovery::rto::RtoLimits;

/// Value of [`SenderSpec::opens_from`] for a flow whose receiver exists before its SYN. An `Option` would not fit into the
/// kilobyte of an idle flow.
pub(super) const NO_OPENING: u32 = u32::MAX;

/// Indices of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowIndex {
    /// Index of the flow among the engine's flows.
    pub(crate) flow: u32,
    /// Index of the flow in its group.
    pub(crate) index: u32,
}

/// Sizes of a flow's packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketSizes {
    packet_bytes: u16,
    payload_bytes: u16,
    /// Number of packets to send and size of the last one; `None` if unlimited.
    pub(crate) packets: Option<(u64, NonZeroU16)>,
}

/// Parameters of a new sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderSpec {
    pub(crate) flow: u32,
    /// Index of the receiver among those of its part. For a traffic source's flow it is that of its [`Opening`] until the
    /// answer tells the receiver's index.
    pub(crate) to: u32,
    /// Index of the sender among those of its part if it opens its connection with an [`Opening`]; otherwise `NO_OPENING`.
    pub(crate) opens_from: u32,
    /// Start of the forward path in the list of all paths.
    pub(crate) path: u32,
    /// Index of the flow in its group.
    pub(crate) index: u32,
    pub(crate) incarnation: u16,
    /// Size of a SYN; `None` for a flow that begins with its data.
    pub(super) syn_bytes: Option<NonZeroU16>,
    pub(crate) sizes: PacketSizes,
    pub(crate) start: Instant,
    pub(crate) stop: Instant,
    /// Rate at which the application writes data, its maximum if the rate changes; [`Rate::UNLIMITED`] without a limit.
    pub(super) demand: Rate,
    pub(super) paced: bool,
    pub(crate) host: Host,
    /// ECN field of data packets that are not retransmissions.
    pub(super) ect: Flags,
    pub(super) rto: RtoLimits,
    pub(crate) base_rtt: Duration,
    /// Start and end of the summary's measurement window; [`UNMEASURED`] for a flow whose RTTs nobody reads.
    pub(crate) measure: (Instant, Instant),
}

/// Window in which no RTT is measured. Limits then count in a flow's whole life.
pub(crate) const UNMEASURED: (Instant, Instant) = (Instant::NEVER, Instant::ZERO);

/// Returns a law's host with the use of ECN that a flow asks for. A law that needs each packet's mark uses ECN unless the
/// scenario says otherwise; the others use it where the scenario says so.
fn host_ecn(host: Host, flow: &FlowSpec) -> Host {
    if !flow.ecn.unwrap_or(host.ecn.is_per_packet()) {
        return Host { ecn: Ecn::Off, ..host };
    }
    let ecn = flow.ecn_feedback.as_deref().and_then(Ecn::by_name).unwrap_or(host.ecn);
    let l4s = flow.ecn_codepoint.as_ref().map_or(host.l4s, |codepoint| codepoint == "ect1");
    Host { ecn, l4s, ..host }
}

impl SenderSpec {
    pub(crate) fn new(network: &Network, flow: &FlowSpec, law: &FlowProtocol, place: FlowIndex) -> Self {
        let FlowIndex { flow: flow_id, index } = place;
        let headers = TCP_IP_BYTES + law.params.header_bytes() as u16;
        let payload_bytes = network.packet_bytes - headers;
        let host = law.params.info().host;
        let host = flow.recovery.as_deref().and_then(Retransmission::by_name).map_or(host, |m| host.recovering_by(m));
        let rule = flow.window_validation.as_deref().and_then(Validation::by_name);
        let host = Host { validation: rule.or(host.validation), ..host_ecn(host, flow) };
        let packets = flow.size_bytes.map(|size| {
            let count = size.div_ceil(u64::from(payload_bytes));
            let last = size - (count - 1) * u64::from(payload_bytes);
            (count, NonZeroU16::MIN.saturating_add(last as u16 + headers - 1))
        });
        Self {
            flow: flow_id,
            to: flow_id,
            opens_from: NO_OPENING,
            path: 0,
            index,
            incarnation: 0,
            syn_bytes: NonZeroU16::new(network.ack_bytes).filter(|_| flow.handshake),
            sizes: PacketSizes { packet_bytes: network.packet_bytes, payload_bytes, packets },
            start: if flow.after.is_empty() { Instant::from_secs(flow.start_of_s(index)) } else { Instant::NEVER },
            stop: Instant::from_secs(flow.stop_s),
            demand: Rate::from_bps(flow.application.as_ref().map_or(flow.demand_max_bps(), |_| f64::INFINITY)),
            paced: flow.pacing.unwrap_or_else(|| law.params.paced()),
            ect: match host.ecn {
                Ecn::Off => Flags::default(),
                _ if host.l4s => Flags::L4S,
                _ => Flags::MARKABLE,
            },
            host,
            rto: RtoLimits {
                rto_min: Duration::from_secs(network.rto_min_s),
                syn_rto: Duration::from_secs(network.syn_rto_s),
                rttvar_min: Duration::from_secs(network.rttvar_min_s),
            },
            base_rtt: Duration::from_secs(flow.base_rtt_of_s(index)),
            measure: (Instant::from_secs(network.measure_s[0]), Instant::from_secs(network.measure_s[1])),
        }
    }

    /// Returns the connection as the law sees it.
    pub(crate) fn connection(&self, flow: &FlowSpec, path: PathView, seed: u64) -> Connection {
        let packet = Volume::from_bytes(f64::from(self.sizes.packet_bytes));
        Connection {
            weight: flow.weight,
            packet,
            initial_window: flow.initial_window_packets * packet,
            claimed_rtt: flow.claimed_rtt_s.map(Duration::from_secs),
            path,
            validation: self.host.validation.unwrap_or(Validation::Off),
            seed: seed.rotate_left(32) ^ u64::from(self.flow) ^ (u64::from(self.incarnation) << 48),
        }
    }

    /// Returns what the first packet tells the receiver's part, for a traffic source's flow.
    pub(super) fn opening(&self) -> Option<Opening> {
        let packets = self.sizes.packets.map_or(u64::MAX, |(count, _)| count);
        let opening = Opening { route: self.to, sender: self.opens_from, index: self.index, packets };
        (self.opens_from != NO_OPENING).then_some(opening)
    }

    /// Returns true if data waits for the answer to a SYN.
    pub(crate) const fn has_handshake(&self) -> bool {
        self.syn_bytes.is_some()
    }

    /// Returns true if the connection uses ECN.
    pub(crate) fn uses_ecn(&self) -> bool {
        self.host.ecn != Ecn::Off
    }
}

impl PacketSizes {
    /// Returns the size of all headers of a data packet, in bytes.
    pub(crate) const fn header_bytes(&self) -> u16 {
        self.packet_bytes - self.payload_bytes
    }

    /// Returns the size of a full packet, in bytes.
    pub(crate) const fn packet_bytes(&self) -> u16 {
        self.packet_bytes
    }

    /// Returns the total payload of all packets before this one, in bytes.
    pub(crate) fn payload_before(&self, number: u64) -> u64 {
        let payload = u64::from(self.payload_bytes);
        match self.packets {
            Some((count, last)) if number >= count => (count - 1) * payload + u64::from(self.payload(last.get())),
            _ => number * payload,
        }
    }

    /// Returns the size of a packet, in bytes.
    #[inline]
    pub(crate) const fn bytes_of(&self, number: u64) -> u16 {
        match self.packets {
            Some((count, last)) if number + 1 == count => last.get(),
            _ => self.packet_bytes,
        }
    }

    /// Returns the payload of a packet of this size, in bytes.
    pub(crate) const fn payload(&self, bytes: u16) -> u16 {
        bytes - self.header_bytes()
    }
}
