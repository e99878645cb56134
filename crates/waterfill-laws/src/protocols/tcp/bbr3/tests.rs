//! Tests of BBRv3: equations checked by hand, and calls of the source on a simulated path.

use std::collections::VecDeque;

use crate::protocol::{Ack, Connection, Event, PacketKind, Sending, Source as _};
use crate::protocols::tcp::delivery::Note;
use crate::testing::connection;
use crate::units::{Duration, Instant, Volume};

use super::filters::{Departure, Departures, MaxBandwidth};
use super::model::inflight_at_loss;
use super::params::Params;
use super::source::{AckPhase, Sample, Source, State};

const RTT: Duration = Duration::from_millis(100);

fn packets(n: f64) -> Volume {
    Volume::from_bytes(n * 1500.0)
}

fn ms(t: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(t)
}

fn source() -> Box<Source> {
    Box::new(Source::new(&Params::default(), &connection()))
}

/// Returns a source in `state` that knows its path: 1000 packets/s and 100 ms, a BDP of 100 packets.
fn knowing(state: State) -> Box<Source> {
    let mut bbr = source();
    bbr.max_bw.update(1000.0);
    (bbr.bw, bbr.min_rtt, bbr.cwnd, bbr.full_bw_reached) = (1000.0, RTT, 200.0, true);
    bbr.enter(state);
    bbr
}

/// Path of 1000 packets/s and 100 ms. It delivers what is sent and queues the excess.
struct Path {
    bbr: Box<Source>,
    now: Duration,
    sent: VecDeque<(Note, Duration)>,
    next_send: Duration,
    base_rtt: Duration,
    per_packet: Duration,
    /// Time between two packets that the application writes; `None` if it has always more.
    writes: Option<Duration>,
    written_at: Duration,
}

impl Path {
    fn new() -> Self {
        let now = Duration::from_millis(1000);
        let mut bbr = source();
        bbr.on_ack(&Ack { kind: PacketKind::Syn, ..Ack::new(Instant::ZERO + now, Note::default(), RTT) });
        Self {
            bbr,
            now,
            sent: VecDeque::new(),
            next_send: now,
            base_rtt: RTT,
            per_packet: Duration::from_millis(1),
            writes: None,
            written_at: now,
        }
    }

    /// The same without ProbeRTT, which would end other states.
    fn without_probe_rtt() -> Self {
        let mut path = Self::new();
        path.bbr.params.probe_rtt_interval = Duration::from_millis(1_000_000);
        path
    }

    /// Sends what window, pacing and application allow before `until`.
    fn send_until(&mut self, until: Duration) {
        while (self.sent.len() as f64) < self.bbr.cwnd.floor() {
            let at = self.next_send.max(self.now).max(if self.writes.is_some() { self.written_at } else { self.now });
            if at >= until {
                return;
            }
            let in_flight = packets(self.sent.len() as f64);
            let more = self.writes.is_none_or(|spacing| self.written_at + spacing <= at);
            let sending = Sending {
                in_flight,
                app_limited: !more,
                ..Sending::new(Instant::ZERO + at, PacketKind::Data, packets(1.0))
            };
            let note = self.bbr.stamp(&sending);
            self.sent.push_back((note, at));
            self.next_send = at + Duration::from_secs(1.0 / self.bbr.pacing_rate);
            self.written_at = self.written_at.max(at) + self.writes.unwrap_or(Duration::ZERO);
        }
    }

    /// Delivers the next packet: when its RTT is over, and its transmission after the packet before.
    fn step(&mut self) {
        self.send_until(self.now + Duration::from_secs(1e-9));
        let next =
            |path: &Self| path.sent.front().map(|(_, sent)| (*sent + path.base_rtt).max(path.now + path.per_packet));
        while next(self).is_none() {
            let at = self.next_send.max(self.written_at) + Duration::from_secs(1e-9);
            self.send_until(at);
        }
        let arrives = next(self).expect("something is in flight");
        self.send_until(arrives);
        let (note, sent) = self.sent.pop_front().expect("something is in flight");
        self.now = arrives;
        self.acknowledge(note, sent);
    }

