//! Calls a law and writes the log of its steps. Every build makes the same calls.
//!
//! `cargo run -p waterfill-laws --example law_steps -- LAW ROWS [NAME=VALUE ...]` sets parameters in SI units. It writes a
//! line of JSON for the fields of each part and call, then one for each step. `validation/certificates/mutants.py`
//! reads them.
//!
//! Calls are those of two links in series and three flows. An episode has a capacity, RTTs, a load and sizes of packets of
//! its own; another follows with new laws after some hundred rows. What a law sends or allows does not decide what is
//! called next, so that a changed law gets the calls that the unchanged one gets, but for headers and its own timers.

use std::collections::VecDeque;
use std::io::Write as _;

use waterfill_laws::params::Value;
use waterfill_laws::protocol::{Ack, Connection, Event, LinkView, PacketKind, Passing, Received, Sending};
use waterfill_laws::registry::{AnyEcho, AnyHeader, AnyParams, AnyReceiver, AnyRouter, AnySource, ProtocolId};
use waterfill_laws::steps::{CALLS, LISTS, LawPart, ON_EVENT, StepLog};
use waterfill_laws::units::{Duration, Instant, Rate, Volume};

/// Maximum number of log rows in one episode. `TIMERS` is the maximum number of timers at one time, which ends a law
/// whose timer never advances.
const EPISODE: usize = 700;
const TIMERS: u32 = 1000;
const FLOWS: usize = 3;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
    fn unit(&mut self) -> f64 {
        self.below(1 << 30) as f64 / f64::from(1 << 30)
    }
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Both ends of a connection, and the acknowledgements in transit.
struct Flow {
    source: AnySource,
    receiver: AnyReceiver,
    packet: Volume,
    rtt: Duration,
    least: Duration,
    opened: bool,
    echoes: VecDeque<(Instant, PacketKind, AnyEcho)>,
}

/// Values drawn once per episode.
struct Conditions {
    capacity: f64,
    gap: Duration,
    rtt: Duration,
    load: f64,
    target: Option<f64>,
    /// True if the sources send parcels of fluid instead of packets.
    parcels: bool,
}

struct Bench<'a> {
    id: ProtocolId,
    params: &'a AnyParams,
    log: &'a StepLog,
    random: Random,
    now: Instant,
    limit: usize,
}

