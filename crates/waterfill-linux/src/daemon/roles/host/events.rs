//! Fallbacks and returns of connections, as the kernel programs record them (`bpf/events.h`).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, Object};
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::status::{address, brief_reason, reason};
use super::{EVENT_COUNT, EVENTS};
use crate::daemon::kernel::interface::{Bytes as _, HostEvent, HostEventKind, HostEvents, HostReason};
use crate::daemon::kernel::law::LoadableLaw;
use crate::daemon::kernel::object;
use crate::daemon::kernel::pins::Pins;
use crate::daemon::options::quantity::show_time;

/// Number of events that the kernel keeps.
const KEPT: u64 = HostEvents::HOST_EVENTS.0 as u64;
/// RTT of a round without a sample.
const NO_RTT: u32 = u32::MAX;

/// Reader of a law's events. The kernel does not know its readers, so there may be several.
#[derive(Debug)]
pub(crate) struct EventReader {
    law: &'static LoadableLaw,
    count: MapHandle,
    ring: MapHandle,
    /// Number of the next event to read.
    next: u64,
    /// Number of events that were overwritten before they were read.
    pub(super) lost: u64,
}

/// Events since the last reading, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) events: Vec<FlowEvent>,
    /// Number of events that were overwritten before this reading.
    pub(crate) lost: u64,
}

impl EventReader {
    /// Reads events of a loaded host from now on.
    pub(super) fn from_now(law: &'static LoadableLaw, object: &Object) -> Result<Self> {
        let handle = |name| Ok::<_, anyhow::Error>(MapHandle::try_from(&object::map(object, name)?)?);
        let mut reader = Self { law, count: handle("event_count")?, ring: handle("events")?, next: 1, lost: 0 };
        reader.next = reader.last()? + 1;
        Ok(reader)
    }

    /// Reads the events of a pinned host, from the oldest one on. Returns `None` if nothing is pinned.
    pub(crate) fn pinned(law: &'static LoadableLaw, pins: &Pins) -> Result<Option<Self>> {
        let open = |name| {
            let Some(path) = pins.path(name).filter(|path| path.exists()) else { return Ok(None) };
            let map = MapHandle::from_pinned_path(&path).with_context(|| format!("cannot open {}", path.display()));
            map.map(Some)
        };
        let (Some(count), Some(ring)) = (open(EVENT_COUNT)?, open(EVENTS)?) else { return Ok(None) };
        anyhow::ensure!(
            ring.value_size() as usize == size_of::<HostEvent>() && u64::from(ring.max_entries()) == KEPT,
            "the events are from another version of waterfilld; restart the daemon"
        );
        Ok(Some(Self { law, count, ring, next: 1, lost: 0 }))
    }

    /// Returns the number of the last event.
    fn last(&self) -> Result<u64> {
        let bytes = self.count.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?.context("no count of events")?;
        Ok(u64::from_ne_bytes(bytes[..].try_into().context("no count of events")?))
    }

    /// Returns the events since the last call.
    pub(crate) fn read(&mut self) -> Result<Reading> {
        let record = |slot: u32| {
            let bytes = self.ring.lookup(&slot.to_ne_bytes(), MapFlags::ANY)?.context("no events")?;
            HostEvent::from_prefix(&bytes).context("the events are from another version of waterfilld")
        };
        let last = self.last()?;
        let (records, lost) = take(&mut self.next, last, record)?;
        self.lost += lost;
        let offset_s = realtime_offset_s()?;
        let events = records.iter().map(|record| FlowEvent::of(self.law, record, offset_s)).collect();
        Ok(Reading { events, lost })
    }
}

/// Reads the records from number `next` to `last`, as far as they are complete, and advances `next`. Returns them with
/// the number of those that were overwritten.
fn take(next: &mut u64, last: u64, read: impl Fn(u32) -> Result<HostEvent>) -> Result<(Vec<HostEvent>, u64)> {
    let oldest = last.saturating_sub(KEPT - 1).max(1);
    let mut lost = oldest.saturating_sub(*next);
    *next = oldest.max(*next);
    let mut records = Vec::new();
    while *next <= last {
        let slot = (*next % KEPT) as u32;
        // A program may write while the kernel copies: then the number has changed afterwards.
        let (record, after) = (read(slot)?, read(slot)?.number);
        if record.number < *next && after <= *next {
            break; // not complete yet
        }
        if (record.number, after) != (*next, *next) {
            lost += 1;
        } else if record.kind != HostEventKind::HOST_EVENT_NONE.0 {
            records.push(record);
        }
        *next += 1;
    }
    Ok((records, lost))
}

