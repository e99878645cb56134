//! Simulation of one run on several threads, with the same results as on one thread.
//!
//! Reading order: `plan` (which thread simulates what), this file (windows and what crosses between threads), `order`
//! (sequence numbers), `barrier`. Each thread has a [`Simulation`] of the whole network and uses its own part of it;
//! thread 0 uses the one that the caller holds. A link belongs to the thread where it begins. If it ends in another
//! thread's part, that thread's copy of the link is a queue of packets that are about to arrive.
//!
//! Time passes in windows. A window begins at the earliest event of all threads and is as long as the lookahead, which
//! is the least time from the start of a transmission on a cut link to its arrival. So a packet that arrives in the
//! window has started before it, and is handed over before the window begins. In the window the threads need nothing of
//! each other. After it they agree on sequence numbers, so that all ties are broken as one thread breaks them.
//!
//! Samples and the summary's window concern the whole network. A window ends where one of them is due; then thread 0
//! takes all parts together and calls what a run on one thread calls. A window also ends where a cut link's rate, delay
//! or state changes, so that no packet is handed over that the change concerns.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use waterfill_laws::units::{Duration, Instant};
use waterfill_network::Watch;

use super::Simulation;
use super::event::{Event, Timed};
use crate::flow::Flow;
use crate::packet::{Blocks, Packet, SackId};

mod barrier;
mod order;
mod plan;

pub(super) use order::Journal;

use barrier::Barrier;
use order::{Handled, LoggedWindow, Merge};
use plan::Plan;

/// Smallest difference between two simulated times.
const PICOSECOND: Duration = Duration::from_ps(1);

/// Number of windows between two polls of the watch. A long window also polls inside.
const WINDOWS_PER_POLL: u32 = 64;

/// A run's division among threads, and the parts of the network that other threads simulate.
#[derive(Debug)]
pub(super) struct Parallel {
    plan: Plan,
    /// Simulations of threads 1, 2, …
    others: Vec<Simulation>,
    /// Events handled between two windows: those that concern the whole network, and changes of cut links.
    observations: Vec<Timed>,
    /// Last sequence number on which all threads agree.
    settled: u64,
    /// Number of flows at the start of the run. Traffic sources start later flows, all of them in part 0.
    initial_flows: usize,
}

/// A packet that crosses from one thread's part to another's.
#[derive(Debug)]
struct Crossing {
    link: u32,
    arrives: Instant,
    order: u64,
    packet: Packet,
}

/// Packets that one thread hands over to another before a window.
#[derive(Debug, Default)]
struct Mailbox {
    crossings: Vec<Crossing>,
    /// Selective acknowledgements of those packets that carry some, in the packets' order.
    blocks: Vec<Blocks>,
}

/// State shared by the threads of a run while it advances.
#[derive(Debug)]
struct Shared<'a> {
    plan: &'a Plan,
    until: Instant,
    initial_flows: usize,
    parts: Vec<Mutex<&'a mut Simulation>>,
    barrier: Barrier,
    logs: Vec<RwLock<Vec<Handled>>>,
    /// Time of each part's next event, in picoseconds.
    next: Vec<AtomicU64>,
    /// Mailboxes by receiving thread, then by sending thread.
    mail: Vec<Vec<Mutex<Mailbox>>>,
    /// Flows that traffic sources have started, for the other threads.
    started: RwLock<Vec<Flow>>,
    observations: Mutex<Vec<Timed>>,
    settled: AtomicU64,
    watch: Watch,
    /// True if the run stops after this window. Thread 0 decides, so that all threads agree.
    over: AtomicBool,
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
        if let Some(plan) = plan {
            self.parallel = Parallel::new(plan, self).map(Box::new);
        }
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

    /// Returns the earlier of this part's next event and its next arrival over a cut link.
    fn next_event(&self, exported: &[u32]) -> Instant {
        let arrivals = exported.iter().map(|&l| self.links[l as usize].next_arrival());
        arrivals.chain(self.agenda.peek().map(|entry| entry.time)).min().unwrap_or(Instant::NEVER)
    }

    /// Imports the packets of cut links from a mailbox.
    fn import(&mut self, mail: &mut Mailbox) {
        let mut blocks = mail.blocks.drain(..);
        for Crossing { link, arrives, order, mut packet } in mail.crossings.drain(..) {
            if packet.sack != SackId::NONE {
                packet.sack = blocks.next().map_or(SackId::NONE, |blocks| self.sacks.store(blocks));
            }
            if self.links[link as usize].import(packet, arrives, order) {
                self.agenda.schedule(arrives, order, Event::Link(link));
            }
        }
    }
}