    fn acknowledge(&mut self, note: Note, sent: Duration) {
        let ack = Ack {
            acked: packets(1.0),
            in_flight: packets(self.sent.len() as f64),
            base_rtt: RTT,
            ..Ack::new(Instant::ZERO + self.now, note, self.now - sent)
        };
        self.bbr.on_ack(&ack);
    }

    /// Loses the oldest packet in flight: the host finds it lost now.
    fn lose(&mut self) {
        let (_, sent) = self.sent.pop_front().expect("something is in flight");
        self.bbr.on_lost(Instant::ZERO + self.now, Instant::ZERO + sent);
    }

    #[track_caller]
    fn until(&mut self, state: State) {
        for _ in 0..200_000 {
            if self.bbr.state == state {
                return;
            }
            self.step();
        }
        panic!("{:?} instead of {state:?}", self.bbr.state);
    }

    fn rounds_in(&mut self, state: State) -> u64 {
        let from = self.bbr.round_count;
        while self.bbr.state == state && self.bbr.round_count < from + 200 {
            self.step();
        }
        self.bbr.round_count - from
    }
}

/// `[bbr-06:§5.5.5, §5.5.6]` The maximum is of this cycle and the one before, and a cycle without samples does not end.
#[test]
fn bbr_06_max_bw_is_of_two_cycles() {
    let mut filter = MaxBandwidth::default();
    assert_eq!([filter.update(100.0), filter.update(80.0)], [100.0, 100.0]);
    filter.advance();
    assert_eq!(filter.update(60.0), 100.0);
    filter.advance();
    assert_eq!(filter.max(), 60.0);
    filter.advance();
    assert_eq!(filter.max(), 60.0, "no sample since");
}

/// A departure is found by its time, and forgotten an RTT before an arrival.
#[test]
fn departures_are_kept_until_they_cannot_be_lost() {
    let mut departures = Departures::default();
    for t in [10, 20, 20, 30] {
        departures.push(Departure { at: ms(t), in_flight: t as f64, ..Departure::default() });
    }
    assert_eq!(departures.at(ms(20)).map(|d| d.in_flight), Some(20.0));
    assert_eq!(departures.at(ms(25)), None);
    departures.forget(ms(40), Duration::from_millis(20));
    assert_eq!(departures.oldest().map(|d| d.at), Some(ms(20)));
}

/// `[bbr-06:§5.6.2]` The pacing rate is 1 % below the gain times the bandwidth, and only rises until the pipe is full.
#[test]
fn bbr_06_pacing_rate_by_hand() {
    let mut bbr = knowing(State::Startup);
    bbr.full_bw_reached = false;
    bbr.pacing_rate = 500.0;
    let mut paced = |full, gain| {
        bbr.full_bw_reached = full;
        bbr.set_pacing_rate(gain);
        bbr.pacing_rate
    };
    assert_eq!([paced(false, 2.0), paced(false, 0.9), paced(true, 0.9)], [1980.0, 1980.0, 891.0]);
    let first = source();
    assert!((first.pacing_rate - 2.77 * 10.0 / 1e-3).abs() < 1e-9, "the first window in a millisecond");
}

/// `[bbr-06:§5.6.3]` A send quantum covers a millisecond, at least two packets and at most 64 kB.
#[test]
fn bbr_06_send_quantum_by_hand() {
    let mut bbr = source();
    let mut quantum = |rate| {
        bbr.pacing_rate = rate;
        bbr.set_send_quantum();
        bbr.send_quantum
    };
    assert_eq!([quantum(833.0), quantum(8000.0), quantum(833_333.0)], [2.0, 8.0, 64e3 / 1500.0]);
}

