//! Connections and their counts, as the kernel program lists them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use crate::daemon::kernel::interface::{Bytes as _, HostCounters, HostFlag, HostMode, HostReason, HostRecord};
use crate::daemon::kernel::law::{LawSignal, LoadableLaw};

/// State of a connection.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct FlowStatus {
    pub(crate) local: String,
    pub(crate) remote: String,
    /// Name of the law, as in the list of protocols.
    pub(crate) law: &'static str,
    pub(crate) mode: String,
    /// Values of the law's signals, which are 0 before the law has started.
    #[serde(flatten)]
    pub(crate) signals: BTreeMap<&'static str, f64>,
    /// Titles and formatted values of the signals for a table, in the law's order.
    #[serde(skip)]
    pub(crate) shown: Vec<(&'static str, String)>,
    pub(crate) rate_bps: u64,
    pub(crate) window_bytes: u64,
    pub(crate) rtt_us: u32,
    pub(crate) base_rtt_us: u32,
    pub(crate) fallback_reason: Option<String>,
    /// Reason of the fallback in a few words, for a table; `None` if the connection has not fallen back.
    #[serde(skip)]
    pub(crate) fallback_brief: Option<&'static str>,
    /// TCP's congestion window in packets.
    pub(crate) window_packets: u32,
    /// Value that this end echoes for received data, such as `echoed_price_s`; an average, or 0 without an echo.
    #[serde(flatten)]
    pub(crate) echoed: BTreeMap<String, f64>,
    pub(crate) echoes: u32,
    pub(crate) timeouts: u32,
    /// State of TCP, named as in `ss`.
    pub(crate) state: &'static str,
    /// Names of the flags that are set in the connection's state (`enum host_flag`).
    pub(crate) flags: Vec<&'static str>,
    /// Flags of the connection's state as bits, for a table.
    #[serde(skip)]
    pub(crate) flag_bits: u32,
    /// True if the `init()` of the present congestion control has run (TCP's `icsk_ca_initialized`).
    pub(crate) ca_initialized: bool,
    /// Number of calls of `cong_control()` without an earlier `init()`.
    pub(crate) controls_without_init: u32,
}

/// Counts of all connections since the programs' maps were created.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct CounterStatus {
    /// Number of connections that the law began to control.
    pub(crate) started: u64,
    /// Number of connections that received a router's value.
    pub(crate) priced: u64,
    /// Number of connections for which `cong_control()` ran without an earlier `init()`.
    pub(crate) control_without_init: u64,
    /// Number of connections that the kernel considers initialised, although `init` did not run.
    pub(crate) init_unrecorded: u64,
    /// Number of calls of the law for a socket without state. The socket is in another namespace or cgroup, or older
    /// than the programs.
    pub(crate) without_state: u64,
    /// Number of connections without state because the kernel had no memory.
    pub(crate) no_memory: u64,
    /// Number of connections that the kernel did not let fall back. The law's program runs Reno for them.
    pub(crate) fallback_refused: u64,
    /// Number of times that a host took what looked like a queue for a longer path.
    pub(crate) longer_paths: u64,
    /// Number of times that echoes arrived for data in flight and the kernel did not run the law.
    pub(crate) control_missed: u64,
    /// Number of connections that fell back, by reason.
    pub(crate) fallbacks: BTreeMap<String, u64>,
    /// Number of times that connections came back to the law, by the reason of the fallback.
    pub(crate) returns: BTreeMap<String, u64>,
}

impl CounterStatus {
    pub(crate) fn new(law: &LoadableLaw, counters: &HostCounters) -> Self {
        let named = |(n, count): (usize, &u64)| Some((reason(law, HostReason(n as u32))?, *count));
        let by_reason = |counts: &[u64]| counts.iter().enumerate().filter_map(named).collect();
        Self {
            started: counters.started,
            priced: counters.priced,
            control_without_init: counters.control_without_init,
            init_unrecorded: counters.init_unrecorded,
            without_state: counters.without_state,
            no_memory: counters.no_memory,
            fallback_refused: counters.fallback_refused,
            longer_paths: counters.longer_paths,
            control_missed: counters.control_missed,
            fallbacks: by_reason(&counters.fallbacks),
            returns: by_reason(&counters.returns),
        }
    }
}

impl CounterStatus {
    /// Adds the counts of another law.
    pub(crate) fn add(&mut self, other: &Self) {
        // Maps may hold any numbers.
        let add = |sum: &mut u64, n: u64| *sum = sum.saturating_add(n);
        add(&mut self.started, other.started);
        add(&mut self.priced, other.priced);
        add(&mut self.control_without_init, other.control_without_init);
        add(&mut self.init_unrecorded, other.init_unrecorded);
        add(&mut self.without_state, other.without_state);
        add(&mut self.no_memory, other.no_memory);
        add(&mut self.fallback_refused, other.fallback_refused);
        add(&mut self.longer_paths, other.longer_paths);
        add(&mut self.control_missed, other.control_missed);
        let maps = [(&mut self.fallbacks, &other.fallbacks), (&mut self.returns, &other.returns)];
        for (sums, counts) in maps {
            for (reason, count) in counts {
                add(sums.entry(reason.clone()).or_default(), *count);
            }
        }
    }
}