impl Parallel {
    /// Divides a simulation that has not begun into the parts of `plan`.
    fn new(plan: Plan, sim: &mut Simulation) -> Option<Self> {
        let build = |_| Simulation::watched(sim.network.clone(), sim.watch.clone()).ok();
        let mut others: Vec<Simulation> = (1..plan.parts).map(build).collect::<Option<_>>()?;
        let observations = sim.agenda.iter().filter(|entry| owner(&plan, sim, entry.event).is_none()).collect();
        let keep_own = |part: usize, sim: &mut Simulation| {
            let mut agenda = std::mem::take(&mut sim.agenda);
            agenda.retain_timers(|entry| owner(&plan, sim, entry.event) == Some(part));
            sim.agenda = agenda;
        };
        for (part, other) in (1..).zip(&mut others) {
            keep_own(part, other);
        }
        keep_own(0, sim);
        for sim in std::iter::once(&mut *sim).chain(&mut others) {
            sim.journal = Some(Box::default());
        }
        let cut = plan.links.iter().enumerate().filter(|(_, (from, to))| from != to);
        cut.for_each(|(l, _)| sim.links[l].export());
        let (settled, initial_flows) = (sim.order, sim.flows.len());
        Some(Self { plan, others, observations, settled, initial_flows })
    }

    /// Returns the number of events that are pending in other threads or concern the whole network.
    pub(super) fn pending(&self) -> usize {
        self.others.iter().map(|part| part.agenda.len()).sum::<usize>() + self.observations.len()
    }

    /// Simulates up to and including `until` on all threads.
    pub(super) fn advance(&mut self, sim: &mut Simulation, until: Instant) {
        exchange(&self.plan, sim, &mut self.others.iter_mut().collect::<Vec<_>>(), self.initial_flows);
        let parts = self.plan.parts;
        let started = sim.flows[self.initial_flows..].to_vec();
        let watch = sim.watch.clone();
        let shared = Shared {
            plan: &self.plan,
            until,
            initial_flows: self.initial_flows,
            parts: std::iter::once(&mut *sim).chain(&mut self.others).map(Mutex::new).collect(),
            barrier: Barrier::new(parts),
            logs: (0..parts).map(|_| RwLock::default()).collect(),
            next: (0..parts).map(|_| AtomicU64::new(0)).collect(),
            mail: (0..parts).map(|_| (0..parts).map(|_| Mutex::default()).collect()).collect(),
            started: RwLock::new(started),
            observations: Mutex::new(std::mem::take(&mut self.observations)),
            settled: AtomicU64::new(self.settled),
            watch,
            over: AtomicBool::new(false),
        };
        std::thread::scope(|scope| {
            for part in 1..parts {
                let shared = &shared;
                scope.spawn(move || shared.simulate(part));
            }
            shared.simulate(0);
        });
        self.settled = shared.settled.load(Ordering::Relaxed);
        self.observations = shared.observations.into_inner().unwrap_or_else(PoisonError::into_inner);
        exchange(&self.plan, sim, &mut self.others.iter_mut().collect::<Vec<_>>(), self.initial_flows);
        collect(&self.plan, sim, &self.others);
    }
}

