//! A log of the steps of laws: what each call got, the law's state before and after it, and what it returned.
//!
//! A law that is logged is wrapped in [`Logged`], a variant of [`AnyRouter`], [`AnyReceiver`] and [`AnySource`]. So a run
//! without a log has no test for one on the packet path. `waterfill verify` computes every step again from the papers'
//! equations and compares.
//!
//! A row is a call. Its values are 64-bit words; [`StepLog::fields`] names them and says how to read them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::protocol::{Ack, Connection, Event, Limit, LinkView, PacketKind, Passing, Probe, Received, Sending, Wire};
use crate::registry::{AnyEcho, AnyHeader, AnyReceiver, AnyRouter, AnySource, ProtocolId};
use crate::units::{Duration, Instant, Rate, Volume};

/// How to read a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A double-precision number (bit/s, bytes, seconds, a ratio); NaN is none.
    Real,
    /// A whole number; 2⁶⁴ − 1 is none.
    Count,
    /// Picoseconds; 2⁶⁴ − 1 is none.
    Time,
    /// Bytes of a header as on the wire, the first in the highest byte.
    Wire,
}

impl Kind {
    /// Returns its name in logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Count => "count",
            Self::Time => "time",
            Self::Wire => "wire",
        }
    }
}

/// A number that fits a word.
pub trait Word {
    /// How to read it.
    const KIND: Kind;
    /// Its word where there is no number.
    const NONE: u64 = u64::MAX;
    /// Returns the word.
    fn word(&self) -> u64;
}

/// Implements [`Word`] for types of one kind.
macro_rules! words {
    ($kind:ident: $($t:ty => $word:expr,)*) => { $(
        impl Word for $t {
            const KIND: Kind = Kind::$kind;
            const NONE: u64 = if matches!(Kind::$kind, Kind::Real) { f64::NAN.to_bits() } else { u64::MAX };
            fn word(&self) -> u64 {
                let word: fn(&Self) -> u64 = $word;
                word(self)
            }
        }
    )* };
}
words! { Real: f64 => |x| x.to_bits(), f32 => |x| f64::from(*x).to_bits(), i32 => |x| f64::from(*x).to_bits(), }
words! { Real: Rate => |r| r.as_bps().to_bits(), Volume => |v| v.as_bytes().to_bits(), }
words! { Time: Instant => |t| t.as_ps(), Duration => |d| d.as_ps(), }
words! { Count: u32 => |n| u64::from(*n), u64 => |n| *n, bool => |b| u64::from(*b), }

impl<W: Word> Word for Option<W> {
    const KIND: Kind = W::KIND;
    const NONE: u64 = W::NONE;
    fn word(&self) -> u64 {
        self.as_ref().map_or(W::NONE, W::word)
    }
}

impl Word for PacketKind {
    const KIND: Kind = Kind::Count;
    fn word(&self) -> u64 {
        *self as u64
    }
}

impl Word for Event {
    const KIND: Kind = Kind::Count;
    fn word(&self) -> u64 {
        *self as u64
    }
}

/// Names and kinds of words.
pub type Names = Vec<(String, Kind)>;

/// Collects words with their names.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    words: Vec<u64>,
    /// Kept for the first row of a kind only.
    names: Option<Names>,
}

impl Fields {
    fn named(named: bool) -> Self {
        Self { words: Vec::with_capacity(24), names: named.then(Vec::new) }
    }
    /// Adds a number.
    pub fn put<W: Word>(&mut self, name: &str, value: &W) {
        self.put_word(name, W::KIND, value.word());
    }
    /// Adds words of a structure in C as `name.0`, `name.1` …
    pub fn put_words(&mut self, name: &str, words: &[u64]) {
        for (i, &word) in words.iter().enumerate() {
            self.put_word(&format!("{name}.{i}"), Kind::Count, word);
        }
    }
    fn put_word(&mut self, name: &str, kind: Kind, word: u64) {
        self.words.push(word);
        if let Some(names) = &mut self.names {
            names.push((name.to_string(), kind));
        }
    }
    /// Adds a header as on the wire, in whole words.
    fn put_wire(&mut self, name: &str, wire: &[u8], length: usize) {
        for i in 0..length.div_ceil(8) {
            let mut word = [0; 8];
            let bytes = wire.get(8 * i..).unwrap_or_default();
            let n = bytes.len().min(8);
            word[..n].copy_from_slice(&bytes[..n]);
            self.put_word(&format!("{name}.{i}"), Kind::Wire, u64::from_be_bytes(word));
        }
    }
    /// Adds a header or echo.
    pub fn put_field<W: Wire>(&mut self, name: &str, wire: &W) {
        let mut bytes = [0; 64];
        wire.encode(&mut bytes[..W::BYTES]);
        self.put_wire(name, &bytes, W::BYTES);
    }
    fn put_link(&mut self, link: &LinkView) {
        self.put("capacity", &link.capacity);
        self.put("target", &link.target);
        self.put("queue", &link.queue);
    }
    fn put_new_link(&mut self, link: &LinkView) {
        self.put("id", &link.id);
        self.put_link(link);
    }
    fn put_limit(&mut self, limit: &Limit) {
        self.put("window", &limit.window);
        self.put("pacing", &limit.pacing);
    }
}

