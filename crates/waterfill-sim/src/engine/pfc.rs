//! Switches that drop nothing: they pause the links at their inputs before their buffer is full (PFC).
//!
//! A switch counts the waiting bytes that came by each of its inputs. An input whose count reaches a threshold is asked to
//! pause; what still arrives takes the input's headroom, a part of the buffer of its own. When the headroom is empty and
//! the count is two packets below the threshold, the input is asked to resume. Departures of a switch are events only
//! while it has asked an input to pause: otherwise counts that are out of date are too large, as in `buffers`.

use waterfill_laws::units::Instant;
use waterfill_network::{Network, PfcSpec};

use super::Part;
use super::event::Event;
use crate::link::NO_SWITCH;
use crate::packet::Packet;

/// Input of packets that no link has brought.
pub(super) const NO_INPUT: u32 = u32::MAX;

/// Inputs of a switch.
#[derive(Debug)]
pub(super) struct Inputs {
    /// Fixed threshold in bytes, instead of one that follows the free part of the buffer.
    xoff: Option<u64>,
    /// Distance from the threshold at which an input resumes, in bytes.
    xon_below: u64,
    /// Size of the buffer without the headroom, in bytes.
    shared_bytes: u64,
    /// Bytes of all inputs in that part of the buffer.
    shared: u64,
    all: Vec<Input>,
    /// Number of inputs that have been asked to pause.
    asked: usize,
}

/// Input of a switch.
#[derive(Debug)]
struct Input {
    /// The link that brings the packets, and its reverse, which carries pause frames.
    link: u32,
    back: u32,
    /// Size of the headroom in bytes.
    headroom: u64,
    /// Waiting bytes in the shared part of the buffer, and in the headroom.
    shared: u64,
    above: u64,
    is_asked: bool,
}

impl Inputs {
    pub(super) fn new(spec: &PfcSpec, buffer_bytes: u64, packet_bytes: u16) -> Self {
        let headroom: u64 = spec.inputs.iter().map(|input| input.headroom_bytes).sum();
        let input = |input: &waterfill_network::InputSpec| Input {
            link: input.link,
            back: input.back,
            headroom: input.headroom_bytes,
            shared: 0,
            above: 0,
            is_asked: false,
        };
        Self {
            xoff: spec.xoff_bytes,
            xon_below: 2 * u64::from(packet_bytes),
            shared_bytes: buffer_bytes - headroom,
            shared: 0,
            all: spec.inputs.iter().map(input).collect(),
            asked: 0,
        }
    }

    /// Returns the threshold of an input in bytes while `shared` bytes wait in the shared part of the buffer.
    fn threshold(&self, alpha: f64, shared: u64) -> f64 {
        self.xoff.map_or_else(|| alpha * (self.shared_bytes.saturating_sub(shared)) as f64, |xoff| xoff as f64)
    }

    fn fits(&self, bytes: u16) -> bool {
        self.shared + u64::from(bytes) <= self.shared_bytes
    }

    /// Returns true if a packet of an input may wait.
    fn admits(&self, i: u32, bytes: u16) -> bool {
        let Some(input) = self.all.get(i as usize) else { return self.fits(bytes) };
        !input.is_asked && self.fits(bytes) || input.above + u64::from(bytes) <= input.headroom
    }

    fn add(&mut self, i: u32, bytes: u16) {
        let fits = self.fits(bytes);
        let Some(input) = self.all.get_mut(i as usize) else {
            self.shared += u64::from(bytes);
            return;
        };
        if fits && !input.is_asked {
            input.shared += u64::from(bytes);
            self.shared += u64::from(bytes);
        } else {
            input.above += u64::from(bytes);
        }
    }

    /// Removes a packet that has left. The headroom is freed first.
    fn remove(&mut self, i: u32, bytes: u16) {
        let mut left = u64::from(bytes);
        if let Some(input) = self.all.get_mut(i as usize) {
            let above = left.min(input.above);
            left -= above;
            input.above -= above;
            input.shared -= left;
        }
        self.shared -= left;
    }

    fn has_to_pause(&self, i: u32, alpha: f64) -> bool {
        let over = |input: &Input| input.above > 0 || input.shared as f64 >= self.threshold(alpha, self.shared);
        self.all.get(i as usize).is_some_and(|input| !input.is_asked && over(input))
    }

    /// Returns an input that may resume.
    fn resumed(&self, alpha: f64) -> Option<u32> {
        if self.asked == 0 {
            return None;
        }
        let xon = self.xon(alpha, self.shared);
        let may = |input: &Input| input.is_asked && input.above == 0 && input.shared as f64 <= xon;
        self.all.iter().position(may).map(|i| i as u32)
    }

    /// Returns the bytes of an input at which it resumes.
    fn xon(&self, alpha: f64, shared: u64) -> f64 {
        (self.threshold(alpha, shared) - self.xon_below as f64).max(0.0)
    }
}