/// `[bbr-06:§5.6.4.2]` 100 packets of BDP at a gain of 2, with 7 of aggregation; two more in UP; 3 quanta at least.
#[test]
fn bbr_06_max_inflight_by_hand() {
    let mut bbr = knowing(State::Down);
    bbr.extra_acked = 7.0;
    assert_eq!((bbr.max_inflight(), bbr.inflight(1.0)), (207.0, 100.0));
    bbr.enter(State::Up);
    assert_eq!((bbr.max_inflight(), bbr.inflight(1.0)), (234.0, 102.0));
    bbr.send_quantum = 43.0;
    assert_eq!(bbr.inflight(1.0), 131.0);
    (bbr.bw, bbr.send_quantum) = (1.0, 1.0);
    assert_eq!(knowing(State::Down).quantization_budget(0.1), 6.0, "three quanta of two packets");
    bbr.enter(State::Down);
    assert_eq!(bbr.inflight(1.0), 4.0);
}

/// `[bbr-06:§5.6.4.6, §5.6.4.7]` The window grows by what is acknowledged, up to max_inflight and the state's bound.
#[test]
fn bbr_06_cwnd_by_hand() {
    let mut bbr = knowing(State::Down);
    let mut after = |state, longterm, shortterm, cwnd| {
        bbr.enter(state);
        (bbr.inflight_longterm, bbr.inflight_shortterm, bbr.cwnd) = (longterm, shortterm, cwnd);
        bbr.set_cwnd(&Sample { newly_acked: 2.0, ..Sample::default() });
        bbr.cwnd
    };
    let none = f64::INFINITY;
    assert_eq!([after(State::Down, none, none, 100.0), after(State::Down, none, none, 300.0)], [102.0, 200.0]);
    assert_eq!([after(State::Down, 120.0, none, 150.0), after(State::Cruise, 120.0, none, 150.0)], [120.0, 102.0]);
    assert_eq!([after(State::Drain, 120.0, none, 150.0), after(State::Drain, 120.0, 90.0, 150.0)], [152.0, 90.0]);
    assert_eq!([after(State::ProbeRtt, none, none, 150.0), after(State::Up, 2.0, 1.0, 150.0)], [50.0, 4.0]);
}

/// `[bbr-06:§5.3.3.9]` Headroom is 15 % of the bound, one packet at least, and leaves four.
#[test]
fn bbr_06_inflight_with_headroom_by_hand() {
    let mut bbr = source();
    let mut allowed = |longterm| {
        bbr.inflight_longterm = longterm;
        bbr.inflight_with_headroom()
    };
    assert_eq!([allowed(100.0), allowed(6.0), allowed(4.5), allowed(f64::INFINITY)], [85.0, 5.0, 4.0, f64::INFINITY]);
}

/// `[bbr-06:§5.5.10.2]` With 100 in flight and 5 lost, 4 of 99 were lost before: 2 % was passed at 96.94 in flight.
#[test]
fn bbr_06_inflight_at_loss_by_hand() {
    // (99 + p)·0.02 = 4 + p: p = (1.98 − 4)/0.98 = −2.0612.
    assert!((inflight_at_loss(100.0, 5.0, 0.02) - 96.938_775_5).abs() < 1e-6);
    assert_eq!(inflight_at_loss(51.0, 2.0, 0.02), 50.0);
}

