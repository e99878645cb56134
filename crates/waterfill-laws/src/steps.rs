//! Log of the steps of laws: each call's inputs, the law's state before and after the call, and the result.
//!
//! A law that is logged is wrapped in `Logged`, behind a variant of [`AnyRouter`], [`AnyReceiver`] and [`AnySource`]. So a run
//! without a log has no test for one on the packet path. `validation/certificates` computes every step again from the papers'
//! equations and compares.
//!
//! A row is a call. Its values are 64-bit words; [`StepLog::fields`] names them and says how to read them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::kernel::option::Carries;
use crate::protocol::{Ack, Connection, Event, LinkView, Passing, Received, SendLimit, Sending};
use crate::registry::{
    AnyEcho, AnyHeader, AnyReceiver, AnyRouter, AnySource, LoggedReceiver, LoggedRouter, LoggedSource, ProtocolId,
};
use crate::state::{Names, StateFields};
use crate::state_of;
use crate::telemetry::Stack;
use crate::units::Instant;

impl StateFields {
    fn put_link(&mut self, link: &LinkView) {
        self.put("capacity", &link.capacity);
        self.put("target", &link.target);
        self.put("queue", &link.queue);
    }
    fn put_new_link(&mut self, link: &LinkView) {
        self.put("id", &link.id);
        self.put_link(link);
    }
    fn put_limit(&mut self, limit: &SendLimit) {
        self.put("window", &limit.window);
        self.put("pacing", &limit.pacing);
    }
}

/// Law of a protocol whose call a row of the step log records: router, receiver or source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LawPart {
    /// Router law of a link direction.
    Router,
    /// Receiver law of a flow.
    Receiver,
    /// Source law of a flow.
    Source,
}

impl LawPart {
    /// Returns the law's name in logs: `router`, `receiver` or `source`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Router => "router",
            Self::Receiver => "receiver",
            Self::Source => "source",
        }
    }
}

/// Names of calls. A row of the step log stores an index into this list.
pub const CALLS: [&str; 8] = ["new", "on_arrival", "on_departure", "on_timer", "on_data", "echo", "stamp", "on_ack"];
/// Name of the call for one lost packet. Its index follows that of [`ON_EVENT`].
pub const ON_LOST: &str = "on_lost";
/// Name of the call for a loss, a mark, a timeout or the end of a recovery. This call's index follows the indices of
/// [`CALLS`].
pub const ON_EVENT: &str = "on_event";

/// Lists of words, one list per row of the step log.
#[derive(Clone, Debug)]
pub struct Lists {
    /// Index in `words` at which each row's words end, after a leading zero.
    pub ends: Vec<u32>,
    /// Words of all rows.
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

/// Rows of a log, stored by columns.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Index of the protocol in [`ProtocolId::ALL`].
    pub law: Vec<u32>,
    /// Law that was called: 0 for the router, 1 for the receiver, 2 for the source.
    pub part: Vec<u32>,
    /// Index of the link direction, or of the flow.
    pub entity: Vec<u32>,
    /// Index of the call in [`CALLS`]. The next two indices belong to [`ON_EVENT`] and [`ON_LOST`].
    pub call: Vec<u32>,
    /// Time of the call in picoseconds.
    pub time: Vec<u64>,
    /// Lists of words: the call's input, the state before and after the call, and the call's result.
    pub lists: [Lists; 4],
}

/// Names of the word lists of a row.
pub const LISTS: [&str; 4] = ["inputs", "before", "after", "outputs"];

/// Names and types of a row's words by protocol, law and call, in the order of [`LISTS`].
pub type RowFields = BTreeMap<(ProtocolId, LawPart, u32), [Names; 4]>;

#[derive(Debug, Default)]
struct Inner {
    rows: Rows,
    fields: RowFields,
    limit: usize,
    dropped: u64,
}

/// Log of steps that several laws share. Rows beyond the limit are only counted.
#[derive(Clone, Debug)]
pub struct StepLog {
    inner: Arc<Mutex<Inner>>,
    only: Option<ProtocolId>,
}

impl StepLog {
    /// Creates a log of up to `limit` rows, for one law or for all laws.
    #[must_use]
    pub fn new(limit: usize, only: Option<ProtocolId>) -> Self {
        Self { inner: Arc::new(Mutex::new(Inner { limit, ..Inner::default() })), only }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the log records this law's steps.
    #[must_use]
    pub fn has(&self, law: ProtocolId) -> bool {
        self.only.is_none_or(|only| only == law)
    }

    /// Calls `read` with the rows so far.
    pub fn with_rows<T>(&self, read: impl FnOnce(&Rows) -> T) -> T {
        read(&self.inner().rows)
    }

    /// Returns the names and types of the words for each kind of row.
    #[must_use]
    pub fn fields(&self) -> RowFields {
        self.inner().fields.clone()
    }

    /// Returns the number of rows that were not logged, because the log was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.inner().dropped
    }
}

