//! Network interfaces of hosts that pull: a sender keeps its packets until the transmitter of its host's link is free.
//!
//! The senders of a link that have something to send take turns, a packet each. A sender is asked for its packet when
//! the packet can leave, so its window, its pacing and its header are those of that time, and the host drops nothing.
//! Acknowledgements and packets of traffic sources without flows wait in the link's own queue and leave first.

use std::collections::VecDeque;

use waterfill_laws::units::Instant;

use super::Part;
use super::event::Event;
use crate::flow::HostAccess;

/// Interface of a host that pulls.
#[derive(Debug)]
pub(super) struct Nic {
    /// Index of the host's link in the part.
    link: u32,
    /// Senders with something to send, in their turn.
    turns: VecDeque<u32>,
    /// Time of the interface's valid event. Events at other times are stale.
    due: Instant,
}

/// Entry of [`Nics::of_links`] for other links.
const NO_NIC: u32 = u32::MAX;

/// Interfaces of the hosts in a part of the network that pull.
#[derive(Debug, Default)]
pub(super) struct Nics {
    all: Vec<Nic>,
    /// Interface of each link.
    of_links: Vec<u32>,
    /// True for each sender that has a turn.
    has_turn: Vec<bool>,
}

impl Nics {
    /// Returns true if no host pulls.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Part {
    /// Builds the interfaces of the part's hosts.
    pub(super) fn build_nics(&mut self) {
        let mut nics = Nics { of_links: vec![NO_NIC; self.links.len()], ..Nics::default() };
        for (l, link) in (0u32..).zip(&self.links) {
            if self.network.links[link.view().id as usize].pull {
                nics.of_links[l as usize] = nics.all.len() as u32;
                nics.all.push(Nic { link: l, turns: VecDeque::new(), due: Instant::NEVER });
            }
        }
        self.nics = nics;
    }

    /// Gives a sender a turn at its host's interface, if the host pulls. Returns false if it does not.
    #[inline(never)] // keeps the path of other hosts short
    pub(super) fn take_turn(&mut self, f: u32) -> bool {
        let host = &self.senders[f as usize];
        let l = self.paths[host.sender.spec.path as usize];
        let n = match (host.entry, self.nics.of_links.get(l as usize)) {
            (HostAccess::Ideal, Some(&n)) if n != NO_NIC => n,
            _ => return false,
        };
        if self.nics.has_turn.len() <= f as usize {
            self.nics.has_turn.resize(self.senders.len(), false);
        }
        if !std::mem::replace(&mut self.nics.has_turn[f as usize], true) {
            self.nics.all[n as usize].turns.push_back(f);
        }
        self.schedule_sender(f, Instant::NEVER);
        self.serve_nic(n);
        true
    }

    /// Handles the event of an interface, unless it is stale.
    pub(super) fn run_nic(&mut self, n: u32) {
        let nic = &mut self.nics.all[n as usize];
        if nic.due == self.now {
            nic.due = Instant::NEVER;
            self.serve_nic(n);
        }
    }

    /// Serves the interface at which a link begins, if its host pulls.
    pub(super) fn serve_nic_of(&mut self, l: u32) {
        if let Some(&n) = self.nics.of_links.get(l as usize).filter(|&&n| n != NO_NIC) {
            self.serve_nic(n);
        }
    }

    /// Sends packets of an interface's senders until its transmitter is busy or no sender has anything to send.
    fn serve_nic(&mut self, n: u32) {
        loop {
            let nic = &mut self.nics.all[n as usize];
            let Some(&f) = nic.turns.front() else { return };
            let link = &mut self.links[nic.link as usize];
            let free = link.free_at(self.now);
            if free > self.now {
                if free < nic.due {
                    nic.due = free;
                    self.agenda.add_timer(free, Event::Nic(n), u64::from(link.view().id));
                }
                return;
            }
            nic.turns.pop_front();
            match self.senders[f as usize].sender.poll_transmit(self.now) {
                Ok(packet) => {
                    nic.turns.push_back(f);
                    if !self.send(f, &packet) {
                        return; // the run is over
                    }
                    self.schedule_sender(f, Instant::NEVER);
                }
                Err(ready) => {
                    self.nics.has_turn[f as usize] = false;
                    self.schedule_sender(f, ready);
                }
            }
        }
    }
}
