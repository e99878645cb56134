//! Logs of flows as qlog, for qvis and other tools for QUIC: one file per flow, seen from its sender.
//!
//! The format is qlog 0.3 in JSON text sequences (draft-ietf-quic-qlog-main-schema-03, draft-ietf-quic-qlog-quic-events-03,
//! RFC 7464). A flow whose recovery is not QUIC's is logged as if each transmission were a QUIC packet:
//!
//! - Each transmission of data has a new packet number, in the order of sending. SYNs and their answers are Initial packets.
//! - An acknowledgement's ranges are the transmissions that it is the first to report: the last one of each data packet,
//!   because TCP's acknowledgements do not tell transmissions apart.
//! - Lengths are bytes on the simulated wire. Stream offsets count the payload of full packets.
//!
//! The law's own signals are further fields of `metrics_updated`. A log only reads, so the packets are the same with it. A
//! log that is off costs one branch per packet sent and per acknowledgement.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use waterfill_laws::protocol::Retransmission;
use waterfill_laws::units::Instant;

use crate::ack_frame::AckFrame;
use crate::packet::{Blocks, Flags, Packet, Role, expects};
use crate::sender::Sender;
use transmissions::{Loss, Transmissions};
use writer::{Decimal, Log, ms, ranges};

mod metrics;
mod transmissions;
mod writer;

/// File of a flow's log.
#[derive(Clone, Debug)]
pub struct QlogFile {
    /// Index of the flow among those of the network's groups.
    pub flow: u32,
    /// Path of the file.
    pub file: PathBuf,
    /// Title of the trace, usually the flow's name.
    pub title: String,
}

/// Totals of all logs of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QlogReport {
    /// Number of events in the files.
    pub events: u64,
    /// Size of all files, in bytes.
    pub bytes: u64,
    /// Time at which the files reached their common size limit, in seconds; `None` if they did not.
    pub full_at_s: Option<f64>,
}

/// Logs of a run.
#[derive(Debug)]
pub(crate) struct Qlog {
    /// Log of each sender; `None` for one that is not logged.
    flows: Vec<Option<Box<FlowLog>>>,
    limit_bytes: u64,
    events: u64,
    bytes: u64,
    full_at: Option<Instant>,
    failed: Option<io::Error>,
}

/// Log of a flow, and what it has said so far.
#[derive(Debug)]
struct FlowLog {
    log: Log,
    sent: Transmissions,
    metrics: metrics::Metrics,
    /// Number of packets sent without a number of their own: SYNs, or datagrams of an endpoint.
    unnumbered: u64,
    received: u64,
    /// Number of marks that acknowledgements have reported (QUIC).
    marked: u64,
    timeouts: u64,
}

/// What has made a sender's state change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    Sent,
    Acknowledged { marked: bool },
    Timer,
}

impl Qlog {
    /// Creates the files of the flows.
    pub(crate) fn new(files: &[QlogFile], limit_bytes: u64) -> io::Result<Self> {
        let count = files.iter().map(|file| file.flow as usize + 1).max().unwrap_or(0);
        let mut flows: Vec<_> = (0..count).map(|_| None).collect();
        for QlogFile { flow, file, title } in files {
            let mut log = Log::new(File::create(file)?);
            log.header(title)?;
            flows[*flow as usize] = Some(Box::new(FlowLog {
                log,
                sent: Transmissions::default(),
                metrics: metrics::Metrics::default(),
                unnumbered: 0,
                received: 0,
                marked: 0,
                timeouts: 0,
            }));
        }
        let bytes = flows.iter().flatten().map(|flow| flow.log.bytes).sum();
        Ok(Self { flows, limit_bytes, events: 0, bytes, full_at: None, failed: None })
    }

    /// Logs a packet that the sender of flow `f` has sent.
    #[cold]
    #[inline(never)]
    pub(crate) fn sent(&mut self, now: Instant, f: u32, packet: &Packet, sender: &Sender) {
        self.with(now, f, |flow| {
            flow.packet_sent(now, packet, sender)?;
            flow.update(now, sender, Occasion::Sent)
        });
    }

    /// Logs a packet that the sender of flow `f` has received and handled, with its blocks.
    #[cold]
    #[inline(never)]
    pub(crate) fn received(&mut self, now: Instant, f: u32, packet: &Packet, blocks: Option<&Blocks>, sender: &Sender) {
        self.with(now, f, |flow| {
            let marked = flow.packet_received(now, packet, blocks)?;
            flow.packets_lost(now, sender, false)?;
            flow.update(now, sender, Occasion::Acknowledged { marked })
        });
    }

    /// Logs the changes made by a timer of the sender of flow `f`.
    #[cold]
    #[inline(never)]
    pub(crate) fn timer(&mut self, now: Instant, f: u32, sender: &Sender) {
        self.with(now, f, |flow| {
            flow.packets_lost(now, sender, true)?;
            flow.update(now, sender, Occasion::Timer)
        });
    }

    /// Logs a datagram that the client of flow `f` has sent or received. What it contains is known to the endpoint only, so that
    /// its number is that of the datagram.
    #[cold]
    #[inline(never)]
    pub(crate) fn datagram(&mut self, now: Instant, f: u32, packet: &Packet, is_sent: bool) {
        let bytes = packet.bytes;
        self.with(now, f, |flow| {
            let number = if is_sent { &mut flow.unnumbered } else { &mut flow.received };
            let event = if is_sent { "transport:packet_sent" } else { "transport:packet_received" };
            let n = std::mem::replace(number, *number + 1);
            flow.log.event(now, event, |out| {
                out.push(format_args!(
                    r#""header":{{"packet_type":"unknown","packet_number":{n}}},"raw":{{"length":{bytes}}}"#
                ));
            })
        });
    }

