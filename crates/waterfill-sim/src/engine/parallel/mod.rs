//! Simulation of one run on several threads, with the same results as on one thread.
//!
//! Reading order: `plan` (which thread simulates what), `divide`, this file (windows and what crosses between threads),
//! `barrier`. Each thread has a [`Part`] of the network. A link belongs to the part where it begins. If it ends in another
//! part, that part has the link's far end, a queue of packets that are about to arrive.
//!
//! Time passes in windows, at the end of which all threads meet once. An event of one part can cause one of another only
//! over a cut link, and not before that link's delay and shortest transmission have passed. So each part handles its
//! events up to the earliest time at which another part could interfere, as far as all parts' next events tell. At the
//! end of the window it hands over the packets whose transmission has started on its cut links; their headers are final.
//! A packet that a change of its link could still move is kept, and arrives no earlier than the change and the link's
//! shortest delay.
//!
//! Equal bytes for any number of threads follow. Within a part, events are handled in the order of time and rank, as on
//! one thread, and neither depends on other parts (see `event`). Events of different parts at one time cannot concern each
//! other, because crossing takes longer than no time.
//!
//! Samples and the summary's window concern the whole network. A window ends where one of them is due; then thread 0
//! reads all parts, as on one thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use waterfill_laws::telemetry::Stack;
use waterfill_laws::units::{Duration, Instant};
use waterfill_network::Watch;

use super::event::{Event, Slice};
use super::record::Record;
use super::{Part, Simulation, path};
use crate::packet::{Blocks, Packet, SackId};

mod barrier;
mod divide;
mod plan;

use barrier::Barrier;
use divide::divide;
use plan::Plan;

/// Smallest difference between two simulated times.
const PICOSECOND: Duration = Duration::from_ps(1);

/// Number of windows between two polls of the watch. A long window also polls inside.
const WINDOWS_PER_POLL: usize = 64;

/// Number of packets for which an emptied mailbox keeps memory. Most windows have fewer; the fullest one has many times
/// as many, and two mailboxes for each pair of parts would keep that.
const KEPT_PACKETS: usize = 128;

/// What connects the parts of a network.
#[derive(Debug, Default)]
pub(super) struct Division {
    pairs: Vec<Pair>,
    /// Lookahead from each part to each: see [`Plan`].
    lookahead: Vec<Vec<Duration>>,
}

/// Two parts with cut links from the first to the second.
#[derive(Debug)]
struct Pair {
    from: usize,
    to: usize,
    links: Vec<CutLink>,
}

/// A link that begins in one part and ends in another.
#[derive(Clone, Copy, Debug)]
struct CutLink {
    /// Indices of the link where it begins and of its far end, each in its part.
    here: u32,
    there: u32,
    /// Shortest delay that the link ever has.
    min_delay: Duration,
}

/// A packet that crosses from one thread's part to another's.
#[derive(Debug)]
struct Crossing {
    /// Index of the link's far end.
    link: u32,
    arrives: Instant,
    packet: Packet,
}

/// Packets that one thread hands over to another after a window.
#[derive(Debug, Default)]
struct Mailbox {
    crossings: Vec<Crossing>,
    /// Selective acknowledgements of those packets that carry some, in the packets' order.
    blocks: Vec<Blocks>,
    /// Telemetry of the packets that have it. Each has blocks, too.
    stacks: Vec<Stack>,
}

impl Mailbox {
    /// Releases the memory of an emptied mailbox that had many packets.
    fn release(&mut self) {
        if self.crossings.capacity() > KEPT_PACKETS {
            *self = Self::default();
        }
    }
}

/// State of the cut links from one part to another.
#[derive(Debug, Default)]
struct Border {
    mail: Mutex<Mailbox>,
    /// Earliest arrival of a packet in the mailbox, in picoseconds.
    handed_over: AtomicU64,
    /// Earliest arrival of a packet that stays with the sending part, in picoseconds.
    kept: AtomicU64,
}

/// Messages of the threads at the end of a window. There are two sets, since a fast thread may write the next before a
/// slow one has read this one.
#[derive(Debug)]
struct Messages {
    /// Time of each part's next event, in picoseconds. Packets in mailboxes do not count.
    next: Vec<AtomicU64>,
    /// One border for each of the plan's pairs.
    borders: Vec<Border>,
    /// True if the run stops here. Thread 0 decides, so that all threads agree.
    over: AtomicBool,
}