/// Links that wait for each other.
#[derive(Clone, Debug)]
pub(super) struct Deadlock {
    /// Time of the sample that found it.
    pub(super) at: Instant,
    /// Indices of the links in the network.
    pub(super) links: Vec<u32>,
}

/// A link that has been asked to pause: its switch, its input there and itself.
type Asked = (usize, u32, u32);

impl Part {
    /// Prepares the links of switches that drop nothing.
    pub(super) fn build_pfc(&mut self, network: &Network) {
        let mut input_of = vec![NO_INPUT; self.links.len()];
        for spec in &network.switches {
            let Some(pfc) = &spec.pfc else { continue };
            for (i, input) in (0u32..).zip(&pfc.inputs) {
                input_of[input.link as usize] = i;
            }
            let links = spec.outputs.iter().copied().chain(pfc.inputs.iter().map(|input| input.link));
            for l in links {
                if !self.links[l as usize].can_pause() {
                    self.links[l as usize].make_lossless();
                }
            }
        }
        if input_of.iter().any(|&i| i != NO_INPUT) {
            self.input_of = input_of;
        }
    }

    /// Enqueues a packet at a link of a switch that drops nothing. Link `from` has brought it.
    pub(super) fn enqueue_lossless(&mut self, l: u32, packet: &Packet, from: u32) {
        let (now, s) = (self.now, self.links[l as usize].switch() as usize);
        let i = self.input_of.get(from as usize).copied().unwrap_or(NO_INPUT);
        self.advance_lossless(l);
        if self.links[l as usize].has_to_wait(now) && !self.inputs(s).is_some_and(|of| of.admits(i, packet.bytes)) {
            self.advance_all(s);
            if !self.inputs(s).is_some_and(|of| of.admits(i, packet.bytes)) {
                self.links[l as usize].count_drop();
                return self.drop_arrival(l, packet.sack);
            }
        }
        let link = &mut self.links[l as usize];
        let head = link.head();
        link.set_input(i);
        link.set_buffer(u64::MAX);
        let _ = link.enqueue(now, packet);
        if link.head() != head {
            self.agenda.replace_next(Event::Link(l), link.head());
        }
        if let Some(of) = &mut self.buffers[s].inputs {
            of.add(i, packet.bytes);
        }
        self.count_departures(l);
        let alpha = self.buffers[s].alpha;
        let has_to_pause = |part: &Self| part.inputs(s).is_some_and(|of| of.has_to_pause(i, alpha));
        if has_to_pause(self) || self.buffers[s].is_above_max() {
            self.advance_all(s);
            self.buffers[s].record_max();
            if has_to_pause(self) {
                self.ask(s, i, true);
            }
        }
        self.watch_departure(l);
    }

    fn inputs(&self, s: usize) -> Option<&Inputs> {
        self.buffers[s].inputs.as_deref()
    }

    /// Brings a link up to date, with its event.
    fn advance_lossless(&mut self, l: u32) {
        let link = &mut self.links[l as usize];
        let head = link.head();
        link.advance(self.now);
        if link.head() != head {
            self.agenda.replace_next(Event::Link(l), link.head());
        }
        self.count_departures(l);
    }

    /// Brings all links of a switch up to date.
    fn advance_all(&mut self, s: usize) {
        for o in 0..self.buffers[s].outputs.len() {
            self.advance_lossless(self.buffers[s].outputs[o]);
        }
    }

    /// Counts what has left a link, and its backlog.
    fn count_departures(&mut self, l: u32) {
        let link = &mut self.links[l as usize];
        let Some(buffer) = self.buffers.get_mut(link.switch() as usize) else { return };
        buffer.count(link);
        if let Some(of) = &mut buffer.inputs {
            link.take_departures().for_each(|(i, bytes)| of.remove(i, bytes));
        }
    }

    /// Asks the link of an input to pause or to resume.
    fn ask(&mut self, s: usize, i: u32, pause: bool) {
        let Some(of) = &mut self.buffers[s].inputs else { return };
        of.asked = if pause { of.asked + 1 } else { of.asked - 1 };
        let first = pause && of.asked == 1;
        let input = &mut of.all[i as usize];
        input.is_asked = pause;
        let (l, back) = (input.link, input.back);
        self.advance_lossless(back);
        let arrives = self.links[back as usize].send_pause_frame(self.now);
        let event = if pause { Event::Pause(l) } else { Event::Resume(l) };
        self.agenda.add_timer(arrives, event, u64::from(self.links[l as usize].view().id));
        if first {
            for o in 0..self.buffers[s].outputs.len() {
                self.watch_departure(self.buffers[s].outputs[o]);
            }
        }
        self.watch_departure(back);
    }

