//! Simulation of one run on several threads, with the same results as on one thread.
//!
//! Reading order: `plan` (which thread simulates what), this file (windows and what crosses between threads), `barrier`.
//! Each thread has a [`Simulation`] of the whole network and uses its own part of it; thread 0 uses the one that the
//! caller holds. A link belongs to the thread where it begins. If it ends in another thread's part, that thread's copy
//! of the link is a queue of packets that are about to arrive.
//!
//! Time passes in windows, at the end of which all threads meet once. An event of one part can cause one of another only
//! over a cut link, and not before that link's delay and shortest transmission have passed. So each part handles its
//! events up to the earliest time at which another part could interfere, as far as all parts' next events tell. At the
//! end of the window it hands over the packets whose transmission has started on its cut links; their headers are final.
//!
//! Equal bytes for any number of threads follow. Within a part, events are handled in the order of time and rank, as on
//! one thread, and neither depends on other parts (see `event`). Events of different parts at one time cannot concern each
//! other, because crossing takes longer than no time.
//!
//! Samples and the summary's window concern the whole network. A window ends where one of them is due; then thread 0
//! takes all parts together and calls what a run on one thread calls. A window also ends where a cut link's rate, delay
//! or state changes, and no packet is handed over that could concern.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use waterfill_laws::units::{Duration, Instant};
use waterfill_network::Watch;

use super::Simulation;
use super::event::{Event, Events, Observation, Slice};
use crate::flow::Flow;
use crate::packet::{Blocks, Packet, SackId};
use crate::traffic::Traffic;

mod barrier;
mod plan;

use barrier::Barrier;
use plan::{Pair, Plan};

/// Smallest difference between two simulated times.
const PICOSECOND: Duration = Duration::from_ps(1);

/// Number of windows between two polls of the watch. A long window also polls inside.
const WINDOWS_PER_POLL: usize = 64;

/// A run's division among threads, and the parts of the network that other threads simulate.
#[derive(Debug)]
pub(super) struct Parallel {
    plan: Plan,
    /// Simulations of threads 1, 2, …
    others: Vec<Simulation>,
    /// Observations of the whole network, and changes of cut links.
    observations: Vec<(Instant, Observation)>,
    /// Number of flows at the start of the run. Traffic sources start later flows, all of them in part 0.
    initial_flows: usize,
}

/// A packet that crosses from one thread's part to another's.
#[derive(Debug)]
struct Crossing {
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

/// State shared by the threads of a run while it advances.
#[derive(Debug)]
struct Shared<'a> {
    plan: &'a Plan,
    until: Instant,
    initial_flows: usize,
    parts: Vec<Mutex<&'a mut Simulation>>,
    barrier: Barrier,
    messages: [Messages; 2],
    /// Flows that traffic sources have started, for the other threads.
    started: RwLock<Vec<Flow>>,
    observations: Mutex<Vec<(Instant, Observation)>>,
    watch: Watch,
}

impl Simulation {
    /// Divides the run among at most `threads` threads and returns the number used. `None` selects the number predicted
    /// to be fastest on the idle CPUs.
    ///
    /// The results do not depend on it. A network that cannot be divided runs on one thread, and so does a run that has
    /// begun or records packets.
    pub fn set_threads(&mut self, threads: Option<usize>) -> usize {
        if self.events > 0 || self.capture.is_some() || self.steps.is_some() || self.parallel.is_some() {
            return self.threads();
        }
        let plan = match threads {
            Some(threads) => (2..=threads).rev().find_map(|parts| Plan::new(&self.network, parts)),
            None => Plan::fastest(&self.network, idle_cpus()),
        };
        self.parallel = plan.map(|plan| Box::new(Parallel::new(plan, self)));
        self.threads()
    }