/// What a part does next.
enum Step {
    /// Handle all events before a time.
    Window(Instant),
    /// Wait until the network has been read.
    Read,
    /// Stop: all events are handled, or the run is stopped.
    Over,
}

/// CPU times of a run whose parts were simulated in turn, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Turns {
    /// Time of each part.
    pub parts_s: Vec<f64>,
    /// Sum over windows of the time of the slowest part. Threads with a CPU each take this time and that of the barriers.
    pub slowest_s: f64,
    /// Number of windows.
    pub windows: u64,
}

/// State shared by the threads of a run while it advances.
#[derive(Debug)]
struct Shared<'a> {
    division: &'a Division,
    until: Instant,
    parts: Vec<Mutex<&'a mut Part>>,
    record: Mutex<&'a mut Record>,
    /// Time at which the network is read next, in picoseconds.
    read_at: AtomicU64,
    barrier: Barrier,
    messages: [Messages; 2],
    watch: Watch,
}

impl Simulation {
    /// Divides the run among at most `threads` threads and returns the number used. `None` selects the number predicted
    /// to be fastest on the idle CPUs.
    ///
    /// The results do not depend on it. A network that cannot be divided runs on one thread, and so does a run that has
    /// begun, records packets or logs, or has switches that pause links.
    pub fn set_threads(&mut self, threads: Option<usize>) -> usize {
        let part = &self.parts[0];
        let records = !part.input_of.is_empty()
            || part.capture.is_some()
            || part.qlog.is_some()
            || part.steps.is_some()
            || !part.endpoints.is_empty();
        if self.events() > 0 || records || self.parts.len() > 1 {
            return self.threads();
        }
        let plan = match threads {
            Some(threads) => (2..=threads).rev().find_map(|parts| Plan::new(&self.network, parts)),
            None => Plan::fastest(&self.network, idle_cpus()),
        };
        if let Some(plan) = plan {
            let whole = std::mem::replace(&mut self.parts[0], Part::empty(&self.network, &self.watch));
            let pairs;
            (self.parts, self.record.places, pairs) = divide(whole, &plan);
            self.division = Division { pairs, lookahead: plan.lookahead };
        }
        self.threads()
    }

    /// Returns the number of threads that the run uses.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.parts.len()
    }

    /// Simulates up to and including `until` on all threads.
    pub(super) fn run_divided(&mut self, until: Instant) {
        let parts = self.parts.len();
        self.with_shared(until, |shared| {
            std::thread::scope(|scope| {
                for part in 1..parts {
                    scope.spawn(move || shared.simulate(part));
                }
                shared.simulate(0);
            });
        });
    }

    /// Simulates the whole run with its parts in turn on this thread, and returns their times by a clock that counts
    /// seconds. `None` if the run is not divided.
    pub fn run_in_turns(&mut self, clock: impl Fn() -> f64) -> Option<Turns> {
        if self.parts.len() == 1 {
            return None;
        }
        let turns = self.with_shared(self.end, |shared| shared.simulate_in_turns(clock));
        self.advance(self.end); // the rest of the last interval
        Some(turns)
    }

    fn with_shared<T>(&mut self, until: Instant, act: impl FnOnce(&Shared<'_>) -> T) -> T {
        let (division, parts) = (&self.division, self.parts.len());
        let messages = || Messages {
            next: (0..parts).map(|_| AtomicU64::new(0)).collect(),
            borders: division.pairs.iter().map(|_| Border::default()).collect(),
            over: AtomicBool::new(false),
        };
        let shared = Shared {
            division,
            until,
            read_at: AtomicU64::new(self.record.due().as_ps()),
            parts: self.parts.iter_mut().map(Mutex::new).collect(),
            record: Mutex::new(&mut self.record),
            barrier: Barrier::new(parts),
            messages: [messages(), messages()],
            watch: self.watch.clone(),
        };
        act(&shared)
    }
}

