//! Changes of a sender's metrics and of its state.

use std::io;

use waterfill_laws::protocol::Probe;
use waterfill_laws::units::{Duration, Instant};

use super::writer::{Decimal, Log, Record, ms};
use crate::sender::{Sender, Snapshot};

/// Metrics of a sender as last logged.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    last: Snapshot,
    signals: Signals,
    state: Option<&'static str>,
    /// Signals of the law now. Kept for its memory.
    now: Signals,
}

/// Signals of a law: name and value.
#[derive(Debug, Default)]
struct Signals(Vec<(String, f64)>);

impl Probe for Signals {
    fn record(&mut self, signal: &str, value: f64) {
        if value.is_finite() {
            self.0.push((signal.to_owned(), value));
        }
    }
}

impl Signals {
    fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(signal, _)| signal == name).map(|&(_, value)| value)
    }
}

impl Metrics {
    /// Logs what has changed, with the cause of a change of state.
    pub(super) fn update(
        &mut self,
        now: Instant,
        sender: &Sender,
        trigger: Option<&str>,
        log: &mut Log,
    ) -> io::Result<()> {
        let metrics = sender.snapshot();
        self.now.0.clear();
        sender.observe(&mut self.now);
        if metrics != self.last || self.now.0 != self.signals.0 {
            log.event(now, "recovery:metrics_updated", |out| self.write(out, &metrics))?;
            self.last = metrics;
        }
        let state = state(sender, &self.now);
        std::mem::swap(&mut self.now, &mut self.signals);
        if state == self.state {
            return Ok(());
        }
        let old = std::mem::replace(&mut self.state, state);
        let Some(new) = state else { return Ok(()) };
        log.event(now, "recovery:congestion_state_updated", |out| {
            if let Some(old) = old {
                out.push(format_args!(r#""old":"{old}","#));
            }
            out.push(format_args!(r#""new":"{new}""#));
            if let Some(trigger) = trigger.filter(|_| new == RECOVERY) {
                out.push(format_args!(r#","trigger":"{trigger}""#));
            }
        })
    }

    /// Adds the metrics that differ from the last ones.
    fn write(&self, out: &mut Record, now: &Snapshot) {
        let mut fields = Fields { out, comma: "" };
        let before = &self.last;
        fields.time("smoothed_rtt", now.smoothed_rtt, before.smoothed_rtt);
        fields.time("rtt_variance", now.rtt_variance, before.rtt_variance);
        fields.time("latest_rtt", now.latest_rtt, before.latest_rtt);
        fields.time("min_rtt", now.min_rtt, before.min_rtt);
        fields.number("congestion_window", now.window_bytes, before.window_bytes);
        fields.number("pacing_rate", now.pacing_bps, before.pacing_bps);
        fields.number("bytes_in_flight", Some(now.in_flight_bytes), Some(before.in_flight_bytes));
        fields.number("packets_in_flight", Some(now.in_flight), Some(before.in_flight));
        for (name, value) in &self.now.0 {
            let changed = self.signals.get(name) != Some(*value);
            match name.as_str() {
                _ if !changed => {}
                "cwnd" => {} // congestion_window
                "ssthresh" => fields.add("ssthresh", format_args!("{}", (value * now.packet_bytes) as u64)),
                name => fields.add(name, format_args!("{value}")),
            }
        }
    }
}

/// Fields of a JSON object.
struct Fields<'a> {
    out: &'a mut Record,
    comma: &'static str,
}

impl Fields<'_> {
    fn add(&mut self, name: &str, value: std::fmt::Arguments<'_>) {
        self.out.push(format_args!(r#"{}"{name}":{value}"#, self.comma));
        self.comma = ",";
    }

    fn time(&mut self, name: &str, now: Option<Duration>, before: Option<Duration>) {
        if let Some(time) = now.filter(|_| now != before) {
            self.add(name, format_args!("{}", Decimal(ms(time))));
        }
    }

    fn number(&mut self, name: &str, now: Option<u64>, before: Option<u64>) {
        if let Some(number) = now.filter(|_| now != before) {
            self.add(name, format_args!("{number}"));
        }
    }
}

const RECOVERY: &str = "recovery";

/// Returns the state of congestion control, by the names of draft-ietf-quic-qlog-quic-events-03 (congestion_state_updated);
/// `None` before the connection is open. Only laws of TCP's kind have a slow start.
fn state(sender: &Sender, law: &Signals) -> Option<&'static str> {
    if !sender.is_open() {
        return None;
    }
    let starts = |cwnd: f64| law.get("ssthresh").is_none_or(|ssthresh| cwnd < ssthresh);
    Some(match law.get("cwnd") {
        _ if sender.recovery().is_recovering() || sender.recovery().is_repairing() => RECOVERY,
        _ if sender.is_app_limited() => "application_limited",
        Some(cwnd) if starts(cwnd) => "slow_start",
        _ => "congestion_avoidance",
    })
}