    /// Returns the number of threads that the run uses.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.parallel.as_ref().map_or(1, |parallel| parallel.plan.parts)
    }

    /// Returns the simulations of the other threads.
    pub(super) fn other_parts(&self) -> &[Self] {
        self.parallel.as_ref().map_or(&[], |parallel| &parallel.others)
    }

    /// Returns a simulation of the same network for another thread, before the run begins. Its links have no router laws:
    /// [`exchange`] moves those of its part there.
    fn for_another_thread(&self) -> Self {
        let links = self.links.iter().map(|link| link.elsewhere(&self.network)).collect();
        let mut part = Self::unbuilt(Arc::clone(&self.network), links, self.watch.clone());
        part.flows.clone_from(&self.flows);
        part.order = self.order.clone();
        part.traffic = self.traffic.iter().map(Traffic::elsewhere).collect();
        (part.delay_lines, part.access_links) = (self.delay_lines.clone(), self.access_links.clone());
        part.agenda = self.agenda.clone();
        part
    }

    /// Imports the packets of cut links from a mailbox.
    fn import(&mut self, mail: &mut Mailbox) {
        let mut blocks = mail.blocks.drain(..);
        for Crossing { link, arrives, mut packet } in mail.crossings.drain(..) {
            if packet.sack != SackId::NONE {
                packet.sack = blocks.next().map_or(SackId::NONE, |blocks| self.sacks.store(blocks));
            }
            if self.links[link as usize].import(packet, arrives) {
                self.agenda.schedule(arrives, Event::Link(link));
            }
        }
    }

    /// Moves the packets of a cut link that nothing can change any more to a mailbox. Returns the earliest arrival of a
    /// moved packet and of one that stays. All events before `end` have been handled.
    fn export(&mut self, l: u32, end: Instant, mail: &mut Mailbox) -> [Instant; 2] {
        let before = end.before(PICOSECOND);
        let link = &mut self.links[l as usize];
        link.advance(before);
        let first = link.settled_head();
        while let Some(arrives) = link.settled_head() {
            let packet = link.deliver(before);
            mail.blocks.extend(self.sacks.take(packet.sack));
            mail.crossings.push(Crossing { link: l, arrives, packet });
        }
        let kept = link.next_arrival();
        if link.has_discarded() {
            self.count_drops(l);
        }
        [first.unwrap_or(Instant::NEVER), kept]
    }
}

impl Parallel {
    /// Divides a simulation that has not begun.
    fn new(plan: Plan, sim: &mut Simulation) -> Self {
        let mut others: Vec<Simulation> = (1..plan.parts).map(|_| sim.for_another_thread()).collect();
        let is_shared = |observation| match observation {
            Observation::Change(l) => plan.is_cut(l),
            Observation::WindowOpens | Observation::WindowCloses | Observation::Sample => true,
        };
        let observations = sim.agenda.take_observations(is_shared);
        for (part, sim) in std::iter::once(&mut *sim).chain(&mut others).enumerate() {
            let mut agenda = std::mem::replace(&mut sim.agenda, Events::new(0));
            agenda.retain_timers(|event| owner(&plan, sim, event) == part);
            let elsewhere = |observation| match observation {
                Observation::Change(l) => is_shared(observation) || plan.links[l as usize].0 != part,
                _ => true,
            };
            drop(agenda.take_observations(elsewhere));
            sim.agenda = agenda;
        }
        (0..sim.links.len()).filter(|&l| plan.is_cut(l as u32)).for_each(|l| sim.links[l].export());
        let initial_flows = sim.flows.len();
        Self { plan, others, observations, initial_flows }
    }

    /// Returns the number of the other threads' pending events and of shared observations.
    pub(super) fn pending(&self) -> usize {
        self.others.iter().map(|part| part.agenda.len()).sum::<usize>() + self.observations.len()
    }