/// `[bbr-06:§5.5.10.2]` A lost packet of a probe sets inflight_longterm once and ends UP; 2 % or less does not.
#[test]
fn bbr_06_a_probe_that_loses_too_much_sets_the_long_term_bound() {
    let mut bbr = knowing(State::Up);
    bbr.is_bw_probe_sample = true;
    let packet = Departure { at: ms(1), in_flight: 150.0, lost: 0.0, app_limited: false };
    bbr.lost = 3.0;
    bbr.handle_lost_packet(ms(100), &packet);
    assert_eq!((bbr.state, bbr.inflight_longterm), (State::Up, f64::INFINITY), "3 of 150 is 2 %");
    bbr.lost = 4.0;
    bbr.handle_lost_packet(ms(100), &packet);
    assert_eq!((bbr.state, bbr.ack_phase), (State::Down, AckPhase::ProbeStopping));
    // 149 + (2.98 − 3)/0.98
    assert!((bbr.inflight_longterm - 148.979_591_8).abs() < 1e-6, "{}", bbr.inflight_longterm);
    bbr.lost = 50.0;
    bbr.handle_lost_packet(ms(100), &packet);
    assert!((bbr.inflight_longterm - 148.979_591_8).abs() < 1e-6, "one response per probe");
    // Not below 0.7 of the BDP, and not by an application's pause.
    let mut bbr = knowing(State::Refill);
    (bbr.is_bw_probe_sample, bbr.lost) = (true, 10.0);
    bbr.handle_lost_packet(ms(100), &Departure { in_flight: 20.0, ..packet });
    assert_eq!((bbr.state, bbr.inflight_longterm), (State::Refill, 70.0));
    let mut bbr = knowing(State::Up);
    (bbr.is_bw_probe_sample, bbr.lost) = (true, 10.0);
    bbr.handle_lost_packet(ms(100), &Departure { app_limited: true, ..packet });
    assert_eq!((bbr.state, bbr.inflight_longterm), (State::Down, f64::INFINITY));
}

/// `[bbr-06:§5.5.10.3]` A round with losses lowers the short-term bounds by 0.7 at most, from max_bw and cwnd.
#[test]
fn bbr_06_short_term_bounds_by_hand() {
    let mut bbr = knowing(State::Cruise);
    (bbr.loss_round_start, bbr.is_loss_in_round) = (true, true);
    (bbr.bw_latest, bbr.inflight_latest) = (600.0, 150.0);
    bbr.update_congestion_signals(&Sample::default());
    assert_eq!((bbr.bw_shortterm, bbr.inflight_shortterm, bbr.is_loss_in_round), (700.0, 150.0, false));
    bbr.is_loss_in_round = true;
    bbr.update_congestion_signals(&Sample::default());
    assert_eq!((bbr.bw_shortterm, bbr.inflight_shortterm), (600.0, 150.0));
    // While probing, losses do not lower them.
    let mut bbr = knowing(State::Refill);
    (bbr.loss_round_start, bbr.is_loss_in_round) = (true, true);
    bbr.update_congestion_signals(&Sample::default());
    assert_eq!(bbr.bw_shortterm, f64::INFINITY);
}

/// `[bbr-06:§5.5.9]` Ten packets at once after 5 ms of silence are five more than the bandwidth explains.
#[test]
fn bbr_06_extra_acked_by_hand() {
    let mut bbr = knowing(State::Cruise);
    let mut at = |t, newly_acked| {
        bbr.update_ack_aggregation(&Sample { now: ms(t), newly_acked, ..Sample::default() });
        bbr.extra_acked
    };
    // The interval starts anew with each acknowledgement that is not early.
    assert_eq!([at(100, 1.0), at(101, 1.0)], [1.0, 1.0]);
    assert_eq!([at(106, 10.0), at(108, 3.0)], [10.0, 11.0], "10 at once, then 13 in 2 ms");
    bbr.round_count = 9;
    let mut at = |t| {
        bbr.update_ack_aggregation(&Sample { now: ms(t), newly_acked: 1.0, ..Sample::default() });
        bbr.extra_acked
    };
    assert_eq!(at(200), 11.0);
    bbr.round_count = 10;
    bbr.update_ack_aggregation(&Sample { now: ms(300), newly_acked: 1.0, ..Sample::default() });
    assert_eq!(bbr.extra_acked, 1.0, "ten rounds later");
    (bbr.full_bw_reached, bbr.round_count) = (false, 11);
    bbr.update_ack_aggregation(&Sample { now: ms(400), newly_acked: 1.0, ..Sample::default() });
    assert_eq!(bbr.extra_acked, 1.0);
}

