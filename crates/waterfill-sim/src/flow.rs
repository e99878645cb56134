//! A connection: its sender, its receiver, and the route between them.

use std::sync::Arc;

use waterfill_laws::registry::ProtocolId;
use waterfill_laws::steps::StepLog;
use waterfill_laws::units::Instant;
use waterfill_network::{FlowSpec, Network};

use crate::binding::FlowProtocol;
use crate::fault::ReceiverFaults;
use crate::receiver::{Receiver, ReceiverSpec};
use crate::sender::{Sender, SenderSpec};

/// Link indices in both directions, and the access between the source and its first router.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) forward: Box<[u32]>,
    pub(crate) reverse: Box<[u32]>,
    pub(crate) entry: HostAccess,
    /// Index of the delay line that returns acknowledgements.
    pub(crate) back: Option<u32>,
    /// Index of the route among the routes of a traffic source.
    pub(crate) number: u32,
}

/// Path of a source's packets before the first link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostAccess {
    /// Access without a delay or a queue.
    Ideal,
    /// Access over a delay line, given by its index.
    DelayLine(u32),
    /// Access over the flow's own access link.
    Access,
}

/// Owner of a flow: a group of flows or a traffic source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Group of the network's flows, given by its index.
    Group(u32),
    /// Traffic source, given by its index.
    Traffic(u32),
    /// No owner: the flow has finished, and its slot is free for the source's next flow.
    Nobody,
}

/// Sender, receiver and route of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) owner: Owner,
    /// Number of its hosts, from which the ranks of their events follow.
    pub(crate) number: u64,
    pub(crate) protocol: ProtocolId,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) route: Arc<Route>,
    /// Index of the flow's access link, or 0 if the flow has none.
    pub(crate) access: u32,
    /// Time of the sender's valid event in the heap. Events at other times are stale.
    pub(crate) sender_due: Instant,
    /// Time of the receiver's next timer event.
    pub(crate) receiver_due: Instant,
    /// True until the flow completes, if other flows start after it.
    pub(crate) is_awaited: bool,
    /// Bytes received up to the last sample.
    pub(crate) sampled_bytes: u64,
}

// An idle flow takes one kilobyte with its laws; what else it needs is allocated when it is used.
const _: () = assert!(size_of::<Flow>() <= 1024);

/// Components of a new connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowSetup<'a> {
    pub(crate) owner: Owner,
    pub(crate) number: u64,
    pub(crate) law: &'a FlowProtocol,
    pub(crate) spec: &'a FlowSpec,
    pub(crate) sender: SenderSpec,
    /// Measurement window of the summary, limited to the flow's lifetime.
    pub(crate) counted: (Instant, Instant),
    pub(crate) route: &'a Arc<Route>,
    pub(crate) access: u32,
}

impl Flow {
    /// Builds a connection before its SYN.
    pub(crate) fn new(network: &Network, setup: FlowSetup<'_>) -> Self {
        let FlowSetup { owner, number, law, spec, sender, counted, route, access } = setup;
        let receiver = ReceiverSpec {
            flow: sender.flow,
            incarnation: sender.incarnation,
            ack_bytes: network.ack_bytes,
            delayed_ack: spec.delayed_ack,
            retransmission: sender.host.retransmission,
            ecn: sender.host.ecn,
            packets: sender.packets.map_or(u64::MAX, |(count, _)| count),
            counted,
        };
        Self {
            owner,
            number,
            protocol: law.protocol,
            sender: Sender::new(sender, &law.params, spec, network.seed),
            receiver: Receiver::new(
                receiver,
                law,
                ReceiverFaults::new(network, spec, &route.forward, law.params.info().kind),
            ),
            route: Arc::clone(route),
            access,
            sender_due: Instant::NEVER,
            receiver_due: Instant::NEVER,
            is_awaited: false,
            sampled_bytes: 0,
        }
    }

    /// Starts logging the steps of a flow's laws. Flows of traffic sources, and protocols without fields in packets,
    /// are not logged.
    pub(crate) fn log_steps(&mut self, f: u32, now: Instant, network: &Network, log: &StepLog) {
        let Owner::Group(group) = self.owner else { return };
        let Some(spec) = network.flows.get(group as usize).filter(|_| self.protocol.has_fields()) else { return };
        let connection = self.sender.spec.connection(spec, network.seed);
        self.sender.log_steps(self.protocol, f, now, &connection, log);
        self.receiver.log_steps(self.protocol, f, now, log);
    }
}