/// Returns the time since 1970 minus the time of CLOCK_MONOTONIC, in seconds.
fn realtime_offset_s() -> Result<f64> {
    let monotonic = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).context("cannot read the clock")?);
    let realtime = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(realtime.as_secs_f64() - monotonic.as_secs_f64())
}

/// A fallback of a connection, or its return to the law. `events --json` prints it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FlowEvent {
    /// Number of the event, counted by law since the maps were created.
    pub(crate) number: u64,
    /// Kind of event: "fallback" or "return".
    pub(crate) event: &'static str,
    /// Time since 1970, in seconds.
    pub(crate) time_s: f64,
    pub(crate) law: &'static str,
    pub(crate) local: String,
    pub(crate) remote: String,
    /// Cookie of the network namespace.
    pub(crate) netns_cookie: u64,
    /// Reason of the fallback, also of a return.
    pub(crate) reason: String,
    /// Reason in a few words, for a table.
    #[serde(skip)]
    pub(crate) brief: &'static str,
    /// True if the connection was never under the law, as its handshake decided.
    #[serde(skip)]
    pub(crate) of_handshake: bool,
    /// Rate that the law allowed, or `None` if no router had answered.
    pub(crate) rate_bps: Option<u64>,
    /// Value of the law's first signal, as `signals` of a connection; `None` if no router had answered.
    pub(crate) signal: Option<f64>,
    /// TCP's window before the event, in packets.
    pub(crate) window_packets: u32,
    /// Smoothed RTT.
    pub(crate) rtt_us: u32,
    pub(crate) base_rtt_us: u32,
    pub(crate) evidence: Evidence,
}

/// What the host's programs had counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Evidence {
    /// A queue that does not drain, or losses.
    Bottleneck {
        /// Time since the evidence began, in seconds.
        span_s: f64,
        /// Smallest RTT of the first round of evidence, and of the last one if it had a sample.
        first_rtt_us: u32,
        last_rtt_us: Option<u32>,
        /// RTT before the window was reduced as a probe, and the smallest one with the reduced window.
        probed_rtt_us: Option<u32>,
        drained_rtt_us: Option<u32>,
        /// Packets in the last round.
        delivered: u32,
        lost: u32,
        /// Rounds with heavy losses.
        loss_rounds: u32,
    },
    /// Echoes that did not arrive, or that carried no value.
    Echoes {
        /// RTTs in which data were acknowledged, and those since the last echo with a value.
        rounds: u32,
        silent_rounds: u32,
        echoes: u32,
    },
    /// Answers to the requests of a connection that had fallen back.
    Answers {
        span_s: f64,
        requests: u32,
        answers: u32,
        /// Packets delivered while it asked.
        delivered: u32,
        /// Fallbacks and failed attempts so far.
        failures: u32,
    },
    /// The handshake, or where the connection is.
    None {},
}

impl FlowEvent {
    /// Converts a record. `offset_s` is the time since 1970 at the origin of the kernel's clock.
    fn of(law: &'static LoadableLaw, record: &HostEvent, offset_s: f64) -> Self {
        let why = HostReason(record.reason);
        let returns = record.kind == HostEventKind::HOST_EVENT_RETURN.0;
        let answered = record.rate != 0;
        Self {
            number: record.number,
            event: if returns { "return" } else { "fallback" },
            time_s: record.time_ns as f64 * 1e-9 + offset_s,
            law: law.name,
            local: address(record.local, record.local_port),
            remote: address(record.remote, record.remote_port),
            netns_cookie: record.netns,
            reason: reason(law, why).unwrap_or_else(|| format!("reason {}", record.reason)),
            brief: brief_reason(why).unwrap_or("unknown"),
            of_handshake: !(HostReason::HOST_NO_ROUTER.0..=HostReason::HOST_HEAVY_LOSS.0).contains(&record.reason),
            rate_bps: answered.then_some(record.rate),
            signal: law.source.first().filter(|_| answered).map(|signal| signal.value(record.signals[0])),
            window_packets: record.window,
            rtt_us: record.rtt,
            base_rtt_us: record.base_rtt,
            evidence: Evidence::of(record, why, returns),
        }
    }