impl Part {
    /// Imports the packets of cut links from a mailbox.
    fn import(&mut self, mail: &mut Mailbox) {
        let (mut blocks, mut stacks) = (mail.blocks.drain(..), mail.stacks.drain(..));
        for Crossing { link, arrives, mut packet } in mail.crossings.drain(..) {
            if packet.sack != SackId::NONE {
                packet.sack = blocks.next().map_or(SackId::NONE, |blocks| self.sacks.store(blocks));
                if let Some(stack) = stacks.next() {
                    self.sacks.store_stack(packet.sack, stack);
                }
            }
            if self.links[link as usize].import(packet, arrives) {
                self.agenda.schedule(arrives, Event::Link(link));
            }
        }
        drop((blocks, stacks));
        mail.release();
    }

    /// Moves the packets of a cut link that nothing can change any more to a mailbox. Returns the earliest arrival of a
    /// moved packet and the time before which none arrives that stays. All events before `end` have been handled.
    fn export(&mut self, cut: CutLink, end: Instant, mail: &mut Mailbox) -> [Instant; 2] {
        let before = end.before(PICOSECOND);
        let link = &mut self.links[cut.here as usize];
        link.advance(before);
        let first = link.settled_head(before);
        while let Some(arrives) = link.settled_head(before) {
            let packet = link.deliver(before);
            if self.telemetry && packet.sack != SackId::NONE {
                mail.stacks.push(self.sacks.stack(packet.sack).copied().unwrap_or_default());
            }
            mail.blocks.extend(self.sacks.take(packet.sack));
            mail.crossings.push(Crossing { link: cut.there, arrives, packet });
        }
        let kept = link.earliest_arrival(cut.min_delay);
        if link.has_discarded() {
            self.count_drops(cut.here);
        }
        [first.unwrap_or(Instant::NEVER), kept]
    }
}

