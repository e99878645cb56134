//! Tests of the log of laws' steps: the log changes no result, and no step is missing.

use std::collections::{BTreeMap, BTreeSet};

use waterfill_laws::params::Value;
use waterfill_laws::protocol::{
    Ack, Connection, Event, LinkView, PacketKind, Passing, Probe, Received, SendLimit, Sending,
};
use waterfill_laws::registry::{AnyParams, AnyReceiver, AnyRouter, AnySource, ProtocolId};
use waterfill_laws::state::{Names, WordKind};
use waterfill_laws::steps::{CALLS, LISTS, LawPart, RowFields, Rows, StepLog};
use waterfill_laws::units::{Duration, Instant, Rate, Volume};

const PACKET: Volume = Volume::from_bytes(1500.0);

fn link() -> LinkView {
    LinkView { id: 0, capacity: Rate::from_bps(1e7), target: None, queue: Volume::from_bytes(4500.0) }
}

const fn connection() -> Connection {
    let initial_window = Volume::from_bytes(15_000.0);
    Connection {
        weight: 1.0,
        packet: PACKET,
        initial_window,
        claimed_rtt: None,
        path: waterfill_laws::protocol::PathView::UNKNOWN,
        validation: waterfill_laws::protocol::Validation::Off,
        seed: 7,
    }
}

/// Returns a protocol's default parameters, and the parameters with every other value of `arithmetic`.
fn variants(id: ProtocolId) -> Vec<AnyParams> {
    let with = |word: &str| {
        let mut params = id.params();
        params.set("arithmetic", &Value::Word(word.into())).ok().map(|()| params)
    };
    let others = ["kernel", "kernel-host", "printed"].into_iter().filter_map(with);
    std::iter::once(id.params()).chain(others).collect()
}

/// Router, receiver and source of one connection.
struct Ends {
    router: AnyRouter,
    receiver: AnyReceiver,
    source: AnySource,
}

impl Ends {
    fn new(params: &AnyParams) -> Self {
        Self { router: params.router(&link()), receiver: params.receiver(), source: params.source(&connection()) }
    }

    fn logged(params: &AnyParams, id: ProtocolId, log: &StepLog) -> Self {
        let mut ends = Self::new(params);
        log.router(id, 3, &link(), &mut ends.router);
        log.receiver(id, 5, Instant::ZERO, &mut ends.receiver);
        log.source(id, 5, Instant::ZERO, &connection(), &mut ends.source);
        ends
    }
}

/// Recorder that stores the signals of laws as text.
#[derive(Default)]
struct Signals(Vec<String>);

impl Probe for Signals {
    fn record(&mut self, signal: &str, value: f64) {
        self.0.push(format!("{signal} = {value:?}"));
    }
}