    /// Describes the evidence in a few words, or returns an empty text where there is none.
    pub(crate) fn describe_evidence(&self) -> String {
        let time = |us: u32| show_time(f64::from(us) * 1e-6);
        match self.evidence {
            Evidence::Bottleneck { span_s, lost, delivered, loss_rounds, .. } if self.brief == "losses" => {
                let rounds =
                    if loss_rounds > 1 { format!(", {loss_rounds} rounds with losses") } else { String::new() };
                format!("{lost} of {} packets lost{rounds} in {}", lost + delivered, show_time(span_s))
            }
            Evidence::Bottleneck { probed_rtt_us: Some(probed), drained_rtt_us: Some(drained), .. } => {
                format!(
                    "RTT {}, {} with a smaller window, base {}",
                    time(probed),
                    time(drained),
                    time(self.base_rtt_us)
                )
            }
            Evidence::Bottleneck { span_s, first_rtt_us, last_rtt_us, .. } => {
                let last = last_rtt_us.map_or_else(|| "none".into(), time);
                let (first, base) = (time(first_rtt_us), time(self.base_rtt_us));
                format!("RTT {first}, then {last}, base {base}, in {}", show_time(span_s))
            }
            Evidence::Echoes { silent_rounds, echoes, .. } if self.brief == "no echo" => {
                format!("{silent_rounds} RTTs without an echo after {echoes} echoes")
            }
            Evidence::Echoes { rounds, echoes, .. } => format!("{rounds} RTTs with {echoes} echoes"),
            Evidence::Answers { span_s, requests, answers, .. } => {
                format!("{answers} answers to {requests} requests in {}", show_time(span_s))
            }
            Evidence::None {} => String::new(),
        }
    }

    /// Logs the event. Handshakes are logged at the debug level only, because a host may open many connections to hosts
    /// without the option.
    pub(super) fn log(&self) {
        let Self { law, local, remote, reason, event, .. } = self;
        let evidence = match self.describe_evidence() {
            text if text.is_empty() => text,
            text => format!(" ({text})"),
        };
        if *event == "return" {
            tracing::info!(event, law, local, remote, "{local} to {remote} came back to the law{evidence}");
        } else if self.of_handshake {
            tracing::debug!(event, law, local, remote, "{local} to {remote} fell back: {reason}");
        } else {
            tracing::info!(event, law, local, remote, "{local} to {remote} fell back: {reason}{evidence}");
        }
    }
}