impl Shared<'_> {
    /// Simulates one part up to the end, window by window.
    fn simulate(&self, part: usize) {
        let _guard = self.barrier.guard();
        // Thread 0 is its caller's, where signals arrive.
        let idle = || {
            if part == 0 {
                let _ = self.watch.poll(); // the end of the window looks at the answer
            }
        };
        let (mut earliest, mut windows) = (Vec::new(), 0);
        self.publish(0, part, Instant::ZERO);
        self.barrier.wait(idle);
        loop {
            match self.next_step(windows, part, &mut earliest) {
                Step::Over => break,
                Step::Read => {
                    self.barrier.wait(idle); // all have read the messages
                    if part == 0 {
                        self.observe();
                    }
                }
                Step::Window(end) => {
                    windows += 1;
                    self.run_window(windows, part, end);
                }
            }
            self.barrier.wait(idle);
        }
    }

    /// Simulates all parts up to the end on this thread, one after the other in each window.
    fn simulate_in_turns(&self, clock: impl Fn() -> f64) -> Turns {
        let (mut earliest, mut windows) = (Vec::new(), 0);
        let mut turns = Turns { parts_s: vec![0.0; self.parts.len()], slowest_s: 0.0, windows: 0 };
        (0..self.parts.len()).for_each(|part| self.publish(0, part, Instant::ZERO));
        loop {
            let (mut step, mut slowest_s) = (Step::Over, 0.0_f64);
            for (part, sum_s) in turns.parts_s.iter_mut().enumerate() {
                let began_s = clock();
                step = self.next_step(windows, part, &mut earliest);
                if let Step::Window(end) = step {
                    self.run_window(windows + 1, part, end);
                }
                let took_s = clock() - began_s;
                (*sum_s, slowest_s) = (*sum_s + took_s, slowest_s.max(took_s));
            }
            turns.slowest_s += slowest_s;
            match step {
                Step::Over => return Turns { windows: windows as u64, ..turns },
                Step::Read => self.observe(),
                Step::Window(_) => windows += 1,
            }
        }
    }

    /// Takes in what the last window has sent to a part, and returns what the part does next. All parts take the same
    /// kind of step.
    fn next_step(&self, windows: usize, part: usize, earliest: &mut Vec<Instant>) -> Step {
        let messages = &self.messages[windows % 2];
        self.take_in(messages, part);
        self.read_earliest(messages, earliest);
        let next = earliest.iter().copied().min().unwrap_or(Instant::NEVER);
        let due = read(&self.read_at);
        if next.min(due) > self.until || messages.over.load(Ordering::Relaxed) {
            Step::Over
        } else if due <= next {
            Step::Read
        } else {
            Step::Window(self.horizon(messages, part, earliest).min(due).min(self.until + PICOSECOND))
        }
    }

    /// Handles the events of a part's window.
    fn run_window(&self, windows: usize, part: usize, end: Instant) {
        lock(&self.parts[part]).run(&mut Slice::new(end, u64::MAX, &self.watch), Instant::NEVER);
        self.publish(windows, part, end);
        if part == 0 {
            let over = self.watch.is_stopped() || (windows % WINDOWS_PER_POLL == 0 && self.watch.poll());
            self.messages[windows % 2].over.store(over, Ordering::Relaxed);
        }
    }

    /// Returns the pairs of parts and their borders.
    fn borders<'a>(&'a self, messages: &'a Messages) -> impl Iterator<Item = (&'a Pair, &'a Border)> {
        self.division.pairs.iter().zip(&messages.borders)
    }

    /// Hands over a part's packets after a window and publishes when its next event is due.
    fn publish(&self, windows: usize, part: usize, end: Instant) {
        let messages = &self.messages[windows % 2];
        let mut own = lock(&self.parts[part]);
        for (pair, border) in self.borders(messages).filter(|(pair, _)| pair.from == part) {
            let (mut mail, mut first) = (lock(&border.mail), [Instant::NEVER; 2]);
            for &link in &pair.links {
                let [handed_over, kept] = own.export(link, end, &mut mail);
                first = [first[0].min(handed_over), first[1].min(kept)];
            }
            let [handed_over, kept] = first.map(Instant::as_ps);
            border.handed_over.store(handed_over, Ordering::Relaxed);
            border.kept.store(kept, Ordering::Relaxed);
        }
        messages.next[part].store(own.agenda.next_time().as_ps(), Ordering::Relaxed);
    }

    /// Imports the packets that the other threads have handed over.
    fn take_in(&self, messages: &Messages, part: usize) {
        let mut own = lock(&self.parts[part]);
        for (_, border) in self.borders(messages).filter(|(pair, _)| pair.to == part) {
            own.import(&mut lock(&border.mail));
        }
    }

    /// Fills in the time of each part's next event, as far as it follows from what has been sent.
    fn read_earliest(&self, messages: &Messages, earliest: &mut Vec<Instant>) {
        earliest.clear();
        earliest.extend(messages.next.iter().map(read));
        for (pair, border) in self.borders(messages) {
            let arrives = read(&border.handed_over).min(read(&border.kept));
            earliest[pair.to] = earliest[pair.to].min(arrives);
        }
    }

    /// Returns the time before which nothing more can reach a part.
    fn horizon(&self, messages: &Messages, part: usize, earliest: &[Instant]) -> Instant {
        let kept = self.borders(messages).filter(|(pair, _)| pair.to == part).map(|(_, border)| read(&border.kept));
        let caused = earliest.iter().zip(&self.division.lookahead).map(|(&next, lookahead)| next + lookahead[part]);
        kept.chain(caused).min().unwrap_or(Instant::NEVER)
    }

    /// Reads all parts. Only thread 0 calls this, while the others wait.
    fn observe(&self) {
        let mut parts: Vec<_> = self.parts.iter().map(lock).collect();
        let mut record = lock(&self.record);
        record.observe(&mut parts.iter_mut().map(|part| &mut ***part).collect::<Vec<_>>());
        self.read_at.store(record.due().as_ps(), Ordering::Relaxed);
    }
}

/// Reads a time that a thread has published.
fn read(time: &AtomicU64) -> Instant {
    Instant::from_ps(time.load(Ordering::Relaxed))
}

/// Returns the number of usable CPUs, less those busy in the last minute.
///
/// Threads that wait for each other lose more to other processes than one thread does.
fn idle_cpus() -> usize {
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let busy = load.split(' ').next().and_then(|minute| minute.parse().ok()).unwrap_or(0.0_f64);
    usable.saturating_sub(busy.round() as usize)
}

/// Locks a mutex that no other thread holds, because threads take turns at barriers.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