/// Lists fields of a law's state by their names: `state_of!(fields, self: price, arrived)`.
#[macro_export]
macro_rules! state_of {
    ($fields:expr, $law:ident: $($field:ident),* $(,)?) => {{ $($fields.put(stringify!($field), &$law.$field);)* }};
}

/// Whose law a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Of a link direction.
    Router,
    /// Of a flow.
    Receiver,
    /// Of a flow.
    Source,
}

impl Part {
    /// Returns its name in logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Router => "router",
            Self::Receiver => "receiver",
            Self::Source => "source",
        }
    }
}

/// Names of calls; a row holds the place in this list.
pub const CALLS: [&str; 8] = ["new", "on_arrival", "on_departure", "on_timer", "on_data", "echo", "stamp", "on_ack"];
/// The call after those of [`CALLS`]: of a loss, a mark, a time-out or the end of a recovery.
pub const ON_EVENT: &str = "on_event";

/// Lists of words, one a row.
#[derive(Clone, Debug)]
pub struct Lists {
    /// Where each row's words end, with a zero in front.
    pub ends: Vec<u32>,
    /// All words.
    pub words: Vec<u64>,
}

impl Default for Lists {
    fn default() -> Self {
        Self { ends: vec![0], words: Vec::new() }
    }
}

impl Lists {
    fn push(&mut self, words: &[u64]) {
        self.words.extend_from_slice(words);
        self.ends.push(self.words.len() as u32);
    }
}

/// The rows of a log, by columns.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Place in [`ProtocolId::ALL`].
    pub law: Vec<u32>,
    /// 0: router, 1: receiver, 2: source.
    pub part: Vec<u32>,
    /// Index of the link direction, or of the flow.
    pub entity: Vec<u32>,
    /// Place in [`CALLS`].
    pub call: Vec<u32>,
    /// Picoseconds.
    pub time: Vec<u64>,
    /// What the call got, the state before and after it, and what it returned.
    pub lists: [Lists; 4],
}

/// Names of the lists of a row.
pub const LISTS: [&str; 4] = ["inputs", "before", "after", "outputs"];

/// Fields of the rows of one law, part and call, in the order of [`LISTS`].
pub type RowFields = BTreeMap<(ProtocolId, Part, u32), [Names; 4]>;

#[derive(Debug, Default)]
struct Inner {
    rows: Rows,
    fields: RowFields,
    limit: usize,
    dropped: u64,
}

/// A log of steps that several laws write: up to a number of rows, later ones are counted.
#[derive(Clone, Debug)]
pub struct StepLog {
    inner: Arc<Mutex<Inner>>,
    only: Option<ProtocolId>,
}

impl StepLog {
    /// Creates a log of up to `limit` rows, of one law or of all.
    #[must_use]
    pub fn new(limit: usize, only: Option<ProtocolId>) -> Self {
        Self { inner: Arc::new(Mutex::new(Inner { limit, ..Inner::default() })), only }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the log has this law's steps.
    #[must_use]
    pub fn has(&self, law: ProtocolId) -> bool {
        self.only.is_none_or(|only| only == law)
    }

    /// Calls `read` with the rows so far.
    pub fn with_rows<T>(&self, read: impl FnOnce(&Rows) -> T) -> T {
        read(&self.inner().rows)
    }

    /// Returns names and kinds of words.
    #[must_use]
    pub fn fields(&self) -> RowFields {
        self.inner().fields.clone()
    }

    /// Returns how many rows were not logged, because the log was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.inner().dropped
    }
}

/// A law whose calls are logged.
#[derive(Clone, Debug)]
pub struct Logged<L> {
    law: L,
    log: StepLog,
    id: ProtocolId,
    part: Part,
    entity: u32,
}