    /// Simulates up to and including `until` on all threads.
    pub(super) fn advance(&mut self, sim: &mut Simulation, until: Instant) {
        exchange(&self.plan, sim, &mut self.others.iter_mut().collect::<Vec<_>>(), self.initial_flows);
        let parts = self.plan.parts;
        let messages = || Messages {
            next: (0..parts).map(|_| AtomicU64::new(0)).collect(),
            borders: self.plan.pairs.iter().map(|_| Border::default()).collect(),
            over: AtomicBool::new(false),
        };
        let shared = Shared {
            plan: &self.plan,
            until,
            initial_flows: self.initial_flows,
            started: RwLock::new(sim.flows[self.initial_flows..].to_vec()),
            watch: sim.watch.clone(),
            parts: std::iter::once(&mut *sim).chain(&mut self.others).map(Mutex::new).collect(),
            barrier: Barrier::new(parts),
            messages: [messages(), messages()],
            observations: Mutex::new(std::mem::take(&mut self.observations)),
        };
        std::thread::scope(|scope| {
            for part in 1..parts {
                let shared = &shared;
                scope.spawn(move || shared.simulate(part));
            }
            shared.simulate(0);
        });
        self.observations = shared.observations.into_inner().unwrap_or_else(PoisonError::into_inner);
        exchange(&self.plan, sim, &mut self.others.iter_mut().collect::<Vec<_>>(), self.initial_flows);
        collect(&self.plan, sim, &self.others);
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
        self.with(part, |sim| self.publish(&self.messages[0], part, sim, Instant::ZERO));
        self.barrier.wait(idle);
        loop {
            let messages = &self.messages[windows % 2];
            self.with(part, |sim| self.take_in(messages, part, sim));
            self.read_earliest(messages, &mut earliest);
            let next = earliest.iter().copied().min().unwrap_or(Instant::NEVER);
            let due = self.observed_at();
            if next.min(due) > self.until || messages.over.load(Ordering::Relaxed) {
                break;
            }
            if due <= next {
                self.barrier.wait(idle); // all have read the messages
                if part == 0 {
                    self.observe(messages);
                }
                self.barrier.wait(idle);
                continue;
            }
            let end = self.horizon(messages, part, &earliest).min(due).min(self.until + PICOSECOND);
            windows += 1;
            let messages = &self.messages[windows % 2];
            self.with(part, |sim| {
                sim.run(&mut Slice::new(end, u64::MAX, &self.watch));
                self.publish(messages, part, sim, end);
            });
            if part == 0 {
                let over = self.watch.is_stopped() || (windows % WINDOWS_PER_POLL == 0 && self.watch.poll());
                messages.over.store(over, Ordering::Relaxed);
            }
            self.barrier.wait(idle);
        }
    }

    fn with<T>(&self, part: usize, act: impl FnOnce(&mut Simulation) -> T) -> T {
        act(&mut lock(&self.parts[part]))
    }

    /// Returns the plan's pairs and their borders.
    fn borders<'a>(&'a self, messages: &'a Messages) -> impl Iterator<Item = (&'a Pair, &'a Border)> {
        self.plan.pairs.iter().zip(&messages.borders)
    }

    /// Hands over a part's packets after a window and publishes when its next event is due.
    fn publish(&self, messages: &Messages, part: usize, sim: &mut Simulation, end: Instant) {
        for (pair, border) in self.borders(messages).filter(|(pair, _)| pair.from == part) {
            let (mut mail, mut first) = (lock(&border.mail), [Instant::NEVER; 2]);
            for &l in &pair.links {
                let [handed_over, kept] = sim.export(l, end, &mut mail);
                first = [first[0].min(handed_over), first[1].min(kept)];
            }
            let [handed_over, kept] = first.map(Instant::as_ps);
            border.handed_over.store(handed_over, Ordering::Relaxed);
            border.kept.store(kept, Ordering::Relaxed);
        }
        messages.next[part].store(sim.agenda.next_time().as_ps(), Ordering::Relaxed);
        if part == 0 && sim.flows.len() > self.initial_flows {
            let mut started = self.started.write().unwrap_or_else(PoisonError::into_inner);
            let known = self.initial_flows + started.len();
            started.extend(sim.flows[known..].iter().cloned());
        }
    }

    /// Imports the flows and packets that the other threads have handed over.
    fn take_in(&self, messages: &Messages, part: usize, sim: &mut Simulation) {
        if part > 0 {
            let started = self.started.read().unwrap_or_else(PoisonError::into_inner);
            let known = sim.flows.len() - self.initial_flows;
            sim.flows.extend(started[known..].iter().cloned()); // for their routes
        }
        for (_, border) in self.borders(messages).filter(|(pair, _)| pair.to == part) {
            sim.import(&mut lock(&border.mail));
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
        let caused = earliest.iter().zip(&self.plan.lookahead).map(|(&next, lookahead)| next + lookahead[part]);
        kept.chain(caused).min().unwrap_or(Instant::NEVER)
    }

    /// Returns the time of the next shared observation; `NEVER` if there is none.
    fn observed_at(&self) -> Instant {
        lock(&self.observations).iter().min().map_or(Instant::NEVER, |&(time, _)| time)
    }

    /// Handles the next shared observation. Only thread 0 calls this, while the others wait.
    fn observe(&self, messages: &Messages) {
        let mut parts: Vec<_> = self.parts.iter().map(lock).collect();
        let (first, others) = parts.split_at_mut(1);
        let sim: &mut Simulation = &mut first[0];
        let mut others: Vec<&mut Simulation> = others.iter_mut().map(|part| &mut ***part).collect();
        let mut observations = lock(&self.observations);
        let Some(next) = (0..observations.len()).min_by_key(|&i| observations[i]) else { return };
        let (now, observation) = observations.swap_remove(next);
        let following = if let Observation::Change(l) = observation {
            let part = self.plan.links[l as usize].0;
            let owner: &mut Simulation = if part == 0 { sim } else { others[part - 1] };
            let following = owner.observe(now, observation);
            for (pair, border) in self.borders(messages).filter(|(pair, _)| pair.links.contains(&l)) {
                let kept = pair.links.iter().map(|&l| owner.links[l as usize].next_arrival()).min();
                border.kept.store(kept.unwrap_or(Instant::NEVER).as_ps(), Ordering::Relaxed);
            }
            following
        } else {
            exchange(self.plan, sim, &mut others, self.initial_flows);
            collect(self.plan, sim, &others.iter().map(|part| &**part).collect::<Vec<_>>());
            let following = sim.observe(now, observation);
            exchange(self.plan, sim, &mut others, self.initial_flows);
            following
        };
        observations.extend(following.map(|time| (time, observation)));
    }
}