/// Protocol and arithmetic of a logged law.
#[derive(Clone, Copy, Debug)]
struct LoggedLaw {
    id: ProtocolId,
    /// True if the law computes in kernel arithmetic, whose headers have other sizes.
    in_kernel: bool,
}

impl LoggedLaw {
    /// Adds the law's own header and a flag for its presence. Without a header, the bytes are zeros.
    fn put_header(self, fields: &mut StateFields, header: Option<&AnyHeader>) {
        let own = header.filter(|header| header.protocol() == Some(self.id));
        let law = self.id.law().filter(|_| self.in_kernel);
        let bytes = law.map_or_else(|| self.id.header_bytes(), |law| Carries::Forward.segment_bytes(law));
        fields.put("has_header", &own.is_some());
        fields.put_wire("header", &own.map(AnyHeader::encode).unwrap_or_default(), bytes);
    }
    /// Adds the law's own echo and a flag for its presence. Without an echo, the bytes are zeros.
    fn put_echo(self, fields: &mut StateFields, echo: &AnyEcho) {
        let own = Some(echo).filter(|echo| echo.protocol() == Some(self.id));
        let law = self.id.law().filter(|_| self.in_kernel);
        let bytes = law.map_or_else(|| self.id.echo_bytes(), |law| Carries::Echo.segment_bytes(law));
        fields.put("has_echo", &own.is_some());
        fields.put_wire("echo", &own.map(AnyEcho::encode).unwrap_or_default(), bytes);
    }
}

/// Wrapper around a law whose calls are logged.
#[derive(Clone, Debug)]
struct Logged<L> {
    law: L,
    log: StepLog,
    of: LoggedLaw,
    part: LawPart,
    entity: u32,
}

impl<L> Logged<L> {
    /// Makes a call of the law. Unless the log is full, the call is logged, and the call's inputs are written first.
    fn step<T: Copy>(
        &mut self,
        call: usize,
        now: Instant,
        inputs: impl FnOnce(&mut StateFields),
        state: impl Fn(&L, &mut StateFields),
        make: impl FnOnce(&mut L) -> T,
        outputs: impl FnOnce(&L, T, &mut StateFields),
    ) -> T {
        let key = (self.of.id, self.part, call as u32);
        let named = {
            let mut inner = self.log.inner();
            if inner.rows.law.len() >= inner.limit {
                inner.dropped += 1;
                drop(inner);
                return make(&mut self.law);
            }
            !inner.fields.contains_key(&key)
        };
        let mut lists = [(); 4].map(|()| StateFields::named(named));
        inputs(&mut lists[0]);
        state(&self.law, &mut lists[1]);
        let made = make(&mut self.law);
        state(&self.law, &mut lists[2]);
        outputs(&self.law, made, &mut lists[3]);
        let mut inner = self.log.inner();
        let rows = &mut inner.rows;
        rows.law.push(ProtocolId::ALL.iter().position(|&id| id == self.of.id).unwrap_or_default() as u32);
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

fn put_poll(law: &AnyRouter, (): (), fields: &mut StateFields) {
    fields.put("poll_at", &law.poll_at());
}

impl Logged<AnyRouter> {
    fn passing(&mut self, call: usize, link: &LinkView, passing: &mut Passing<'_, AnyHeader>) {
        let of = self.of;
        let get = |fields: &mut StateFields, passing: &Passing<'_, AnyHeader>| {
            fields.put_link(link);
            fields.put("volume", &passing.volume);
            fields.put("packets", &passing.packets);
            fields.put("kind", &passing.kind);
            of.put_header(fields, passing.header.as_deref());
        };
        let mut inputs = StateFields::named(true);
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
            |_, header, fields| of.put_header(fields, Some(&header)),
        );
    }
}

impl LoggedRouter for Logged<AnyRouter> {
    #[cold]
    fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, AnyHeader>) {
        self.passing(1, link, passing);
    }
    #[cold]
    fn on_departure(&mut self, link: &LinkView, passing: &mut Passing<'_, AnyHeader>) {
        self.passing(2, link, passing);
    }
    #[cold]
    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        let inputs = |fields: &mut StateFields| fields.put_link(link);
        self.step(3, now, inputs, AnyRouter::state, |law| law.on_timer(link, now), put_poll);
    }
    fn restart(&mut self, link: &LinkView, law: AnyRouter) {
        self.law = law;
        self.step(0, Instant::ZERO, |fields| fields.put_new_link(link), AnyRouter::state, |_| (), put_poll);
    }
    fn law(&self) -> &AnyRouter {
        &self.law
    }
    fn boxed(&self) -> Box<dyn LoggedRouter> {
        Box::new(self.clone())
    }
}