/// Opens a connection and sends 200 packets, with every kind of call. Returns all answers of the laws.
fn play(ends: &mut Ends, fresh: AnyRouter) -> Vec<String> {
    let mut fresh = Some(fresh);
    let (link, rtt) = (link(), Duration::from_millis(40));
    let mut seen = Vec::new();
    let mut limit = SendLimit::default();
    for i in 0..200 {
        let now = Instant::from_secs(0.002 * f64::from(i));
        while ends.router.poll_at() <= now {
            let due = ends.router.poll_at();
            ends.router.on_timer(&link, due);
        }
        let (kind, answers) =
            if i == 0 { (PacketKind::Syn, PacketKind::Syn) } else { (PacketKind::Data, PacketKind::Ack) };
        let mut header = ends.source.stamp(&Sending { in_flight: PACKET, ..Sending::new(now, kind, PACKET) });
        let mut passing = Passing { now, volume: PACKET, packets: 1.0, kind, header: Some(&mut header) };
        ends.router.on_arrival(&link, &mut passing);
        ends.router.on_departure(&link, &mut passing);
        let other = Passing { now, volume: PACKET, packets: 1.0, kind: PacketKind::Other, header: None };
        ends.router.on_arrival(&link, &mut { other });
        ends.receiver.on_data(&Received { now, kind, header: &header, rtt: Some(rtt) });
        let echo = ends.receiver.echo(now);
        let ack = Ack { kind: answers, acked: PACKET, in_flight: PACKET, ..Ack::new(now, &echo, rtt) };
        limit = ends.source.on_ack(&ack);
        seen.push(format!("{header:?} {echo:?} {limit:?} {:?}", ends.router.poll_at()));
        let event = match i {
            80 => Event::Loss,
            90 => Event::Recovered,
            120 => Event::Marked,
            130 => Event::Timeout,
            _ => continue,
        };
        ends.source.on_event(now, event);
        if let Some(fresh) = fresh.take() {
            ends.router.restart(&link, fresh);
        }
        let mut signals = Signals::default();
        ends.source.observe(&mut signals);
        ends.router.observe(&mut signals);
        seen.push(format!("{:?} {:?} {:?}", signals.0, ends.source.limit(), ends.router.interval()));
    }
    assert_eq!(limit, ends.source.limit(), "on_ack returns the limit");
    seen
}

/// Row of a log, with the words of its lists.
struct Row<'a> {
    part: LawPart,
    entity: u32,
    call: u32,
    lists: [&'a [u64]; 4],
}

fn rows(all: &Rows) -> Vec<Row<'_>> {
    let part = |i: usize| [LawPart::Router, LawPart::Receiver, LawPart::Source][all.part[i] as usize];
    let words = |list: usize, i: usize| {
        let list = &all.lists[list];
        &list.words[list.ends[i] as usize..list.ends[i + 1] as usize]
    };
    (0..all.law.len())
        .map(|i| Row {
            part: part(i),
            entity: all.entity[i],
            call: all.call[i],
            lists: [0, 1, 2, 3].map(|list| words(list, i)),
        })
        .collect()
}

fn fields_of<'a>(fields: &'a RowFields, id: ProtocolId, row: &Row<'_>) -> &'a [Names; 4] {
    &fields[&(id, row.part, row.call)]
}

#[test]
fn a_logged_law_answers_as_one_that_is_not() {
    for &id in ProtocolId::ALL {
        for params in variants(id) {
            let log = StepLog::new(10_000, None);
            let plain = play(&mut Ends::new(&params), params.router(&link()));
            let logged = play(&mut Ends::logged(&params, id, &log), params.router(&link()));
            assert_eq!(plain, logged, "{id:?}");
            let departs = params.router(&link()).sees_departures();
            assert_eq!(Ends::logged(&params, id, &log).router.sees_departures(), departs, "{id:?}");
        }
    }
}

/// Every word of a log has a name, and each row's state continues the state of the law's previous row.
#[test]
fn every_word_has_a_name_and_rows_join() {
    for &id in ProtocolId::ALL {
        for params in variants(id) {
            let log = StepLog::new(10_000, None);
            play(&mut Ends::logged(&params, id, &log), params.router(&link()));
            assert_eq!(log.dropped(), 0);
            let fields = log.fields();
            log.with_rows(|all| check_rows(id, all, &fields));
        }
    }
}