/// Reads a time that a thread has published.
fn read(time: &AtomicU64) -> Instant {
    Instant::from_ps(time.load(Ordering::Relaxed))
}

/// Returns the part whose thread handles an event.
fn owner(plan: &Plan, sim: &Simulation, event: Event) -> usize {
    match event {
        Event::Sender(f) => hosts(plan, sim, f as usize).0,
        Event::Receiver(f) => hosts(plan, sim, f as usize).1,
        Event::Traffic(t) => plan.traffic[t as usize].0,
        Event::Link(l) | Event::Reordered(l) => plan.links[l as usize].0,
        Event::DelayLine(_) | Event::Access(_) => 0, // none before the run begins
    }
}

/// Returns the parts of a flow's sender and receiver.
fn hosts(plan: &Plan, sim: &Simulation, f: usize) -> (usize, usize) {
    match sim.flows[f].owner {
        crate::flow::Owner::Group(group) => plan.groups[group as usize],
        _ => (0, 0),
    }
}

/// Swaps the state of other threads between their simulations and thread 0's simulation. Thread 0 then has the whole
/// network, or only its own part again.
fn exchange(plan: &Plan, sim: &mut Simulation, others: &mut [&mut Simulation], initial_flows: usize) {
    for (l, &(from, _)) in plan.links.iter().enumerate().filter(|(_, (from, _))| *from > 0) {
        std::mem::swap(&mut sim.links[l], &mut others[from - 1].links[l]);
    }
    for f in 0..initial_flows {
        let (sender, receiver) = hosts(plan, sim, f);
        if sender > 0 {
            std::mem::swap(&mut sim.flows[f].sender, &mut others[sender - 1].flows[f].sender);
        }
        if receiver > 0 {
            std::mem::swap(&mut sim.flows[f].receiver, &mut others[receiver - 1].flows[f].receiver);
        }
    }
}

/// Copies the counts of traffic sources from other threads to thread 0, for samples and the summary.
fn collect<S: std::borrow::Borrow<Simulation>>(plan: &Plan, sim: &mut Simulation, others: &[S]) {
    for (t, &(source, sink)) in plan.traffic.iter().enumerate() {
        if source > 0 {
            sim.traffic[t].sent = others[source - 1].borrow().traffic[t].sent;
        }
        if sink > 0 {
            let there = &others[sink - 1].borrow().traffic[t];
            let here = &mut sim.traffic[t];
            (here.received, here.bytes_total) = (there.received, there.bytes_total);
            here.bytes_counted = there.bytes_counted;
        }
    }
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
