//! Tests of BBR: equations checked by hand, and calls of the source on a simulated path.

use crate::protocol::{Ack, Connection, Event, PacketKind, Sending};
use crate::protocols::tcp::delivery::Note;
use crate::units::{Duration, Instant, Volume};

use super::model::{Aggregation, MaxFilter, inflight, send_quantum};
use super::params::Params;
use super::source::{GAINS, Seen, Source, State};
use std::collections::VecDeque;

use crate::params::Params as _;
use crate::protocol::Source as _;
use crate::testing::connection;

const PACKET: f64 = 1500.0;

fn source(params: &Params, connection: &Connection) -> Box<Source> {
    Box::new(Source::new(params, connection))
}

/// Parameters of the draft, without Linux's variant.
fn draft() -> Params {
    Params { linux: false, ..Params::default() }
}

fn packets(n: f64) -> Volume {
    Volume::from_bytes(n * PACKET)
}

/// Source on a path of 1000 packets/s and 100 ms, which delivers its packets and queues the excess.
struct Path {
    bbr: Box<Source>,
    now: Duration,
    sent: VecDeque<(Note, Duration)>,
    base_rtt: Duration,
}

impl Path {
    fn new() -> Self {
        let mut bbr = source(&draft(), &connection());
        let base_rtt = Duration::from_millis(100);
        let now = Duration::from_millis(1000);
        bbr.on_ack(&Ack { kind: PacketKind::Syn, ..Ack::new(Instant::ZERO + now, Note::default(), base_rtt) });
        let mut path = Self { bbr, now, sent: VecDeque::new(), base_rtt };
        path.fill(true);
        path
    }

    /// Sends as many packets as the window allows, at once. Pacing is ignored.
    fn fill(&mut self, more: bool) {
        let window = self.bbr.cwnd as usize;
        while more && self.sent.len() < window {
            let now = Instant::ZERO + self.now;
            let in_flight = packets(self.sent.len() as f64);
            let note = self.bbr.stamp(&Sending { in_flight, ..Sending::new(now, PacketKind::Data, packets(1.0)) });
            self.sent.push_back((note, self.now));
        }
    }

    /// Delivers the next packet, a millisecond after the previous packet and not before the RTT is over.
    fn step(&mut self) {
        let (note, sent) = self.sent.pop_front().expect("something is in flight");
        self.now = (self.now + Duration::from_millis(1)).max(sent + self.base_rtt);
        self.receive(note, sent, 0.0);
        self.fill(true);
    }

    fn receive(&mut self, note: Note, sent: Duration, lost: f64) {
        let in_flight = packets(self.sent.len() as f64 - lost);
        let ack = Ack {
            acked: packets(1.0),
            in_flight,
            base_rtt: self.base_rtt,
            ..Ack::new(Instant::ZERO + self.now, note, self.now - sent)
        };
        self.bbr.on_ack(&ack);
    }

    fn steps_until(&mut self, most: u32, what: impl Fn(&Source) -> bool) -> u32 {
        (0..most)
            .find(|_| {
                self.step();
                what(&self.bbr)
            })
            .unwrap_or(most)
    }
}

/// `[bbr-00:BtlBw]` The bandwidth estimate is the maximum of ten rounds.
#[test]
fn bbr_00_btlbw_is_the_largest_of_ten_rounds() {
    let mut filter = MaxFilter::default();
    filter.update(1, 100.0);
    filter.update(2, 80.0);
    filter.update(2, 90.0);
    filter.update(10, 50.0);
    assert_eq!(filter.max, 100.0);
    filter.update(11, 40.0);
    assert_eq!(filter.max, 90.0, "round 1 is ten back");
    filter.update(30, 10.0);
    assert_eq!(filter.max, 10.0);
}

/// `[bbr-00:Inflight]` A gain of 2 allows 203 packets in flight at 1000 packets/s and 100 ms.
#[test]
fn bbr_00_inflight_by_hand() {
    // 1000 packets/s × 100 ms twice, and three packets.
    assert!((inflight(2.0, 1000.0, Duration::from_millis(100), 1.0) - 203.0).abs() < 1e-9);
    assert_eq!(source(&draft(), &connection()).inflight(2.0), 10.0, "the first window");
}

/// `[bbr-00:send_quantum]` A send_quantum covers a millisecond, with one or two packets at least and 64 kB at most.
#[test]
fn bbr_00_send_quantum_by_hand() {
    assert_eq!(send_quantum(8333.0, 1500.0), 8.0, "100 Mbit/s: 8.3");
    assert_eq!(send_quantum(90.0, 1500.0), 1.0, "1.1 Mbit/s");
    assert_eq!(send_quantum(833.0, 1500.0), 2.0, "10 Mbit/s: 0.8, and two at least");
    assert_eq!(send_quantum(833_333.0, 1500.0), 43.0, "10 Gbit/s: 64 kB");
}