/// `[bbr-06:§5.3.4.3]` min_rtt is valid for ten seconds, and the minimum that schedules ProbeRTT for five.
#[test]
fn bbr_06_min_rtt_by_hand() {
    let mut bbr = source();
    let mut at = |s: f64, rtt: u64| {
        let rtt = Some(Duration::from_millis(rtt));
        bbr.update_min_rtt(&Sample { now: Instant::from_secs(s), rtt, ..Sample::default() });
        (bbr.probe_rtt_expired, bbr.min_rtt)
    };
    assert_eq!(at(1.0, 100), (false, RTT));
    assert_eq!(at(6.0, 120), (false, RTT));
    assert_eq!(at(6.001, 120), (true, RTT), "5 s without less");
    assert_eq!(at(11.0, 110), (false, RTT));
    assert_eq!(at(11.001, 130), (false, Duration::from_millis(110)), "10 s without less");
    assert_eq!(at(12.0, 90), (false, Duration::from_millis(90)));
}

/// `[bbr-06:§5.3.3.8.3]` A probe follows after 2 to 3 s, or after as many rounds as the BDP has packets, 63 at most.
#[test]
fn bbr_06_time_to_probe_by_hand() {
    let mut waits = Vec::new();
    let mut odd = 0;
    for seed in 0..400 {
        let mut bbr = Source::new(&Params::default(), &Connection { seed, ..connection() });
        bbr.pick_probe_wait();
        waits.push(bbr.bw_probe_wait.as_secs());
        odd += bbr.rounds_since_probe_up;
    }
    let mean = waits.iter().sum::<f64>() / 400.0;
    assert!(waits.iter().all(|wait| (2.0..3.0).contains(wait)) && (mean - 2.5).abs() < 0.07, "{mean}"); // 5 σ = 0.072
    assert!((150..250).contains(&odd), "{odd} of 400 are 1"); // 5 σ = 50
    let mut bbr = knowing(State::Cruise);
    (bbr.cycle_stamp, bbr.bw_probe_wait) = (ms(0), Duration::from_millis(2500));
    let mut due = |t, rounds, bw| {
        (bbr.rounds_since_probe_up, bbr.bw) = (rounds, bw);
        bbr.is_time_to_probe_bw(ms(t))
    };
    assert_eq!([due(2500, 62, 1000.0), due(2501, 62, 1000.0), due(100, 63, 1000.0)], [false, true, true]);
    assert_eq!([due(100, 29, 300.0), due(100, 30, 300.0)], [false, true]);
}

/// `[bbr-06:§5.3.3.9]` In UP the bound grows by 1, 2, 4 … packets per round, while the window uses it fully.
#[test]
fn bbr_06_the_long_term_bound_grows_twice_as_fast_each_round() {
    let mut bbr = knowing(State::Up);
    let acked = |newly_acked| Sample { newly_acked, ..Sample::default() };
    bbr.inflight_longterm = 128.0;
    let mut grown = Vec::new();
    for _ in 0..4 {
        let before = bbr.inflight_longterm;
        (bbr.cwnd_limited, bbr.round_start) = ([true, false], true);
        for _ in 0..before as u32 {
            bbr.cwnd = bbr.inflight_longterm;
            bbr.probe_inflight_longterm_upward(&acked(1.0));
            bbr.round_start = false;
        }
        grown.push(bbr.inflight_longterm - before);
    }
    assert_eq!(grown, [1.0, 2.0, 4.0, 8.0]);
    bbr.cwnd_limited = [false; 2];
    bbr.probe_inflight_longterm_upward(&acked(1000.0));
    assert_eq!(bbr.inflight_longterm, 143.0, "the window is not used");
}

/// `[bbr-06:§5.2.1, §5.6.1]` A connection begins in Startup with its initial window and no bounds; each state has its gains.
#[test]
fn bbr_06_initial_state_and_gains_by_hand() {
    let mut bbr = source();
    assert_eq!((bbr.state, bbr.cwnd, bbr.send_quantum, bbr.full_bw_reached), (State::Startup, 10.0, 2.0, false));
    assert_eq!([bbr.bw_shortterm, bbr.inflight_longterm, bbr.inflight_shortterm], [f64::INFINITY; 3]);
    let gains = [State::Startup, State::Drain, State::Down, State::Cruise, State::Refill, State::Up, State::ProbeRtt]
        .map(|state| {
            bbr.enter(state);
            (bbr.pacing_gain, bbr.cwnd_gain)
        });
    assert_eq!(gains, [(2.77, 2.0), (0.5, 2.0), (0.9, 2.0), (1.0, 2.0), (1.0, 2.0), (1.25, 2.25), (1.0, 0.5)]);
}

