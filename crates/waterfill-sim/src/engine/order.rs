//! Flows that start when others have completed, as the steps of a collective operation do.
//!
//! A group's flows start when every flow of the groups that it names, or of a number of these groups, has completed: when
//! the last byte has reached its receiver. The start takes no time, so a run on several threads keeps both hosts in one part (see `parallel::plan`);
//! each part's counts are right for the groups that start in it.

use waterfill_laws::units::{Duration, Instant};
use waterfill_network::Network;

use super::Part;
use crate::flow::{Owner, ReceivingHost};

/// Progress of all groups of flows; empty if no group waits for another.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    groups: Vec<Progress>,
}

/// Progress of one group of flows.
#[derive(Clone, Debug)]
struct Progress {
    /// Index of the group's first sender in its part.
    first: u32,
    /// Number of the group's flows that have not completed.
    open: u32,
    /// Number of groups that this group still waits for; zero once it has started.
    waits: u32,
    /// Groups that wait for this one.
    followers: Vec<u32>,
}

impl Order {
    /// Builds the initial state, and marks the flows whose completion matters.
    pub(super) fn new(network: &Network, receivers: &mut [ReceivingHost]) -> Self {
        if network.flows.iter().all(|spec| spec.after.is_empty()) {
            return Self::default();
        }
        let mut first = 0;
        let mut groups: Vec<Progress> = (network.flows.iter())
            .map(|spec| {
                let waits = spec.after_count.unwrap_or(spec.after.len() as u32);
                let progress = Progress { first, open: spec.count, waits, followers: Vec::new() };
                first += spec.count;
                progress
            })
            .collect();
        for (g, spec) in (0u32..).zip(&network.flows) {
            spec.after.iter().for_each(|&before| groups[before as usize].followers.push(g));
        }
        for host in receivers {
            host.is_awaited = matches!(host.owner, Owner::Group(g) if !groups[g as usize].followers.is_empty());
        }
        Self { groups }
    }

    /// Returns the state for a part of the network, where `sender` gives the index of a group's first sender.
    pub(super) fn for_part(&self, sender: impl Fn(usize) -> u32) -> Self {
        let moved = |progress: &Progress| Progress { first: sender(progress.first as usize), ..progress.clone() };
        Self { groups: self.groups.iter().map(moved).collect() }
    }

    /// Counts a completed flow of a group. Returns the groups that start now.
    fn complete(&mut self, group: u32) -> Vec<u32> {
        let done = &mut self.groups[group as usize];
        done.open -= 1;
        if done.open > 0 {
            return Vec::new();
        }
        let mut ready = std::mem::take(&mut done.followers);
        ready.retain(|&follower| {
            let next = &mut self.groups[follower as usize];
            let starts = next.waits == 1;
            next.waits = next.waits.saturating_sub(1);
            starts
        });
        ready
    }
}

impl Part {
    /// Passes a connection to sender `f` at its start, if it goes on to use one.
    #[inline]
    pub(super) fn continue_connection(&mut self, f: u32) {
        if let Some(before) = self.senders[f as usize].sender.take_connection_due(self.now) {
            let connection = self.senders[before as usize].sender.connection();
            self.senders[f as usize].sender.resume(self.now, connection);
        }
    }

    /// Starts the flows that waited for the flow of receiver `f` and now wait for no other. Called when it has completed.
    #[cold]
    pub(super) fn start_followers(&mut self, f: u32) {
        let host = &mut self.receivers[f as usize];
        host.is_awaited = false;
        let Owner::Group(group) = host.owner else { return };
        for ready in self.order.complete(group) {
            self.start_group(ready);
        }
    }

    /// Starts the flows of a group, each after its own delay.
    fn start_group(&mut self, group: u32) {
        let first = self.order.groups[group as usize].first;
        let spec = &self.network.flows[group as usize];
        let before = spec.continues.map(|g| self.order.groups[g as usize].first);
        let delays: Vec<Duration> = (0..spec.count).map(|i| Duration::from_secs(spec.start_of_s(i))).collect();
        for (f, delay) in (first..).zip(delays) {
            let start: Instant = self.now + delay;
            let sender = &mut self.senders[f as usize].sender;
            sender.start_at(start);
            if let Some(before) = before {
                sender.continue_on(before + f - first);
            }
            self.schedule_sender(f, Instant::NEVER);
        }
    }
}