impl Shared<'_> {
    /// Simulates one part up to `until`, window by window.
    fn simulate(&self, part: usize) {
        let _guard = self.barrier.guard();
        // Thread 0 is its caller's, where signals arrive.
        let idle = || {
            if part == 0 {
                let _ = self.watch.poll(); // the end of the window looks at the answer
            }
        };
        let exported = self.plan.cut_links_of(part);
        let (mut settled, mut shifts, mut windows) = (self.settled.load(Ordering::Relaxed), Vec::new(), 0u32);
        self.with(part, |sim| self.publish(part, sim.next_event(&exported)));
        self.barrier.wait(idle);
        loop {
            let next = self.next.iter().map(|next| next.load(Ordering::Relaxed)).min().unwrap_or(0);
            let observation = lock(&self.observations).iter().map(|entry| (entry.time, entry.order)).min();
            let (next, due) = (Instant::from_ps(next), observation.unwrap_or((Instant::NEVER, 0)));
            if next.min(due.0) > self.until || self.over.load(Ordering::Relaxed) {
                break;
            }
            let horizon = next + self.plan.lookahead;
            let limit = (horizon, 0).min(due).min((self.until + PICOSECOND, 0));
            if next <= limit.0 {
                // Not further than the window: a change at its end may reschedule what arrives later.
                let horizon = horizon.min(limit.0 + PICOSECOND);
                self.with(part, |sim| self.hand_over(part, sim, &exported, next, horizon));
            }
            self.barrier.wait(idle);
            self.with(part, |sim| {
                self.take_in(part, sim);
                let mut log = self.logs[part].write().unwrap_or_else(PoisonError::into_inner);
                sim.order = settled;
                sim.run(&mut LoggedWindow::new(limit, settled, &mut log, &self.watch));
                self.publish(part, sim.next_event(&exported));
            });
            if part == 0 {
                windows += 1;
                let over = self.watch.is_stopped() || (windows % WINDOWS_PER_POLL == 0 && self.watch.poll());
                self.over.store(over, Ordering::Relaxed);
            }
            self.barrier.wait(idle);
            settled = self.with(part, |sim| self.renumber(part, sim, settled, &mut shifts));
            if limit == due {
                self.barrier.wait(idle);
                if part == 0 {
                    self.observe(limit.0, settled);
                }
                self.barrier.wait(idle);
                settled = self.settled.load(Ordering::Relaxed);
            }
        }
        if part == 0 {
            self.settled.store(settled, Ordering::Relaxed);
        }
    }

    fn with<T>(&self, part: usize, act: impl FnOnce(&mut Simulation) -> T) -> T {
        act(&mut lock(&self.parts[part]))
    }

    /// Publishes the time of a part's next event.
    fn publish(&self, part: usize, next: Instant) {
        self.next[part].store(next.as_ps(), Ordering::Relaxed);
    }

    /// Hands over the packets of cut links that arrive before `horizon`. Their transmission started before `next`.
    fn hand_over(&self, part: usize, sim: &mut Simulation, exported: &[u32], next: Instant, horizon: Instant) {
        let before = next.before(PICOSECOND);
        for &l in exported {
            let link = &mut sim.links[l as usize];
            if link.next_arrival() >= horizon {
                continue;
            }
            link.advance(before); // a scheduler may have nothing on the wire yet
            let mut mail = lock(&self.mail[self.plan.links[l as usize].1][part]);
            while let Some((arrives, order)) = link.head().filter(|&(arrives, _)| arrives < horizon) {
                let packet = link.deliver(before);
                mail.blocks.extend(sim.sacks.take(packet.sack));
                mail.crossings.push(Crossing { link: l, arrives, order, packet });
            }
            if link.has_discarded() {
                sim.count_drops(l);
            }
        }
        if part == 0 && sim.flows.len() > self.initial_flows {
            let mut started = self.started.write().unwrap_or_else(PoisonError::into_inner);
            let known = self.initial_flows + started.len();
            started.extend(sim.flows[known..].iter().cloned());
        }
    }

    /// Takes over packets and started flows from the other threads.
    fn take_in(&self, part: usize, sim: &mut Simulation) {
        if part > 0 {
            let started = self.started.read().unwrap_or_else(PoisonError::into_inner);
            let known = sim.flows.len() - self.initial_flows;
            sim.flows.extend(started[known..].iter().cloned()); // for their routes
        }
        for mail in &self.mail[part] {
            sim.import(&mut lock(mail));
        }
    }

    /// Replaces the sequence numbers that a part assigned in the last window by the sequential ones. Returns the last
    /// number.
    fn renumber(&self, part: usize, sim: &mut Simulation, settled: u64, shifts: &mut Vec<u64>) -> u64 {
        let guards: Vec<_> = self.logs.iter().map(|log| log.read().unwrap_or_else(PoisonError::into_inner)).collect();
        let logs: Vec<&[Handled]> = guards.iter().map(|log| log.as_slice()).collect();
        let merge = Merge { logs: &logs, settled };
        merge.shifts(part, shifts);
        if let Some(mut journal) = sim.journal.take() {
            journal.renumber(sim, settled, shifts);
            sim.journal = Some(journal);
        }
        merge.settled_after()
    }

    /// Handles the event at the end of a window, on thread 0 while the other threads wait.
    fn observe(&self, now: Instant, settled: u64) {
        let mut parts: Vec<_> = self.parts.iter().map(lock).collect();
        let (first, others) = parts.split_at_mut(1);
        let sim: &mut Simulation = &mut first[0];
        let mut others: Vec<&mut Simulation> = others.iter_mut().map(|part| &mut ***part).collect();
        let mut observations = lock(&self.observations);
        let Some(due) = (0..observations.len()).min_by_key(|&i| (observations[i].time, observations[i].order)) else {
            return;
        };
        let event = observations.swap_remove(due).event;
        if let Event::Change(l) = event {
            let part = self.plan.links[l as usize].0;
            let owner: &mut Simulation = if part == 0 { sim } else { others[part - 1] };
            (owner.now, owner.order) = (now, settled);
            owner.events += 1;
            if let Some(time) = owner.observe(event) {
                owner.order += 1;
                observations.push(Timed { time, order: owner.order, event });
            }
            self.settled.store(owner.order, Ordering::Relaxed);
            self.publish(part, owner.next_event(&self.plan.cut_links_of(part)));
            return;
        }
        exchange(self.plan, sim, &mut others, self.initial_flows);
        let read: Vec<&Simulation> = others.iter().map(|part| &**part).collect();
        collect(self.plan, sim, &read);
        (sim.now, sim.order) = (now, settled);
        sim.events += 1;
        if let Some(time) = sim.observe(event) {
            sim.order += 1;
            observations.push(Timed { time, order: sim.order, event });
        }
        self.settled.store(sim.order, Ordering::Relaxed);
        exchange(self.plan, sim, &mut others, self.initial_flows);
    }
}

/// Returns the part whose thread handles an event; `None` if it is handled between two windows.
fn owner(plan: &Plan, sim: &Simulation, event: Event) -> Option<usize> {
    match event {
        Event::Sender(f) => Some(hosts(plan, sim, f as usize).0),
        Event::Receiver(f) => Some(hosts(plan, sim, f as usize).1),
        Event::Traffic(t) => Some(plan.traffic[t as usize].0),
        Event::Link(l) | Event::Reordered(l) => Some(plan.links[l as usize].0),
        Event::DelayLine(_) | Event::Access(_) => Some(0), // none before the run begins
        Event::Change(l) => Some(plan.links[l as usize]).filter(|(from, to)| from == to).map(|(from, _)| from),
        Event::Sample | Event::WindowOpens | Event::WindowCloses => None,
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