impl<L> Logged<L> {
    /// Logs a call, unless the log is full. `state`, `call` and `outputs` take the law; `inputs` is written first.
    fn step<T: Copy>(
        &mut self,
        call: usize,
        now: Instant,
        inputs: impl FnOnce(&mut Fields),
        state: impl Fn(&L, &mut Fields),
        make: impl FnOnce(&mut L) -> T,
        outputs: impl FnOnce(&L, T, &mut Fields),
    ) -> T {
        let key = (self.id, self.part, call as u32);
        let named = {
            let mut inner = self.log.inner();
            if inner.rows.law.len() >= inner.limit {
                inner.dropped += 1;
                drop(inner);
                return make(&mut self.law);
            }
            !inner.fields.contains_key(&key)
        };
        let mut lists = [(); 4].map(|()| Fields::named(named));
        inputs(&mut lists[0]);
        state(&self.law, &mut lists[1]);
        let made = make(&mut self.law);
        state(&self.law, &mut lists[2]);
        outputs(&self.law, made, &mut lists[3]);
        let mut inner = self.log.inner();
        let rows = &mut inner.rows;
        rows.law.push(ProtocolId::ALL.iter().position(|&id| id == self.id).unwrap_or_default() as u32);
        rows.part.push(self.part as u32);
        rows.entity.push(self.entity);
        rows.call.push(call as u32);
        rows.time.push(now.as_ps());
        for (list, fields) in rows.lists.iter_mut().zip(&lists) {
            list.push(&fields.words);
        }
        if named {
            inner.fields.insert(key, lists.map(|fields| fields.names.unwrap_or_default()));
        }
        made
    }
}

/// Adds this law's header, or zeros, and whether there is one.
fn put_header(fields: &mut Fields, id: ProtocolId, header: Option<&AnyHeader>) {
    let own = header.filter(|header| header.protocol() == Some(id));
    fields.put("has_header", &own.is_some());
    fields.put_wire("header", &own.map(AnyHeader::encode).unwrap_or_default(), id.header_bytes());
}

fn put_echo(fields: &mut Fields, id: ProtocolId, echo: &AnyEcho) {
    let own = Some(echo).filter(|echo| echo.protocol() == Some(id));
    fields.put("has_echo", &own.is_some());
    fields.put_wire("echo", &own.map(AnyEcho::encode).unwrap_or_default(), id.echo_bytes());
}

fn put_poll(law: &AnyRouter, (): (), fields: &mut Fields) {
    fields.put("poll_at", &law.poll_at());
}

impl Logged<AnyRouter> {
    fn passing(&mut self, call: usize, link: &LinkView, passing: &mut Passing<'_, AnyHeader>) {
        let id = self.id;
        let get = |fields: &mut Fields, passing: &Passing<'_, AnyHeader>| {
            fields.put_link(link);
            fields.put("volume", &passing.volume);
            fields.put("packets", &passing.packets);
            fields.put("kind", &passing.kind);
            put_header(fields, id, passing.header.as_deref());
        };
        let mut inputs = Fields::named(true);
        get(&mut inputs, passing);
        let now = passing.now;
        let mut header = AnyHeader::None;
        self.step(
            call,
            now,
            |fields| *fields = inputs,
            AnyRouter::state,
            |law| {
                if call == 1 {
                    law.on_arrival(link, passing);
                } else {
                    law.on_departure(link, passing);
                }
                header = passing.header.as_deref().copied().unwrap_or_default();
                header
            },
            |_, header, fields| put_header(fields, id, Some(&header)),
        );
    }
    #[cold]
    pub(crate) fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, AnyHeader>) {
        self.passing(1, link, passing);
    }
    #[cold]
    pub(crate) fn on_departure(&mut self, link: &LinkView, passing: &mut Passing<'_, AnyHeader>) {
        self.passing(2, link, passing);
    }
    #[cold]
    pub(crate) fn on_timer(&mut self, link: &LinkView, now: Instant) {
        let inputs = |fields: &mut Fields| fields.put_link(link);
        self.step(3, now, inputs, AnyRouter::state, |law| law.on_timer(link, now), put_poll);
    }
}