impl LoggedReceiver for Logged<AnyReceiver> {
    #[cold]
    fn on_data(&mut self, received: &Received<&AnyHeader>) {
        let of = self.of;
        let inputs = |fields: &mut StateFields| {
            fields.put("kind", &received.kind);
            fields.put("rtt", &received.rtt);
            of.put_header(fields, Some(received.header));
        };
        self.step(4, received.now, inputs, AnyReceiver::state, |law| law.on_data(received), |_, (), _| {});
    }
    fn on_mark(&mut self, now: Instant) {
        self.law.on_mark(now);
    }
    #[cold]
    fn echo(&mut self, now: Instant) -> AnyEcho {
        let of = self.of;
        self.step(5, now, |_| {}, AnyReceiver::state, |law| law.echo(now), |_, echo, fields| of.put_echo(fields, &echo))
    }
    fn boxed(&self) -> Box<dyn LoggedReceiver> {
        Box::new(self.clone())
    }
}

impl LoggedSource for Logged<AnySource> {
    #[cold]
    fn stamp(&mut self, sending: &Sending) -> AnyHeader {
        let of = self.of;
        let inputs = |fields: &mut StateFields| state_of!(fields, sending: kind, volume, in_flight, app_limited);
        self.step(
            6,
            sending.now,
            inputs,
            AnySource::state,
            |law| law.stamp(sending),
            |_, header, fields| of.put_header(fields, Some(&header)),
        )
    }
    #[cold]
    fn on_ack(&mut self, ack: &Ack<&AnyEcho>) -> SendLimit {
        let of = self.of;
        let inputs = |fields: &mut StateFields| {
            state_of!(fields, ack: kind, acked, marked, rtt, smoothed_rtt, base_rtt, in_flight);
            state_of!(fields, ack: recovering, window_limited);
            of.put_echo(fields, ack.echo);
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
    fn on_stack(&mut self, stack: &Stack) {
        self.law.on_stack(stack);
    }
    fn advance(&mut self, now: Instant) {
        self.law.advance(now);
    }
    #[cold]
    fn on_event(&mut self, now: Instant, event: Event) {
        let inputs = |fields: &mut StateFields| fields.put("event", &event);
        let limit = |law: &AnySource, (): (), fields: &mut StateFields| fields.put_limit(&law.limit());
        self.step(CALLS.len(), now, inputs, AnySource::state, |law| law.on_event(now, event), limit);
    }
    #[cold]
    fn on_lost(&mut self, now: Instant, sent: Instant) {
        let limit = |law: &AnySource, (): (), fields: &mut StateFields| fields.put_limit(&law.limit());
        let inputs = |fields: &mut StateFields| fields.put("sent", &sent);
        self.step(CALLS.len() + 1, now, inputs, AnySource::state, |law| law.on_lost(now, sent), limit);
    }
    fn law(&self) -> &AnySource {
        &self.law
    }
    fn boxed(&self) -> Box<dyn LoggedSource> {
        Box::new(self.clone())
    }
}

impl StepLog {
    /// Logs a router law's calls from now on, if the log records this protocol. The first row contains the law's
    /// current state.
    pub fn router(&self, id: ProtocolId, entity: u32, link: &LinkView, law: &mut AnyRouter) {
        if self.has(id) {
            let (part, of) = (LawPart::Router, LoggedLaw { id, in_kernel: matches!(law, AnyRouter::Kernel(..)) });
            let mut logged = Logged { law: law.clone(), log: self.clone(), of, part, entity };
            logged.step(0, Instant::ZERO, |fields| fields.put_new_link(link), AnyRouter::state, |_| (), put_poll);
            *law = AnyRouter::Logged(Box::new(logged));
        }
    }
    /// Logs a receiver law's calls from now on, if the log records this protocol.
    pub fn receiver(&self, id: ProtocolId, entity: u32, now: Instant, law: &mut AnyReceiver) {
        if self.has(id) {
            let (part, of) = (LawPart::Receiver, LoggedLaw { id, in_kernel: matches!(law, AnyReceiver::Kernel(..)) });
            let mut logged = Logged { law: law.clone(), log: self.clone(), of, part, entity };
            logged.step(0, now, |_| {}, AnyReceiver::state, |_| (), |_, (), _| {});
            *law = AnyReceiver::Logged(Box::new(logged));
        }
    }
    /// Logs a source law's calls from now on, if the log records this protocol.
    pub fn source(&self, id: ProtocolId, entity: u32, now: Instant, connection: &Connection, law: &mut AnySource) {
        if self.has(id) {
            let (part, of) = (LawPart::Source, LoggedLaw { id, in_kernel: matches!(law, AnySource::Kernel(..)) });
            let mut logged = Logged { law: law.clone(), log: self.clone(), of, part, entity };
            let limit = |law: &AnySource, (): (), fields: &mut StateFields| fields.put_limit(&law.limit());
            let inputs = |fields: &mut StateFields| {
                state_of!(fields, connection: weight, packet, initial_window, claimed_rtt);
            };
            logged.step(0, now, inputs, AnySource::state, |_| (), limit);
            *law = AnySource::Logged(Box::new(logged));
        }
    }
}