/// `[bbr-06:§4.1.2.3]` What was in flight when a packet departed has arrived with it. What was lost since then counts, and
/// an earlier loss does not.
#[test]
fn bbr_06_rate_sample_by_hand() {
    let mut path = Path::without_probe_rtt();
    (0..20).for_each(|_| path.step());
    path.lose();
    path.until(State::Cruise);
    let (note, sent) = path.sent.pop_front().expect("something is in flight");
    path.lose();
    path.now = (sent + path.base_rtt).max(path.now + path.per_packet);
    let in_flight = packets(path.sent.len() as f64);
    let ack = Ack {
        acked: packets(1.0),
        in_flight,
        base_rtt: RTT,
        ..Ack::new(Instant::ZERO + path.now, note, path.now - sent)
    };
    let rs = path.bbr.generate_rate_sample(&ack);
    assert_eq!((rs.newly_acked, rs.lost, rs.rtt), (1.0, 1.0, Some(path.now - sent)));
    assert_eq!(rs.delivered, rs.tx_in_flight);
    assert!((rs.delivery_rate - 1000.0).abs() < 20.0, "{}", rs.delivery_rate);
}

/// `[bbr-06:§5.2.3, §5.5.1]` A round lasts an RTT, and the bandwidth is the smaller one of both estimates.
#[test]
fn bbr_06_rounds_and_bandwidth_by_hand() {
    let mut path = Path::without_probe_rtt();
    path.until(State::Cruise);
    let (from, first) = (path.now, path.bbr.round_count);
    while path.bbr.round_count < first + 10 {
        path.step();
    }
    let took_s = (path.now - from).as_secs();
    assert!((0.9..1.15).contains(&took_s), "{took_s}");
    path.bbr.bw_shortterm = 700.0;
    path.step();
    assert_eq!(path.bbr.bw, 700.0);
}

/// `[bbr-06:§5.3.1.1, §5.3.1.2, §5.3.2]` A.1, A.3 and A.8: Startup ends after three rounds without growth, Drain at a BDP in flight, DOWN at headroom.
#[test]
fn startup_finds_the_bandwidth_then_drains_and_cruises() {
    let mut path = Path::without_probe_rtt();
    path.until(State::Drain);
    assert_eq!((path.bbr.full_bw_now, path.bbr.full_bw_count, path.bbr.pacing_gain), (true, 3, 0.5));
    assert!((path.bbr.max_bw.max() - 1000.0).abs() < 20.0, "{}", path.bbr.max_bw.max());
    path.until(State::Cruise); // the acknowledgement that ends Drain also ends DOWN
    assert!(path.bbr.in_flight <= path.bbr.inflight(1.0) && path.bbr.in_flight > 90.0, "{}", path.bbr.in_flight);
    path.until(State::Refill);
    assert_eq!(path.rounds_in(State::Refill), 1);
    assert_eq!((path.bbr.state, path.bbr.pacing_gain, path.bbr.cwnd_gain), (State::Up, 1.25, 2.25));
    // A.5: three rounds without a quarter more. The first is that of the entry.
    let rounds = path.rounds_in(State::Up);
    assert!((3..=4).contains(&rounds), "{rounds} rounds in UP");
    assert_eq!((path.bbr.state, path.bbr.pacing_gain, path.bbr.cwnd_gain), (State::Down, 0.9, 2.0));
    assert!(path.bbr.in_flight > path.bbr.inflight(1.0));
    path.until(State::Cruise);
    assert!(path.bbr.in_flight <= path.bbr.inflight(1.0), "{}", path.bbr.in_flight);
}