impl Logged<AnyReceiver> {
    #[cold]
    pub(crate) fn on_data(&mut self, received: &Received<&AnyHeader>) {
        let id = self.id;
        let inputs = |fields: &mut Fields| {
            fields.put("kind", &received.kind);
            fields.put("rtt", &received.rtt);
            put_header(fields, id, Some(received.header));
        };
        self.step(4, received.now, inputs, AnyReceiver::state, |law| law.on_data(received), |_, (), _| {});
    }
    #[cold]
    pub(crate) fn echo(&mut self, now: Instant) -> AnyEcho {
        let id = self.id;
        self.step(
            5,
            now,
            |_| {},
            AnyReceiver::state,
            |law| law.echo(now),
            |_, echo, fields| put_echo(fields, id, &echo),
        )
    }
}

impl Logged<AnySource> {
    #[cold]
    pub(crate) fn stamp(&mut self, sending: &Sending) -> AnyHeader {
        let id = self.id;
        let inputs = |fields: &mut Fields| state_of!(fields, sending: kind, volume, in_flight, app_limited);
        self.step(
            6,
            sending.now,
            inputs,
            AnySource::state,
            |law| law.stamp(sending),
            |_, header, fields| put_header(fields, id, Some(&header)),
        )
    }
    #[cold]
    pub(crate) fn on_ack(&mut self, ack: &Ack<&AnyEcho>) -> Limit {
        let id = self.id;
        let inputs = |fields: &mut Fields| {
            state_of!(fields, ack: kind, acked, marked, rtt, smoothed_rtt, base_rtt, in_flight);
            state_of!(fields, ack: recovering, window_limited);
            put_echo(fields, id, ack.echo);
        };
        self.step(
            7,
            ack.now,
            inputs,
            AnySource::state,
            |law| law.on_ack(ack),
            |_, limit, fields| fields.put_limit(&limit),
        )
    }
    #[cold]
    pub(crate) fn on_event(&mut self, now: Instant, event: Event) {
        let inputs = |fields: &mut Fields| fields.put("event", &event);
        let limit = |law: &AnySource, (): (), fields: &mut Fields| fields.put_limit(&law.limit());
        self.step(CALLS.len(), now, inputs, AnySource::state, |law| law.on_event(now, event), limit);
    }
    pub(crate) fn limit(&self) -> Limit {
        self.law.limit()
    }
    pub(crate) fn observe(&self, probe: &mut dyn Probe) {
        self.law.observe(probe);
    }
}

impl Logged<AnyRouter> {
    pub(crate) const fn law(&self) -> &AnyRouter {
        &self.law
    }
}

impl Logged<AnyRouter> {
    /// Replaces the law by a new one, whose calls are logged likewise.
    pub(crate) fn restart(&mut self, link: &LinkView, law: AnyRouter) {
        self.law = law;
        self.step(0, Instant::ZERO, |fields| fields.put_new_link(link), AnyRouter::state, |_| (), put_poll);
    }
}

impl StepLog {
    /// Logs a router law's calls from now on; its first row is its state.
    pub fn router(&self, id: ProtocolId, entity: u32, link: &LinkView, law: &mut AnyRouter) {
        if self.has(id) {
            let part = Part::Router;
            let mut logged = Logged { law: law.clone(), log: self.clone(), id, part, entity };
            logged.step(0, Instant::ZERO, |fields| fields.put_new_link(link), AnyRouter::state, |_| (), put_poll);
            *law = AnyRouter::Logged(Box::new(logged));
        }
    }
    /// Logs a receiver law's calls from now on.
    pub fn receiver(&self, id: ProtocolId, entity: u32, now: Instant, law: &mut AnyReceiver) {
        if self.has(id) {
            let part = Part::Receiver;
            let mut logged = Logged { law: law.clone(), log: self.clone(), id, part, entity };
            logged.step(0, now, |_| {}, AnyReceiver::state, |_| (), |_, (), _| {});
            *law = AnyReceiver::Logged(Box::new(logged));
        }
    }
    /// Logs a source law's calls from now on.
    pub fn source(&self, id: ProtocolId, entity: u32, now: Instant, connection: &Connection, law: &mut AnySource) {
        if self.has(id) {
            let part = Part::Source;
            let mut logged = Logged { law: law.clone(), log: self.clone(), id, part, entity };
            let limit = |law: &AnySource, (): (), fields: &mut Fields| fields.put_limit(&law.limit());
            let inputs = |fields: &mut Fields| {
                state_of!(fields, connection: weight, packet, initial_window, claimed_rtt);
            };
            logged.step(0, now, inputs, AnySource::state, |_| (), limit);
            *law = AnySource::Logged(Box::new(logged));
        }
    }
}