/// Names of the connection flags, in the order of their bits.
const FLAGS: [(HostFlag, &str); 19] = [
    (HostFlag::HOST_OPTION_SENT, "option sent"),
    (HostFlag::HOST_NEGOTIATED, "negotiated"),
    (HostFlag::HOST_ESTABLISHED, "established"),
    (HostFlag::HOST_LAW_ACTIVE, "law active"),
    (HostFlag::HOST_LAW_STARTED, "law started"),
    (HostFlag::HOST_PACED, "paced"),
    (HostFlag::HOST_ECHO_PENDING, "echo pending"),
    (HostFlag::HOST_ECHO_TURN, "echo turn"),
    (HostFlag::HOST_WAS_PRICED, "was priced"),
    (HostFlag::HOST_LAW_SELECTED, "law selected"),
    (HostFlag::HOST_INIT_UNSEEN, "init unseen"),
    (HostFlag::HOST_INIT_RAN, "init ran"),
    (HostFlag::HOST_PEER_STARTS, "peer starts"),
    (HostFlag::HOST_RECOVERING, "recovering"),
    (HostFlag::HOST_QUICK_SYN, "quick SYN"),
    (HostFlag::HOST_RENO, "Reno"),
    (HostFlag::HOST_DEFERRED, "deferred"),
    (HostFlag::HOST_PROBATION, "probation"),
    (HostFlag::HOST_ASKED, "asked"),
];

/// Names of TCP's states, indexed by their numbers (include/net/tcp_states.h).
const STATES: [&str; 14] = [
    "unknown",
    "established",
    "syn-sent",
    "syn-received",
    "fin-wait-1",
    "fin-wait-2",
    "time-wait",
    "closed",
    "close-wait",
    "last-ack",
    "listening",
    "closing",
    "new-syn-received",
    "bound",
];

/// Names of the connection modes.
pub(super) const MODES: [(HostMode, &str); 7] = [
    (HostMode::HOST_MODE_ASKING, "asking"),
    (HostMode::HOST_MODE_RISING, "rising"),
    (HostMode::HOST_MODE_PRICED, PRICED),
    (HostMode::HOST_MODE_RESTARTING, "restarting"),
    (HostMode::HOST_MODE_RECEIVING, "receiving"),
    (HostMode::HOST_MODE_CLOSING, "closing"),
    (HostMode::HOST_MODE_FALLEN_BACK, "fallen back"),
];

/// Name of the mode in which routers' values control a connection.
pub(crate) const PRICED: &str = "priced";
/// Text for a missing value in a table.
pub(crate) const NONE: &str = "\u{2013}";

/// Parses the records of the iterator program (`struct host_record`).
pub(crate) fn parse_records(law: &'static LoadableLaw, bytes: &[u8]) -> Result<Vec<FlowStatus>> {
    let size = size_of::<HostRecord>();
    ensure!(bytes.len() % size == 0, "the list of connections is from another version of waterfilld");
    bytes.chunks_exact(size).filter_map(HostRecord::from_prefix).map(|record| status(law, &record)).collect()
}

/// Converts a record to the state of a connection.
fn status(law: &'static LoadableLaw, record: &HostRecord) -> Result<FlowStatus> {
    let has = |flag: HostFlag| record.flags.0 & flag.0 != 0;
    let (mode, name) = MODES
        .iter()
        .find(|(mode, _)| mode.0 == record.mode)
        .context("the list of connections is from another version of waterfilld")?;
    let reason_of = if *mode == HostMode::HOST_MODE_FALLEN_BACK { record.reason } else { HostReason::HOST_NO_REASON };
    let received = record.signals.first().is_some_and(|raw| *raw != 0);
    let values: Vec<(&LawSignal, f64)> =
        law.source.iter().zip(record.signals).map(|(signal, raw)| (signal, signal.value(raw))).collect();
    let show = |(signal, value): &(&LawSignal, f64)| if received { signal.show(*value) } else { NONE.into() };
    Ok(FlowStatus {
        local: address(record.local, record.local_port),
        remote: address(record.remote, record.remote_port),
        mode: (*name).into(),
        law: law.name,
        signals: values.iter().map(|(signal, value)| (signal.name, *value)).collect(),
        shown: values.iter().map(|pair| (pair.0.title, show(pair))).collect(),
        rate_bps: record.rate,
        window_bytes: record.window,
        rtt_us: record.rtt,
        base_rtt_us: record.base_rtt,
        fallback_reason: reason(law, reason_of),
        fallback_brief: brief_reason(reason_of),
        window_packets: record.window_packets,
        echoed: [(format!("echoed_{}", law.echoed.name), law.echoed.value(record.echoed))].into(),
        echoes: record.echoes,
        timeouts: record.timeouts,
        state: usize::try_from(record.state).ok().and_then(|n| STATES.get(n)).copied().unwrap_or(STATES[0]),
        flags: FLAGS.iter().filter(|(flag, _)| has(*flag)).map(|(_, name)| *name).collect(),
        flag_bits: record.flags.0,
        ca_initialized: record.ca_initialized != 0,
        controls_without_init: record.controls_without_init,
    })
}