/// A.4: with a tenth less bandwidth than found, a BDP in flight is not reached, and Drain ends after its rounds.
#[test]
fn drain_ends_after_three_rounds_whatever_is_in_flight() {
    let mut path = Path::new();
    path.until(State::Drain);
    // As after an estimate far too high: nothing drains.
    path.per_packet = Duration::from_millis(4);
    let rounds = path.rounds_in(State::Drain);
    assert_eq!((rounds, path.bbr.state), (4, State::Down));
    assert!(path.bbr.in_flight > path.bbr.inflight(1.0));
}

/// `[bbr-06:§4.1.2.4]` A.7: an application that writes a fifth of the bandwidth never ends Startup without losses.
#[test]
fn an_application_that_limits_never_ends_startup() {
    let mut path = Path::new();
    path.writes = Some(Duration::from_millis(5));
    for _ in 0..3000 {
        path.step();
        assert!(matches!(path.bbr.state, State::Startup | State::ProbeRtt), "{:?}", path.bbr.state);
    }
    assert!(!path.bbr.full_bw_reached && path.bbr.estimator.is_app_limited());
}

/// `[bbr-06:§5.3.1.3]` A.2: six losses in a round of recovery end Startup, and the bound is what was delivered.
#[test]
fn a_round_of_recovery_with_six_losses_ends_startup() {
    for (losses, ends) in [(5, false), (6, true)] {
        let mut path = Path::new();
        while path.bbr.round_count < 3 {
            path.step();
        }
        path.bbr.on_event(Instant::ZERO + path.now, Event::Loss);
        for _ in 0..losses {
            path.lose();
            path.step();
        }
        let round = path.bbr.round_count;
        while path.bbr.round_count < round + 2 && path.bbr.state == State::Startup {
            path.step();
        }
        assert_eq!(path.bbr.full_bw_reached && path.bbr.inflight_longterm.is_finite(), ends, "{losses} losses");
        assert_eq!(path.bbr.undo.state, ends.then_some(State::Startup));
    }
}

/// `[bbr-06:§5.6.4.5]` A.10: after 5 s without a lower RTT, half a BDP in flight for 200 ms and a round, then CRUISE.
#[test]
fn after_five_seconds_half_a_bdp_for_200_ms_and_a_round() {
    let mut path = Path::new();
    path.until(State::Cruise);
    path.base_rtt = Duration::from_millis(110); // 100 ms is not seen again
    let stamp = path.bbr.probe_rtt_min_stamp;
    path.until(State::ProbeRtt);
    let unseen = (Instant::ZERO + path.now).since(stamp);
    assert!(unseen > Duration::from_millis(5000) && unseen < Duration::from_millis(5010), "{unseen:?}");
    assert_eq!((path.bbr.pacing_gain, path.bbr.cwnd_gain), (1.0, 0.5));
    let entered = path.now;
    while path.bbr.probe_rtt_done_stamp.is_none() {
        path.step();
    }
    assert!(path.bbr.in_flight <= path.bbr.probe_rtt_cwnd());
    let low = path.now;
    path.until(State::Cruise);
    assert!(path.now - low >= Duration::from_millis(200) && path.now - entered < Duration::from_millis(700));
    assert!(path.bbr.cwnd >= path.bbr.prior_cwnd.min(path.bbr.max_inflight()) - 1.0, "the window is back");
    assert!((path.bbr.max_bw.max() - 1000.0).abs() < 20.0, "so little in flight says nothing of the bandwidth");
}

/// `[bbr-06:§5.3.4.4]` A.20: ProbeRTT before the pipe is full returns to Startup.
#[test]
fn probe_rtt_in_startup_returns_to_startup() {
    let mut path = Path::new();
    path.writes = Some(Duration::from_millis(50));
    path.base_rtt = Duration::from_millis(120); // the SYN's 100 ms are not seen again
    path.until(State::ProbeRtt);
    assert!(!path.bbr.full_bw_reached);
    path.until(State::Startup);
}

