//! Routes of flows that change during the run.
//!
//! A packet carries its path, so a change concerns only packets that are sent later: those in flight finish on the old
//! route. Sender and receiver change their own path, each in its part of the network.

use waterfill_laws::units::Instant;

use super::{Part, path};

/// Host of a flow, with its index in its part.
#[derive(Clone, Copy, Debug)]
pub(super) enum RouteHost {
    Sender(u32),
    Receiver(u32),
}

/// Change of the path of a host's packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct RouteChange {
    pub(super) at: Instant,
    pub(super) host: RouteHost,
    /// Start of the new path in the list of all paths.
    pub(super) path: u32,
}

/// All changes of a part, the next one last.
#[derive(Debug, Default)]
pub(super) struct RouteChanges(Vec<RouteChange>);

impl RouteChanges {
    /// Creates the list. Changes of one time keep their order.
    pub(super) fn new(mut changes: Vec<RouteChange>) -> Self {
        changes.reverse();
        changes.sort_by_key(|change| std::cmp::Reverse(change.at));
        Self(changes)
    }

    /// Returns the time of the next change, if there is one.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.last().map(|change| change.at)
    }

    /// Takes all changes in order of time.
    pub(super) fn into_ordered(self) -> impl Iterator<Item = RouteChange> {
        self.0.into_iter().rev()
    }
}

impl Part {
    /// Schedules the next change of routes, if there is one.
    pub(super) fn schedule_routes(&mut self) {
        if let Some(time) = self.routes.due() {
            self.agenda.add_change(time, path::ROUTES);
        }
    }

    /// Applies the changes of routes that are due.
    pub(super) fn change_routes(&mut self, now: Instant) {
        self.now = now;
        while self.routes.due().is_some_and(|at| at <= now) {
            let Some(change) = self.routes.0.pop() else { break };
            self.events += 1;
            match change.host {
                RouteHost::Sender(f) => self.senders[f as usize].sender.spec.path = change.path,
                RouteHost::Receiver(f) => self.receivers[f as usize].receiver.spec.path = change.path,
            }
        }
        self.schedule_routes();
    }
}