/// `[bbr-00:RTprop]` After an RTT of 100 ms at 1 s, 120 ms does not count for ten seconds, and 90 ms counts at once.
#[test]
fn bbr_00_rtprop_is_the_smallest_of_ten_seconds() {
    let mut bbr = source(&draft(), &connection());
    let mut at = |s: f64, ms: u64| {
        let expired = bbr.update_rtprop(Instant::from_secs(s), Some(Duration::from_millis(ms)));
        (expired, bbr.rtprop.unwrap().0)
    };
    assert_eq!(at(1.0, 100), (false, Duration::from_millis(100)));
    assert_eq!(at(11.0, 120), (false, Duration::from_millis(100)));
    assert_eq!(at(11.001, 120), (true, Duration::from_millis(120)));
    assert_eq!(at(12.0, 90), (false, Duration::from_millis(90)));
}

/// `[bbr-00:full_pipe]` The pipe is full after the third round with less than a quarter more bandwidth. 125 after 100
/// packets/s is a quarter more, and 150 after 125 is not.
#[test]
fn bbr_00_the_pipe_is_full_after_three_rounds_without_a_quarter_more() {
    let mut bbr = source(&draft(), &connection());
    let mut round = |n, rate, round_start, app_limited| {
        bbr.bandwidth.update(n, rate);
        bbr.round_start = round_start;
        bbr.check_full_pipe(app_limited);
        (bbr.full_bandwidth, bbr.full_count, bbr.filled_pipe)
    };
    assert_eq!(round(1, 100.0, true, false), (100.0, 0, false));
    assert_eq!(round(2, 125.0, true, false), (125.0, 0, false));
    assert_eq!(round(3, 150.0, true, false), (125.0, 1, false));
    assert_eq!(round(3, 150.0, false, false), (125.0, 1, false), "the same round");
    assert_eq!(round(4, 150.0, true, true), (125.0, 1, false), "the application had no more");
    assert_eq!(round(5, 155.0, true, false), (125.0, 2, false));
    assert_eq!(round(6, 156.0, true, false), (125.0, 3, true));
}

/// `[bbr-00:pacing_rate]` The pacing rate is the gain times 1000 packets/s. Before the pipe is full, the rate does not
/// fall.
#[test]
fn bbr_00_pacing_rate_by_hand() {
    let mut bbr = source(&draft(), &connection());
    bbr.bandwidth.update(1, 1000.0);
    bbr.pacing_rate = 500.0;
    let mut paced = |filled_pipe, gain| {
        bbr.filled_pipe = filled_pipe;
        bbr.set_pacing_rate(gain);
        bbr.pacing_rate
    };
    assert_eq!([paced(false, 2.0), paced(false, 0.75), paced(true, 0.75)], [2000.0, 2000.0, 750.0]);
}

/// `[bbr-00:cwnd]` With 1000 packets/s, 100 ms and a gain of 2, the window grows by the acknowledged packets up to 203.
/// It is at least 4.
#[test]
fn bbr_00_cwnd_by_hand() {
    let mut bbr = source(&draft(), &connection());
    bbr.bandwidth.update(1, 1000.0);
    bbr.rtprop = Some((Duration::from_millis(100), Instant::ZERO));
    (bbr.filled_pipe, bbr.cwnd_gain, bbr.state) = (true, 2.0, State::ProbeBandwidth);
    let mut after = |cwnd, acked| {
        bbr.cwnd = cwnd;
        let now = Instant::from_secs(1.0);
        bbr.set_cwnd(&Seen { now, acked, lost: 0.0, in_flight: 0.0, prior_in_flight: 0.0 });
        bbr.cwnd
    };
    assert_eq!([after(100.0, 2.0), after(202.0, 5.0), after(300.0, 1.0), after(1.0, 1.0)], [102.0, 203.0, 203.0, 4.0]);
}