/// Formats an address and port of a record.
pub(super) fn address(bytes: [u8; 16], port: u16) -> String {
    let ip = Ipv6Addr::from(bytes);
    SocketAddr::new(ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4), port).to_string()
}

/// Describes the reason for a fallback. Returns `None` for a number that is no reason.
pub(super) fn reason(law: &LoadableLaw, reason: HostReason) -> Option<String> {
    Some(match reason {
        HostReason::HOST_PEER_UNSUPPORTED => "the peer did not answer the option".into(),
        HostReason::HOST_SYN_DROPPED => "a SYN with the option got no answer".into(),
        HostReason::HOST_OPTION_BLOCKED => "earlier connections to this address lost the option".into(),
        HostReason::HOST_NO_ROUTER => format!("no router on the path writes {}", law.words.value),
        HostReason::HOST_NO_ECHO => "no echo arrives".into(),
        HostReason::HOST_STANDING_QUEUE => format!("the queue does not drain while {}", law.words.unmoved),
        HostReason::HOST_HEAVY_LOSS => format!("packets are lost while {}", law.words.unmoved),
        HostReason::HOST_SIGNED => "the connection signs its segments (TCP-AO or MD5)".into(),
        HostReason::HOST_OUTSIDE => "in a cgroup, a namespace or with a peer for which the law is not loaded".into(),
        _ => return None,
    })
}