    /// Schedules the event of a link's next departure, if it needs one.
    fn watch_departure(&mut self, l: u32) {
        let link = &mut self.links[l as usize];
        let of = self.buffers.get(link.switch() as usize).and_then(|buffer| buffer.inputs.as_ref());
        if let Some(at) = link.next_departure(of.is_some_and(|of| of.asked > 0)) {
            self.agenda.add_timer(at, Event::Departure(l), u64::from(link.view().id));
        }
    }

    /// Handles the event of a link's departure, unless it is stale.
    pub(super) fn run_departure(&mut self, l: u32) {
        if self.links[l as usize].take_departure_event(self.now) {
            self.advance_lossless(l);
            self.resume_inputs(l);
            self.watch_departure(l);
        }
    }

    /// Asks the inputs of a link's switch to resume if they may.
    fn resume_inputs(&mut self, l: u32) {
        let s = self.links[l as usize].switch();
        if s == NO_SWITCH {
            return;
        }
        let alpha = self.buffers[s as usize].alpha;
        while let Some(i) = self.inputs(s as usize).and_then(|of| of.resumed(alpha)) {
            self.ask(s as usize, i, false);
        }
    }

    /// Handles a frame that begins a link's pause.
    pub(super) fn run_pause(&mut self, l: u32) {
        self.advance_lossless(l);
        self.links[l as usize].pause(self.now);
    }

    /// Handles a frame that ends a link's pause.
    pub(super) fn run_resume(&mut self, l: u32) {
        self.links[l as usize].resume(self.now);
        self.agenda.replace_next(Event::Link(l), self.links[l as usize].head());
        self.count_departures(l);
        self.resume_inputs(l);
        self.watch_departure(l);
        self.serve_nic_of(l);
    }

    /// Schedules the links' events again after the network has been read, which may have started transmissions.
    pub(super) fn schedule_lossless(&mut self) {
        if !self.input_of.is_empty() {
            for (l, link) in (0u32..).zip(&self.links).filter(|(_, link)| link.can_pause()) {
                self.agenda.replace_next(Event::Link(l), link.head());
            }
        }
    }

    /// Searches for links that wait for each other, unless some have been found.
    ///
    /// A paused link is free in the end if enough of its packets are behind links that are not paused, or that are free in
    /// the end. What is left can never move: each of these links waits for others of them.
    pub(super) fn find_deadlock(&mut self, now: Instant) {
        if self.input_of.is_empty() || self.deadlock.is_some() {
            return;
        }
        let mut stuck: Vec<Asked> = Vec::new();
        for (s, buffer) in self.buffers.iter().enumerate() {
            let asked = |(i, input): (u32, &Input)| input.is_asked.then_some((s, i, input.link));
            stuck.extend(buffer.inputs.iter().flat_map(|of| (0u32..).zip(&of.all).filter_map(asked)));
        }
        let mut is_stuck = vec![false; self.links.len()];
        for &(_, _, l) in &stuck {
            is_stuck[l as usize] = true;
        }
        loop {
            let before = stuck.len();
            stuck.retain(|&asked| {
                let stays = !self.gets_free(asked, &is_stuck);
                is_stuck[asked.2 as usize] = stays;
                stays
            });
            if stuck.len() == before {
                break;
            }
        }
        // Links that wait for a deadlock, but are not part of it, are waited for by none of it.
        let mut links: Vec<Asked> = stuck;
        while let Some(at) = links.iter().position(|&(_, _, l)| !links.iter().any(|&by| self.waits(by, l))) {
            links.swap_remove(at);
        }
        if !links.is_empty() {
            let mut links: Vec<u32> = links.iter().map(|&(_, _, l)| self.links[l as usize].view().id).collect();
            links.sort_unstable();
            self.deadlock = Some(Deadlock { at: now, links });
        }
    }

    /// Returns true if the input of a paused link resumes once everything has left that is not behind a stuck link.
    fn gets_free(&self, (s, i, _): Asked, is_stuck: &[bool]) -> bool {
        let Some(of) = self.inputs(s) else { return true };
        let mut left = vec![0; of.all.len()];
        for &l in self.buffers[s].outputs.iter().filter(|&&l| is_stuck[l as usize]) {
            self.links[l as usize].add_by_input(&mut left);
        }
        let (own, all) = (left[i as usize], left.iter().sum());
        own <= of.all[i as usize].shared && own as f64 <= of.xon(self.buffers[s].alpha, all)
    }

    /// Returns true if packets that a paused link has brought wait at link `l`.
    fn waits(&self, (s, i, _): Asked, l: u32) -> bool {
        let Some(of) = self.inputs(s).filter(|_| self.links[l as usize].switch() as usize == s) else { return false };
        let mut sums = vec![0; of.all.len()];
        self.links[l as usize].add_by_input(&mut sums);
        sums[i as usize] > 0
    }
}