/// `[bbr-06:§5.4.1]` A.11: after a pause of more than 5 s the next acknowledgement does not begin ProbeRTT.
#[test]
fn a_pause_replaces_probe_rtt() {
    let mut path = Path::new();
    path.until(State::Cruise);
    path.bbr.estimator.limit_by_application(path.bbr.in_flight);
    while let Some((note, sent)) = path.sent.pop_front() {
        path.now = (path.now + path.per_packet).max(sent + path.base_rtt);
        path.bbr.estimator.limit_by_application(path.sent.len() as f64 + 1.0);
        path.acknowledge(note, sent);
    }
    path.now += Duration::from_millis(6000);
    path.send_until(path.now + Duration::from_millis(1));
    assert!(path.bbr.idle_restart);
    assert!((path.bbr.pacing_rate - 0.99 * path.bbr.bw).abs() < 1e-9);
    path.step();
    assert_ne!(path.bbr.state, State::ProbeRtt);
    assert!(!path.bbr.idle_restart);
}

/// `[bbr-06:§5.5.11.1, §5.5.11.2]` A.18: a recovery that ended UP is undone, and the probe is repeated; the bounds return.
#[test]
fn a_spurious_recovery_restores_the_bounds_and_probes_again() {
    let mut path = Path::without_probe_rtt();
    path.until(State::Up);
    path.bbr.is_bw_probe_sample = true;
    path.step();
    let now = Instant::ZERO + path.now;
    let cwnd = path.bbr.cwnd;
    (0..8).for_each(|_| path.lose());
    assert_eq!((path.bbr.state, path.bbr.undo.state), (State::Down, Some(State::Up)));
    assert!(path.bbr.inflight_longterm.is_finite());
    path.bbr.recovering = true;
    path.bbr.on_event(now, Event::Spurious);
    assert_eq!((path.bbr.state, path.bbr.inflight_longterm), (State::Refill, f64::INFINITY));
    assert!(path.bbr.cwnd >= cwnd && path.bbr.undo.state.is_none());
    // From Startup back to Startup.
    let mut bbr = knowing(State::Drain);
    bbr.undo.state = Some(State::Startup);
    bbr.on_event(now, Event::Spurious);
    assert_eq!((bbr.state, bbr.full_bw_reached), (State::Startup, false));
}

/// `[bbr-06:§5.6.4.4]` A timeout leaves one packet, and the end of recovery the window before.
#[test]
fn a_timeout_leaves_one_packet_until_recovery_ends() {
    let mut path = Path::new();
    path.until(State::Cruise);
    let (before, in_flight) = (path.bbr.cwnd, path.bbr.in_flight);
    path.bbr.on_event(Instant::ZERO + path.now, Event::Timeout);
    assert_eq!((path.bbr.cwnd, path.bbr.lost, path.bbr.in_flight), (1.0, in_flight, 0.0));
    path.bbr.on_event(Instant::ZERO + path.now, Event::Recovered);
    assert_eq!(path.bbr.cwnd, before);
}

/// Without sending times, a loss shows in the data in flight.
#[test]
fn losses_that_the_host_does_not_date_show_in_flight() {
    let mut path = Path::new();
    path.until(State::Cruise);
    let (note, sent) = path.sent.pop_front().unwrap();
    (0..3).for_each(|_| _ = path.sent.pop_front()); // lost, without a call
    path.now = (sent + path.base_rtt).max(path.now + path.per_packet);
    path.acknowledge(note, sent);
    assert_eq!(path.bbr.lost, 3.0);
    path.lose();
    path.step();
    assert_eq!(path.bbr.lost, 4.0);
    path.step();
    let (note, sent) = path.sent.pop_front().unwrap();
    path.sent.pop_front();
    path.now = (sent + path.base_rtt).max(path.now + path.per_packet);
    path.acknowledge(note, sent);
    assert_eq!(path.bbr.lost, 4.0, "a host that reports losses reports all");
}