#[test]
fn aggregation_is_what_comes_beyond_the_bandwidth() {
    let mut aggregation = Aggregation::default();
    let mut at = |ms: f64, acked: f64, round_start: bool| {
        aggregation.update(Instant::from_secs(ms / 1e3), acked, round_start, 1000.0, 50.0);
        aggregation.allowance(1000.0)
    };
    // One packet per millisecond, as the bandwidth says: the acknowledgement itself.
    assert_eq!((0..5).map(|n| at(f64::from(n), 1.0, false)).fold(0.0, f64::max), 1.0);
    // Silence, then six at a time, and four half a millisecond later: ten, less a half.
    at(10.0, 6.0, false);
    assert!((at(10.5, 4.0, false) - 9.5).abs() < 1e-9);
    // It is valid for five to ten rounds.
    for n in 0..9 {
        assert!((at(20.0 + f64::from(n), 1.0, true) - 9.5).abs() < 1e-9, "round {n}");
    }
    assert!(at(40.0, 1.0, true) < 2.0);
    // No more than the window, nor than comes in 100 ms.
    assert_eq!(at(50.0, 80.0, false), 50.0);
    assert_eq!(aggregation.allowance(100.0), 10.0);
}

#[test]
fn linux_paces_below_the_bandwidth_and_keeps_more_in_flight() {
    let mut bbr = source(&Params::default(), &connection());
    bbr.bandwidth.update(1, 10_000.0);
    bbr.rtprop = Some((Duration::from_millis(10), Instant::ZERO));
    bbr.filled_pipe = true;
    bbr.set_pacing_rate(1.0);
    assert!((bbr.pacing_rate - 9900.0).abs() < 1e-6);
    // 120 Mbit/s: 9.9 packets in a millisecond. 100 + 3·9, rounded up to even.
    assert_eq!(bbr.inflight(1.0), 128.0);
    bbr.state = State::ProbeBandwidth;
    bbr.phase = 0;
    bbr.pacing_gain = 1.25;
    // 125 + 27, and 2 while probing; 9 are about to leave.
    assert_eq!(bbr.inflight(1.25), 154.0);
    let now = Instant::from_secs(5.0);
    let seen = Seen { now, acked: 1.0, lost: 0.0, in_flight: 140.0, prior_in_flight: 145.0 };
    assert!(bbr.is_phase_over(&seen));
    assert!(!bbr.is_phase_over(&Seen { prior_in_flight: 144.0, ..seen }));
}

/// `[bbr-00:init]` The first pacing rate is the initial window per RTT, times the gain of Startup.
#[test]
fn the_first_rate_is_the_first_window_in_one_rtt() {
    let path = Path::new();
    assert!((path.bbr.pacing_rate - 2.0 / std::f64::consts::LN_2 * 10.0 / 0.1).abs() < 1e-6);
    let limit = path.bbr.limit();
    assert_eq!(limit.window, Some(packets(10.0)));
    assert!((limit.pacing.unwrap().as_bps() - path.bbr.pacing_rate * 12_000.0).abs() < 1e-3);
}

#[test]
fn startup_finds_the_bandwidth_then_drains_and_probes() {
    let mut path = Path::new();
    path.steps_until(10_000, |bbr| bbr.state != State::Startup);
    assert_eq!((path.bbr.state, path.bbr.filled_pipe), (State::Drain, true));
    assert!((path.bbr.bandwidth.max - 1000.0).abs() < 20.0, "{}", path.bbr.bandwidth.max);
    assert!((path.bbr.pacing_gain - std::f64::consts::LN_2 / 2.0).abs() < 1e-12);
    // A window that fills at once cannot drain; here the application falls silent.
    while path.bbr.state == State::Drain {
        let (note, sent) = path.sent.pop_front().unwrap();
        path.now += Duration::from_millis(1);
        path.receive(note, sent, 0.0);
    }
    assert_eq!(path.bbr.state, State::ProbeBandwidth);
    assert!(path.sent.len() as f64 <= path.bbr.inflight(1.0) && path.sent.len() > 95);
    assert_eq!(path.bbr.cwnd_gain, 2.0);
    assert_ne!(path.bbr.phase, 1, "never begun in the phase that drains");
}

#[test]
fn a_cycle_is_eight_phases_of_one_rtt() {
    let mut path = Path::new();
    path.steps_until(10_000, |bbr| bbr.state == State::Drain);
    path.bbr.enter_probe_bandwidth(Instant::ZERO + path.now);
    path.steps_until(1000, |bbr| bbr.phase == 0);
    let mut gains = Vec::new();
    for _ in 0..8 {
        gains.push(path.bbr.pacing_gain);
        let phase = path.bbr.phase;
        let took = path.steps_until(1000, |bbr| bbr.phase != phase);
        assert!((99..=102).contains(&took), "a phase of {took} ms");
    }
    assert_eq!(gains, GAINS);
}