impl Bench<'_> {
    fn rows(&self) -> usize {
        self.log.with_rows(|rows| rows.law.len())
    }

    fn conditions(&mut self) -> Conditions {
        let gap = Duration::from_micros(self.random.of(&[20, 500, 4_000, 25_000]));
        Conditions {
            capacity: self.random.of(&[1e5, 1e6, 1e7, 1e8, 1e9, 1e10]) * (1.0 + self.random.unit()),
            gap,
            rtt: gap * self.random.of(&[1, 3, 8, 30]),
            load: self.random.of(&[0.3, 0.9, 1.1, 2.0]),
            target: self.random.of(&[None, None, Some(0.8), Some(1.0)]),
            parcels: self.random.one_in(2),
        }
    }

    fn link(&mut self, entity: u32, conditions: &Conditions) -> (LinkView, AnyRouter) {
        let capacity = Rate::from_bps(conditions.capacity * (1.0 - 0.3 * self.random.unit()));
        let link = LinkView { id: entity, capacity, target: conditions.target, queue: Volume::ZERO };
        let mut law = self.params.router(&link);
        self.log.router(self.id, entity, &link, &mut law);
        (link, law)
    }

    fn flow(&mut self, entity: u32, conditions: &Conditions) -> Flow {
        let packet = Volume::from_bytes(self.random.of(&[1500.0, 1500.0, 576.0]));
        let claimed_rtt = self.random.of(&[None, None, Some(Duration::from_millis(30))]);
        let initial_window = self.random.of(&[10.0, 3.0, 0.5]) * packet;
        let weight = self.random.of(&[1.0, 1.0, 2.0, 0.3]);
        let validation = waterfill_laws::protocol::Validation::Off;
        let path = waterfill_laws::protocol::PathView::UNKNOWN;
        let connection = Connection { weight, packet, initial_window, claimed_rtt, path, validation, seed: 1 };
        let (mut source, mut receiver) = (self.params.source(&connection), self.params.receiver());
        self.log.source(self.id, entity, self.now, &connection, &mut source);
        self.log.receiver(self.id, entity, self.now, &mut receiver);
        let rtt = conditions.rtt * self.random.of(&[1, 1, 4]);
        Flow { source, receiver, packet, rtt, least: Duration::MAX, opened: false, echoes: VecDeque::new() }
    }

    /// Runs an episode with new links and flows.
    fn episode(&mut self, number: u32) {
        let conditions = self.conditions();
        let end = (self.rows() + EPISODE).min(self.limit);
        self.now = Instant::ZERO;
        let mut links = [2 * number, 2 * number + 1].map(|entity| self.link(entity, &conditions));
        let first = number * FLOWS as u32;
        let mut flows = Vec::new();
        for flow in 0..FLOWS as u32 {
            flows.push(self.flow(first + flow, &conditions));
        }
        while self.rows() < end {
            // Sometimes nothing is sent for long.
            let pause = if self.random.one_in(60) { 40 } else { 2 };
            let step = (conditions.gap * (pause * self.random.below(1 << 10) + 1)) / (1 << 10);
            self.now += step;
            for (link, law) in &mut links {
                self.change(link, law, &conditions);
            }
            let chosen = self.random.below(FLOWS as u64) as usize;
            self.send(&mut flows[chosen], chosen, &mut links, &conditions);
            for flow in &mut flows {
                self.acknowledge(flow);
            }
        }
    }

    /// Changes a link's queue and capacity, runs its timers, passes packets of other protocols and sometimes restarts
    /// the law.
    fn change(&mut self, link: &mut LinkView, law: &mut AnyRouter, conditions: &Conditions) {
        for _ in 0..TIMERS {
            let at = law.poll_at();
            if at > self.now {
                break;
            }
            law.on_timer(link, at);
        }
        let span = Volume::from_bytes(conditions.capacity * conditions.gap.as_secs() / 8.0);
        link.queue = match self.random.below(4) {
            0 => Volume::ZERO,
            1 => self.random.unit() * span,
            2 => (link.queue + self.random.unit() * span) * 0.9,
            _ => link.queue,
        };
        if self.random.one_in(80) {
            link.capacity = Rate::from_bps(conditions.capacity * (0.5 + self.random.unit()));
        }
        if self.random.one_in(400) {
            law.restart(link, self.params.router(link));
        }
        if self.random.one_in(8) {
            // Of another protocol: load without a header.
            let kind = self.random.of(&[PacketKind::Data, PacketKind::Ack, PacketKind::Other]);
            let mut header = AnyHeader::None;
            let header = self.random.one_in(2).then_some(&mut header);
            let volume = Volume::from_bytes(40.0 + 1000.0 * self.random.unit());
            law.on_arrival(link, &mut Passing { now: self.now, volume, packets: 1.0, kind, header });
        }
    }

    /// Sends a packet from its source over one or both links to its receiver. Some packets are lost on the way.
    fn send(
        &mut self,
        flow: &mut Flow,
        number: usize,
        links: &mut [(LinkView, AnyRouter); 2],
        conditions: &Conditions,
    ) {
        let kind = if !flow.opened || self.random.one_in(100) { PacketKind::Syn } else { PacketKind::Data };
        flow.opened = true;
        let (mut volume, mut packets) = (flow.packet * if self.random.one_in(6) { 0.3 } else { 1.0 }, 1.0);
        if conditions.parcels && kind == PacketKind::Data {
            let share = conditions.load * 2.0 * self.random.unit();
            volume = Volume::from_bytes(share * conditions.capacity * conditions.gap.as_secs() / 8.0);
            packets = volume / flow.packet;
        }
        let in_flight = f64::from(self.random.below(20) as u32) * volume;
        let app_limited = self.random.one_in(10);
        let mut header = flow.source.stamp(&Sending { now: self.now, kind, volume, in_flight, app_limited });
        let path = match number {
            0 => 0..2,
            1 => 0..1,
            _ => 1..2,
        };
        for (link, law) in &mut links[path] {
            let mut passing = Passing { now: self.now, volume, packets, kind, header: Some(&mut header) };
            law.on_arrival(link, &mut passing);
            if law.sees_departures() {
                law.on_departure(link, &mut passing);
            }
        }
        if self.random.one_in(20) {
            return; // lost
        }
        let rtt = if self.random.one_in(3) { None } else { Some(self.sample(flow.rtt)) };
        flow.receiver.on_data(&Received { now: self.now, kind, header: &header, rtt });
        if !self.random.one_in(4) {
            flow.echoes.push_back((self.now + flow.rtt, kind, flow.receiver.echo(self.now)));
        }
    }

    /// Passes arrived acknowledgements to the source, and sometimes reports an event to the source.
    fn acknowledge(&mut self, flow: &mut Flow) {
        while let Some((at, sent, echo)) = flow.echoes.front().copied().filter(|(at, ..)| *at <= self.now) {
            flow.echoes.pop_front();
            let kind = if sent == PacketKind::Syn { PacketKind::Syn } else { PacketKind::Ack };
            let sample = self.sample(flow.rtt);
            flow.least = flow.least.min(sample);
            let rtt = if self.random.one_in(5) { None } else { Some(sample) };
            let acked = f64::from(self.random.below(4) as u32) * flow.packet;
            let window = flow.source.limit().window.unwrap_or(flow.packet);
            // Around half a window, below which a window counts as unused.
            let in_flight = if self.random.one_in(2) { self.random.unit() * window } else { flow.packet };
            let echo = if self.random.one_in(25) { AnyEcho::None } else { echo };
            flow.source.on_ack(&Ack {
                now: at,
                echo: &echo,
                kind,
                acked,
                marked: Volume::ZERO,
                rtt,
                smoothed_rtt: flow.rtt,
                base_rtt: flow.least,
                in_flight,
                recovering: self.random.one_in(12),
                window_limited: !self.random.one_in(6),
            });
            if self.random.one_in(30) {
                let event = self.random.of(&Event::ALL);
                flow.source.on_event(at, event);
            }
        }
    }

    /// Returns an RTT sample from `base` to 1.5 times `base`.
    fn sample(&mut self, base: Duration) -> Duration {
        let eighths = if self.random.one_in(3) { self.random.below(5) } else { 0 };
        base + (base * eighths) / 8
    }
}