impl Evidence {
    fn of(record: &HostEvent, why: HostReason, returns: bool) -> Self {
        let span_s = record.span as f64 * 1e-6;
        let probed = record.probed_rtt != 0 && ![0, NO_RTT].contains(&record.drained_rtt);
        match why {
            _ if returns => Self::Answers {
                span_s,
                requests: record.requests,
                answers: record.heard,
                delivered: record.delivered,
                failures: record.failures,
            },
            HostReason::HOST_STANDING_QUEUE | HostReason::HOST_HEAVY_LOSS => Self::Bottleneck {
                span_s,
                first_rtt_us: record.first_rtt,
                last_rtt_us: (record.last_rtt != NO_RTT).then_some(record.last_rtt),
                probed_rtt_us: probed.then_some(record.probed_rtt),
                drained_rtt_us: probed.then_some(record.drained_rtt),
                delivered: record.delivered,
                lost: record.lost,
                loss_rounds: record.loss_rounds,
            },
            HostReason::HOST_NO_ROUTER | HostReason::HOST_NO_ECHO => {
                Self::Echoes { rounds: record.rounds, silent_rounds: record.silent_rounds, echoes: record.echoes }
            }
            _ => Self::None {},
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::kernel::laws::find;

    fn record(number: u64) -> HostEvent {
        HostEvent { number, kind: HostEventKind::HOST_EVENT_FALLBACK.0, ..HostEvent::default() }
    }

    /// Returns the records of a ring into which events up to `last` were written.
    fn ring(last: u64) -> Vec<HostEvent> {
        let mut ring = vec![HostEvent::default(); KEPT as usize];
        for number in 1..=last {
            ring[(number % KEPT) as usize] = record(number);
        }
        ring
    }

    fn numbers(next: &mut u64, last: u64, ring: &[HostEvent]) -> (Vec<u64>, u64) {
        let (records, lost) = take(next, last, |slot| Ok(ring[slot as usize])).unwrap();
        (records.iter().map(|record| record.number).collect(), lost)
    }

    #[test]
    fn events_are_read_once_and_overwritten_ones_are_counted() {
        let mut next = 1;
        assert_eq!(numbers(&mut next, 3, &ring(3)), (vec![1, 2, 3], 0));
        assert_eq!(numbers(&mut next, 3, &ring(3)), (vec![], 0));
        let last = 5 + KEPT;
        let (read, lost) = numbers(&mut next, last, &ring(last));
        assert_eq!((read.len() as u64, read[0], lost), (KEPT, 6, 2), "4 and 5 were overwritten");
    }

    #[test]
    fn an_event_that_is_being_written_is_read_later() {
        let (mut next, mut records) = (1, ring(3));
        records[2] = HostEvent::default();
        assert_eq!(numbers(&mut next, 3, &records), (vec![1], 0));
        records[2] = HostEvent { kind: HostEventKind::HOST_EVENT_NONE.0, ..record(2) };
        assert_eq!(numbers(&mut next, 3, &records), (vec![3], 0), "what did not happen is skipped");
        // Overwritten while it was read.
        let turn = std::cell::Cell::new(0);
        let read = |_| Ok(record(4 + KEPT * u64::from(turn.replace(1) == 1)));
        let (records, lost) = take(&mut next, 4, read).unwrap();
        assert_eq!((records.len(), lost, next), (0, 1, 5));
    }

    #[test]
    fn evidence_is_what_the_reason_rests_on() {
        let law = find("maxnet").unwrap();
        let of = |why: HostReason, change: fn(&mut HostEvent)| {
            let mut event = HostEvent { reason: why.0, base_rtt: 1000, span: 500_000, ..record(1) };
            change(&mut event);
            FlowEvent::of(law, &event, 0.0).describe_evidence()
        };
        let queue = |e: &mut HostEvent| (e.first_rtt, e.last_rtt, e.drained_rtt) = (84_000, 85_000, NO_RTT);
        assert_eq!(of(HostReason::HOST_STANDING_QUEUE, queue), "RTT 84 ms, then 85 ms, base 1 ms, in 500 ms");
        let probe = |e: &mut HostEvent| (e.probed_rtt, e.drained_rtt) = (84_000, 20_000);
        let text = "RTT 84 ms, 20 ms with a smaller window, base 1 ms";
        assert_eq!(of(HostReason::HOST_STANDING_QUEUE, probe), text);
        let losses = |e: &mut HostEvent| (e.lost, e.delivered, e.loss_rounds) = (12, 88, 3);
        assert_eq!(of(HostReason::HOST_HEAVY_LOSS, losses), "12 of 100 packets lost, 3 rounds with losses in 500 ms");
        let echoes = |e: &mut HostEvent| (e.rounds, e.silent_rounds, e.echoes) = (9, 4, 30);
        assert_eq!(of(HostReason::HOST_NO_ECHO, echoes), "4 RTTs without an echo after 30 echoes");
        assert_eq!(of(HostReason::HOST_NO_ROUTER, echoes), "9 RTTs with 30 echoes");
        let back = |e: &mut HostEvent| (e.kind, e.requests, e.heard) = (HostEventKind::HOST_EVENT_RETURN.0, 4, 3);
        assert_eq!(of(HostReason::HOST_NO_ROUTER, back), "3 answers to 4 requests in 500 ms");
        assert_eq!(of(HostReason::HOST_SIGNED, echoes), "");
    }
}