#[test]
fn probing_goes_on_until_more_is_in_flight_or_lost() {
    let mut bbr = Path::new().bbr;
    bbr.bandwidth.update(1, 1000.0);
    bbr.pacing_gain = 1.25;
    let now = Instant::from_secs(5.0);
    let seen = Seen { now, acked: 1.0, lost: 0.0, in_flight: 100.0, prior_in_flight: 101.0 };
    assert!(!bbr.is_phase_over(&seen), "Inflight(1.25) is 128 packets");
    assert!(bbr.is_phase_over(&Seen { prior_in_flight: 128.0, ..seen }));
    assert!(bbr.is_phase_over(&Seen { lost: 1.0, ..seen }));
    bbr.pacing_gain = 0.75;
    bbr.phase_began = now;
    assert!(bbr.is_phase_over(&seen), "it has drained");
    assert!(!bbr.is_phase_over(&Seen { prior_in_flight: 104.0, ..seen }));
}

#[test]
fn random_phases_differ_by_seed_and_are_none_the_second() {
    let mut seen = [0; 8];
    for seed in 0..700 {
        let mut bbr = source(&draft(), &Connection { seed, ..connection() });
        bbr.enter_probe_bandwidth(Instant::ZERO);
        seen[bbr.phase] += 1;
    }
    assert_eq!(seen[1], 0);
    // 700 draws of seven: 100 each, and five standard deviations of √(700·6/49) = 9.3.
    assert!(seen.iter().enumerate().all(|(i, &n)| i == 1 || (54..146).contains(&n)), "{seen:?}");
}

#[test]
fn after_ten_seconds_four_packets_for_200_ms_and_one_rtt() {
    let mut path = Path::new();
    path.steps_until(10_000, |bbr| bbr.state == State::Drain);
    path.bbr.enter_probe_bandwidth(Instant::ZERO + path.now);
    path.base_rtt = Duration::from_millis(110); // 100 ms is not seen again
    let seen = path.bbr.rtprop.unwrap().1;
    path.steps_until(20_000, |bbr| bbr.state == State::ProbeRtt);
    let unseen = (Instant::ZERO + path.now).since(seen);
    assert!((10_001..=10_002).contains(&(unseen.as_ps() / 1_000_000_000)), "{unseen:?}"); // a step is a millisecond
    let (before, entered) = (path.bbr.prior_cwnd, path.now);
    assert!(before > 190.0);
    path.steps_until(1000, |bbr| bbr.cwnd == 4.0 && bbr.probe_rtt_until.is_some());
    assert!(path.sent.len() <= 5);
    path.steps_until(1000, |bbr| bbr.state != State::ProbeRtt);
    assert_eq!(path.bbr.state, State::ProbeBandwidth);
    assert!(path.now - entered >= Duration::from_millis(200 + 110));
    assert_eq!(path.bbr.rtprop.map(|(rtprop, _)| rtprop), Some(path.base_rtt));
    assert!(path.bbr.cwnd >= before.min(path.bbr.inflight(2.0)) - 1.0, "the window is back: {}", path.bbr.cwnd);
    assert!((path.bbr.bandwidth.max - 1000.0).abs() < 20.0, "four packets in flight say nothing of the bandwidth");
}

#[test]
fn recovery_conserves_packets_for_a_round_and_comes_back() {
    let mut path = Path::new();
    path.steps_until(10_000, |bbr| bbr.state == State::Drain);
    path.bbr.enter_probe_bandwidth(Instant::ZERO + path.now);
    path.steps_until(1000, |bbr| bbr.phase == 2);
    let (before, rate) = (path.bbr.cwnd, path.bbr.pacing_rate);
    let (note, sent) = path.sent.pop_front().unwrap();
    path.now += Duration::from_millis(1);
    path.sent.pop_back(); // lost
    path.receive(note, sent, 0.0);
    path.bbr.on_event(Instant::ZERO + path.now, Event::Loss);
    assert_eq!(path.bbr.cwnd, path.sent.len() as f64 + 1.0, "one for one");
    assert_eq!(path.bbr.pacing_rate, rate, "a loss does not change the model");
    path.fill(true);
    path.step();
    assert!(path.bbr.packet_conservation);
    path.steps_until(1000, |bbr| !bbr.packet_conservation);
    path.bbr.on_event(Instant::ZERO + path.now, Event::Recovered);
    assert!(path.bbr.cwnd >= before - 1.0, "{} of {before}", path.bbr.cwnd);
    path.bbr.on_event(Instant::ZERO + path.now, Event::Timeout);
    assert_eq!(path.bbr.cwnd, 1.0);
    path.bbr.on_event(Instant::ZERO + path.now, Event::Recovered);
    assert!(path.bbr.cwnd >= before - 1.0);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let params = Params { cwnd_gain: 0.5, ..Params::default() };
    assert_eq!(params.validate().unwrap_err().0, "cwnd_gain: must be a number from 1 to 100, got 0.5");
}