    /// Lets a flow's log write, unless there is none, the files are full or one has failed.
    fn with(&mut self, now: Instant, f: u32, write: impl FnOnce(&mut FlowLog) -> io::Result<()>) {
        if self.full_at.is_some() || self.failed.is_some() {
            return;
        }
        let Some(Some(flow)) = self.flows.get_mut(f as usize) else { return };
        let before = (flow.log.events, flow.log.bytes);
        self.failed = write(flow).err();
        self.events += flow.log.events - before.0;
        self.bytes += flow.log.bytes - before.1;
        if self.bytes >= self.limit_bytes {
            self.full_at = Some(now);
        }
    }

    /// Closes the files.
    pub(crate) fn finish(self) -> io::Result<QlogReport> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        for flow in self.flows.into_iter().flatten() {
            flow.log.finish()?;
        }
        Ok(QlogReport { events: self.events, bytes: self.bytes, full_at_s: self.full_at.map(Instant::as_secs) })
    }
}

impl FlowLog {
    fn packet_sent(&mut self, now: Instant, packet: &Packet, sender: &Sender) -> io::Result<()> {
        let bytes = packet.bytes;
        if matches!(packet.role, Role::Syn | Role::Open) {
            let number = self.unnumbered;
            self.unnumbered += 1;
            return self.log.event(now, "transport:packet_sent", |out| {
                out.push(format_args!(
                    r#""header":{{"packet_type":"initial","packet_number":{number}}},"raw":{{"length":{bytes}}},"frames":[]"#
                ));
            });
        }
        let (number, data) = self.sent.add(packet, sender.recovery().is_quic());
        let sizes = &sender.spec.sizes;
        let (offset, length) = (sizes.payload_before(data), sizes.payload(bytes));
        self.log.event(now, "transport:packet_sent", |out| {
            out.push(format_args!(
                r#""header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":{bytes}}},"#
            ));
            out.push(format_args!(
                r#""frames":[{{"frame_type":"stream","stream_id":0,"offset":{offset},"length":{length}}}]"#
            ));
        })
    }

    /// Logs an acknowledgement. Returns true if it reports a mark.
    fn packet_received(&mut self, now: Instant, packet: &Packet, blocks: Option<&Blocks>) -> io::Result<bool> {
        let bytes = packet.bytes;
        if packet.role == Role::SynAck && self.unnumbered > 0 {
            let answered = self.unnumbered.saturating_sub(1);
            self.log.event(now, "transport:packet_received", |out| {
                out.push(format_args!(
                    r#""header":{{"packet_type":"initial","packet_number":0}},"raw":{{"length":{bytes}}},"#
                ));
                out.push(format_args!(r#""frames":[{{"frame_type":"ack","acked_ranges":[[{answered}]]}}]"#));
            })?;
            return Ok(false);
        }
        let number = self.received;
        self.received += 1;
        let mut marked = packet.flags.has(Flags::REPORTS_MARK);
        let frame = (packet.role == Role::AckFrame).then(|| blocks.map(AckFrame::decode)).flatten();
        let acked = match &frame {
            Some(frame) => {
                marked = frame.marked > self.marked;
                self.marked = frame.marked;
                self.sent.acknowledge_packets(frame)
            }
            None => self.sent.acknowledge_data(expects(packet.number), blocks),
        };
        self.log.event(now, "transport:packet_received", |out| {
            out.push(format_args!(
                r#""header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":{bytes}}},"frames":["#
            ));
            if !acked.is_empty() {
                out.push(format_args!(r#"{{"frame_type":"ack""#));
                if let Some(frame) = &frame {
                    out.push(format_args!(r#","ack_delay":{}"#, Decimal(ms(frame.delay))));
                    if frame.marked > 0 {
                        out.push(format_args!(r#","ce":{}"#, frame.marked));
                    }
                }
                out.push(format_args!(r#","acked_ranges":["#));
                ranges(out, &acked);
                out.push(format_args!("]}}"));
            }
            out.push(format_args!("]"));
        })?;
        Ok(marked)
    }

    /// Logs the packets that are newly lost.
    fn packets_lost(&mut self, now: Instant, sender: &Sender, by_timer: bool) -> io::Result<()> {
        let recovery = sender.recovery();
        let timed_out = sender.timeouts > self.timeouts;
        let trigger = match recovery.method() {
            _ if by_timer && timed_out => Some("pto_expired"),
            Retransmission::Rack | Retransmission::Quic if by_timer => Some("time_threshold"),
            // Found by either threshold.
            Retransmission::Rack | Retransmission::Quic => None,
            _ => Some("reordering_threshold"),
        };
        for Loss { number } in self.sent.lose(recovery) {
            self.log.event(now, "recovery:packet_lost", |out| {
                out.push(format_args!(r#""header":{{"packet_type":"1RTT","packet_number":{number}}}"#));
                if let Some(trigger) = trigger {
                    out.push(format_args!(r#","trigger":"{trigger}""#));
                }
            })?;
        }
        Ok(())
    }

    /// Logs the metrics and the state that have changed.
    fn update(&mut self, now: Instant, sender: &Sender, occasion: Occasion) -> io::Result<()> {
        let trigger = match occasion {
            _ if sender.timeouts > self.timeouts => Some("persistent_congestion"),
            Occasion::Acknowledged { marked: true } => Some("ECN"),
            _ => None,
        };
        self.timeouts = sender.timeouts;
        self.metrics.update(now, sender, trigger, &mut self.log)
    }
}