fn check_rows(id: ProtocolId, all: &Rows, fields: &RowFields) {
    let mut after: BTreeMap<(LawPart, u32), Vec<u64>> = BTreeMap::new();
    let mut calls: BTreeSet<(LawPart, u32)> = BTreeSet::new();
    for row in rows(all) {
        let names = fields_of(fields, id, &row);
        for (list, (words, names)) in LISTS.iter().zip(row.lists.iter().zip(names)) {
            assert_eq!(words.len(), names.len(), "{id:?}: {list} of call {} of {:?}", row.call, row.part);
            let unique: BTreeSet<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(unique.len(), names.len(), "{id:?}: {names:?}");
        }
        let [_, before, then, _] = row.lists;
        // A restart's first row is of the new law.
        if let Some(known) = after.get(&(row.part, row.entity)).filter(|_| row.call > 0) {
            assert_eq!(known, before, "{id:?}: call {} of {:?} does not join the one before", row.call, row.part);
        }
        after.insert((row.part, row.entity), then.to_vec());
        calls.insert((row.part, row.call));
    }
    assert_eq!(all.law.iter().collect::<BTreeSet<_>>().len(), 1);
    assert!(all.time.windows(2).filter(|pair| pair[0] > pair[1]).count() <= 1, "but for a restart, in order of time");
    let on_event = CALLS.len() as u32;
    let always = [(LawPart::Router, 0), (LawPart::Router, 1), (LawPart::Router, 2)].into_iter();
    let of_hosts = [(LawPart::Receiver, 0), (LawPart::Receiver, 4), (LawPart::Receiver, 5)].into_iter();
    let of_source =
        [(LawPart::Source, 0), (LawPart::Source, 6), (LawPart::Source, 7), (LawPart::Source, on_event)].into_iter();
    for call in always.chain(of_hosts).chain(of_source) {
        assert!(calls.contains(&call), "{id:?}: no row of {call:?}");
    }
}

/// A row contains the header that the law writes, as bytes on the wire.
#[test]
fn a_row_holds_the_header_as_on_the_wire() {
    let (id, log) = (ProtocolId::MaxNet, StepLog::new(10_000, None));
    let params = id.params();
    let mut ends = Ends::logged(&params, id, &log);
    let header = ends.source.stamp(&Sending::new(Instant::ZERO, PacketKind::Data, PACKET));
    let wire: [u8; 8] = header.encode().try_into().expect("eight bytes");
    let fields = log.fields();
    log.with_rows(|all| {
        let all = rows(all);
        let row = all.last().expect("the stamp's row");
        let outputs = &fields_of(&fields, id, row)[3];
        assert_eq!(outputs, &[("has_header".to_string(), WordKind::Count), ("header.0".to_string(), WordKind::Wire)]);
        assert_eq!(row.lists[3], [1, u64::from_be_bytes(wire)]);
    });
}

#[test]
fn a_full_log_counts_what_it_leaves_out() {
    let (id, small, large) = (ProtocolId::Rcp, StepLog::new(100, None), StepLog::new(10_000, None));
    let params = id.params();
    for log in [&small, &large] {
        play(&mut Ends::logged(&params, id, log), params.router(&link()));
    }
    let count = |log: &StepLog| log.with_rows(|all| all.law.len() as u64);
    assert_eq!((count(&small), large.dropped()), (100, 0));
    assert_eq!(small.dropped(), count(&large) - 100);
}

#[test]
fn a_log_of_one_law_has_no_other() {
    let log = StepLog::new(10_000, Some(ProtocolId::Xcp));
    for id in [ProtocolId::Xcp, ProtocolId::Rcp] {
        let params = id.params();
        let mut ends = Ends::logged(&params, id, &log);
        let wrapped = matches!(ends.router, AnyRouter::Logged(_));
        assert_eq!((log.has(id), wrapped), (id == ProtocolId::Xcp, id == ProtocolId::Xcp));
        play(&mut ends, params.router(&link()));
    }
    assert_eq!(log.fields().keys().map(|&(id, ..)| id).collect::<BTreeSet<_>>(), [ProtocolId::Xcp].into());
}

/// The names in logs match the names that `validation/certificates` reads.
#[test]
fn names_in_logs() {
    assert_eq!(
        [LawPart::Router, LawPart::Receiver, LawPart::Source].map(LawPart::name),
        ["router", "receiver", "source"]
    );
    assert_eq!(
        [WordKind::Real, WordKind::Count, WordKind::Time, WordKind::Wire].map(WordKind::name),
        ["real", "count", "time", "wire"]
    );
}