/// Describes the reason for a fallback in a few words, for a table. Returns `None` if `reason` is not a known reason.
pub(super) fn brief_reason(reason: HostReason) -> Option<&'static str> {
    Some(match reason {
        HostReason::HOST_PEER_UNSUPPORTED => "no peer",
        HostReason::HOST_SYN_DROPPED => "SYN lost",
        HostReason::HOST_OPTION_BLOCKED => "blocked",
        HostReason::HOST_NO_ROUTER => "no router",
        HostReason::HOST_NO_ECHO => "no echo",
        HostReason::HOST_STANDING_QUEUE => "queue",
        HostReason::HOST_HEAVY_LOSS => "losses",
        HostReason::HOST_SIGNED => "signed",
        HostReason::HOST_OUTSIDE => "outside",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(flags: &[HostFlag]) -> HostRecord {
        let mut local = Ipv6Addr::LOCALHOST.octets();
        local[15] = 9;
        HostRecord {
            local,
            remote: std::net::Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped().octets(),
            local_port: 80,
            remote_port: 1024,
            rate: 5,
            window: 6,
            signals: [2 << 18, u64::from_ne_bytes((-(1_i64 << 34)).to_ne_bytes()), 0, 0],
            echoed: 1 << 58,
            steady: 1,
            flags: HostFlag(flags.iter().map(|flag| flag.0).sum()),
            reason: HostReason::HOST_NO_ECHO,
            rtt: 7,
            base_rtt: 8,
            window_packets: 9,
            echoes: 10,
            timeouts: 11,
            state: 8,
            ca_initialized: 1,
            controls_without_init: 12,
            mode: HostMode::HOST_MODE_PRICED.0,
            ..HostRecord::default()
        }
    }

    fn maxnet() -> &'static LoadableLaw {
        crate::daemon::kernel::laws::find("maxnet").unwrap()
    }

    const SELECTED: HostFlag = HostFlag::HOST_LAW_SELECTED;
    const ACTIVE: HostFlag = HostFlag::HOST_LAW_ACTIVE;
    const STARTED: HostFlag = HostFlag::HOST_LAW_STARTED;
    const WAS_PRICED: HostFlag = HostFlag::HOST_WAS_PRICED;

    #[test]
    fn every_value_of_a_record_is_shown() {
        let [flow] = &parse_records(maxnet(), record(&[SELECTED, ACTIVE, STARTED, WAS_PRICED]).as_bytes()).unwrap()[..]
        else {
            panic!("one record")
        };
        assert_eq!((flow.local.as_str(), flow.remote.as_str()), ("[::9]:80", "10.0.0.1:1024"));
        assert_eq!(
            (flow.mode.as_str(), flow.signals["price_s"], flow.signals["xi"], flow.echoed["echoed_price_s"]),
            ("priced", 2.0, -1.0, 1.0)
        );
        assert_eq!((flow.rate_bps, flow.window_bytes, flow.rtt_us, flow.base_rtt_us), (5, 6, 7, 8));
        assert_eq!((flow.window_packets, flow.echoes, flow.timeouts), (9, 10, 11));
        assert_eq!(flow.fallback_reason, None);
        assert_eq!((flow.state, flow.ca_initialized, flow.controls_without_init), ("close-wait", true, 12));
        assert_eq!(flow.flags, ["law active", "law started", "was priced", "law selected"]);
    }

    #[test]
    fn every_bit_of_the_flags_has_a_name() {
        let all: u32 = FLAGS.iter().map(|(flag, _)| flag.0).sum();
        assert_eq!(all, (1 << FLAGS.len()) - 1);
        let [flow] =
            &parse_records(maxnet(), HostRecord { flags: HostFlag(all), ..record(&[]) }.as_bytes()).unwrap()[..]
        else {
            panic!("one record")
        };
        assert_eq!(flow.flags.len(), FLAGS.len());
    }

    #[test]
    fn every_reason_has_its_counter() {
        let mut counters = HostCounters { started: 1, priced: 2, control_without_init: 3, ..Default::default() };
        (counters.init_unrecorded, counters.without_state, counters.no_memory) = (4, 5, 6);
        (counters.fallback_refused, counters.longer_paths, counters.control_missed) = (7, 8, 9);
        for (n, count) in counters.fallbacks.iter_mut().enumerate() {
            *count = 10 * n as u64;
        }
        for (n, count) in counters.returns.iter_mut().enumerate() {
            *count = 100 * n as u64;
        }
        let found = CounterStatus::new(maxnet(), &counters);
        assert_eq!((found.started, found.priced, found.control_without_init), (1, 2, 3));
        assert_eq!((found.init_unrecorded, found.without_state, found.no_memory), (4, 5, 6));
        assert_eq!((found.fallback_refused, found.longer_paths, found.control_missed), (7, 8, 9));
        // All but "no reason" have a text, and each text its own count.
        assert_eq!(found.fallbacks.len(), counters.fallbacks.len() - 1);
        assert_eq!(found.returns["no echo arrives"], 100 * u64::from(HostReason::HOST_NO_ECHO.0));
        assert_eq!(
            found.fallbacks[&reason(maxnet(), HostReason::HOST_NO_ECHO).unwrap()],
            10 * u64::from(HostReason::HOST_NO_ECHO.0)
        );
    }

    #[test]
    fn a_connection_that_fell_back_has_a_reason() {
        let of = |mode: HostMode| status(maxnet(), &HostRecord { mode: mode.0, ..record(&[SELECTED]) }).unwrap();
        let flow = of(HostMode::HOST_MODE_FALLEN_BACK);
        assert_eq!((flow.mode.as_str(), flow.fallback_brief), ("fallen back", Some("no echo")));
        assert_eq!(flow.fallback_reason.as_deref(), Some("no echo arrives"));
        assert_eq!(of(HostMode::HOST_MODE_CLOSING).fallback_reason, None);
    }

    #[test]
    fn a_signal_that_was_never_received_is_a_dash_and_zero_in_json() {
        let none = HostRecord { signals: [0; 4], ..record(&[SELECTED, ACTIVE]) };
        let flow = status(maxnet(), &none).unwrap();
        assert_eq!(flow.shown, [("price", "\u{2013}".to_owned()), ("xi", "\u{2013}".to_owned())]);
        assert_eq!(flow.signals["price_s"], 0.0);
    }

    #[test]
    fn every_reason_has_two_texts_and_names_the_laws_own_value() {
        for law in crate::daemon::kernel::laws::all() {
            for n in 1..HostReason::HOST_REASONS.0 {
                let text = reason(law, HostReason(n)).unwrap();
                assert!(brief_reason(HostReason(n)).unwrap().len() <= 9, "{text}");
                let prices = law.source[0].name == "price_s";
                assert!(prices || !text.contains("price"), "{}: {text}", law.name);
            }
        }
        let rcp = crate::daemon::kernel::laws::find("rcp").unwrap();
        let text = reason(rcp, HostReason::HOST_STANDING_QUEUE).unwrap();
        assert_eq!(text, "the queue does not drain while the rate does not fall");
    }

    #[test]
    fn records_of_another_size_are_refused() {
        assert!(parse_records(maxnet(), &[0; size_of::<HostRecord>() + 8]).is_err());
        assert!(parse_records(maxnet(), &[]).unwrap().is_empty());
        // An older version has zeros there.
        assert!(parse_records(maxnet(), HostRecord { mode: 0, ..record(&[]) }.as_bytes()).is_err());
    }
}