/// Returns the log of `limit` calls of a law.
///
/// # Errors
/// A law or a parameter that there is not.
fn steps(law: &str, limit: usize, settings: impl Iterator<Item = String>) -> Result<StepLog, String> {
    let id = ProtocolId::by_name(law).ok_or_else(|| format!("{law}: no such law"))?;
    let mut params = id.params();
    for setting in settings {
        let (name, text) = setting.split_once('=').ok_or_else(|| format!("{setting}: expected NAME=VALUE"))?;
        let value = match text {
            "true" | "false" => Value::Flag(text == "true"),
            _ => text.parse().map_or_else(|_| Value::Word(text.to_owned()), Value::Number),
        };
        params.set(name, &value).map_err(|error| error.0)?;
    }
    let log = StepLog::new(limit, None);
    let mut bench = Bench { id, params: &params, log: &log, random: Random(1), now: Instant::ZERO, limit };
    for number in 0.. {
        if bench.rows() >= limit {
            break;
        }
        bench.episode(number);
    }
    Ok(log)
}

/// Writes a log: first its fields, then its rows.
///
/// # Errors
/// An error from writing to `out`.
fn write(log: &StepLog, out: &mut impl std::io::Write) -> std::io::Result<()> {
    let call = |call: u32| CALLS.get(call as usize).copied().unwrap_or(ON_EVENT);
    for ((_, part, number), lists) in log.fields() {
        let lists = LISTS.iter().zip(lists).map(|(list, names)| {
            let names = names.iter().map(|(name, kind)| format!("[{name:?}, {:?}]", kind.name())).collect::<Vec<_>>();
            format!("{list:?}: [{}]", names.join(", "))
        });
        let lists = lists.collect::<Vec<_>>().join(", ");
        writeln!(out, "{{\"part\": {:?}, \"call\": {:?}, \"lists\": {{{lists}}}}}", part.name(), call(number))?;
    }
    log.with_rows(|rows| {
        for row in 0..rows.law.len() {
            let part = [LawPart::Router, LawPart::Receiver, LawPart::Source][rows.part[row] as usize].name();
            write!(out, "[{part:?}, {}, {:?}, {}", rows.entity[row], call(rows.call[row]), rows.time[row])?;
            for list in &rows.lists {
                write!(out, ", {:?}", &list.words[list.ends[row] as usize..list.ends[row + 1] as usize])?;
            }
            writeln!(out, "]")?;
        }
        Ok(())
    })
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(law), Some(Ok(rows))) = (arguments.next(), arguments.next().map(|text| text.parse())) else {
        eprintln!("law_steps: must be a law and a number of rows, as in `rcp 1000 alpha=0.4`");
        std::process::exit(2);
    };
    let log = steps(&law, rows, arguments).unwrap_or_else(|error| {
        eprintln!("law_steps: {error}");
        std::process::exit(2);
    });
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    write(&log, &mut out)?;
    out.flush()
}
