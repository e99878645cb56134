//! The two hosts of a connection, which may be in different parts of the network.

use waterfill_laws::protocol::PathView;
use waterfill_laws::registry::ProtocolId;
use waterfill_laws::steps::StepLog;
use waterfill_laws::units::Instant;
use waterfill_network::{FlowSpec, Network};

use crate::binding::FlowProtocol;
use crate::fault::ReceiverFaults;
use crate::receiver::{Receiver, ReceiverSpec};
use crate::sender::{Sender, SenderSpec};

/// Paths of a flow's packets in both directions, and the access between the source and its first router.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    /// Start of the forward path in the list of all paths.
    pub(crate) forward: u32,
    /// Start of the reverse path, which ends with the delay line that returns acknowledgements, if there is one.
    pub(crate) reverse: u32,
    pub(crate) entry: HostAccess,
    /// Index of the route among the routes of a traffic source.
    pub(crate) number: u32,
    /// True if a link of the forward path damages packets.
    pub(crate) damages: bool,
    /// Rate of the source's own link, which is its access or the first link of the forward path, and number of links.
    pub(crate) view: PathView,
}

/// Path of a source's packets before the first link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostAccess {
    /// Access without a delay or a queue.
    Ideal,
    /// Access over a delay line, given by its index.
    DelayLine(u32),
    /// Access over the flow's own access link, given by its index.
    Access(u32),
}

/// Owner of a flow: a group of flows or a traffic source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Group of the network's flows, given by its index.
    Group(u32),
    /// Traffic source, given by its index.
    Traffic(u32),
    /// No owner: the flow has finished, and its hosts are free for the source's next flow.
    Nobody,
}

/// Sending host of a connection.
#[derive(Debug)]
pub(crate) struct SendingHost {
    pub(crate) owner: Owner,
    pub(crate) protocol: ProtocolId,
    pub(crate) sender: Sender,
    pub(crate) entry: HostAccess,
    /// Index of the route among the routes of a traffic source.
    pub(crate) route: u32,
    /// Time of the sender's valid event in the heap. Events at other times are stale.
    pub(crate) due: Instant,
}

/// Receiving host of a connection.
#[derive(Debug)]
pub(crate) struct ReceivingHost {
    pub(crate) owner: Owner,
    /// True until the flow completes, if other flows start after it.
    pub(crate) is_awaited: bool,
    /// Incarnation whose packets are accepted.
    pub(crate) incarnation: u16,
    /// Index of the flow in its group, or among those of its traffic source.
    pub(crate) index: u32,
    pub(crate) receiver: Receiver,
    /// Time of the receiver's next timer event.
    pub(crate) due: Instant,
}

// The hosts of an idle flow take one kilobyte with its laws; what else they need is allocated when it is used.
const _: () = assert!(size_of::<SendingHost>() + size_of::<ReceivingHost>() <= 1104);

/// Components of a new connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowSetup<'a> {
    pub(crate) owner: Owner,
    pub(crate) law: &'a FlowProtocol,
    pub(crate) spec: &'a FlowSpec,
    pub(crate) sender: SenderSpec,
    /// Index of the sender among those of its part.
    pub(crate) from: u32,
    /// Measurement window of the summary, limited to the flow's lifetime.
    pub(crate) counted: (Instant, Instant),
    pub(crate) route: Route,
}

/// Builds the hosts of a connection before its SYN.
pub(crate) fn connect(network: &Network, setup: &FlowSetup<'_>) -> (SendingHost, ReceivingHost) {
    (sending_host(network, setup), receiving_host(network, setup))
}

/// Builds the receiving host of a connection before its SYN.
pub(crate) fn receiving_host(network: &Network, setup: &FlowSetup<'_>) -> ReceivingHost {
    let &FlowSetup { owner, law, spec, sender, from, counted, route } = setup;
    let receiver = ReceiverSpec {
        flow: sender.flow,
        to: from,
        path: route.reverse,
        incarnation: sender.incarnation,
        ack_bytes: network.ack_bytes,
        delayed_ack: spec.delayed_ack,
        retransmission: sender.host.retransmission,
        ecn: sender.host.ecn,
        packets: sender.sizes.packets.map_or(u64::MAX, |(count, _)| count),
        header_bytes: sender.sizes.header_bytes(),
        counted,
    };
    let faults = ReceiverFaults::new(spec, route.damages, law.params.info().kind);
    let mut receiver = Receiver::new(receiver, law, faults);
    if let Some(asked) = &spec.ack_frequency {
        receiver.set_ack_frequency(asked);
    }
    ReceivingHost {
        owner,
        is_awaited: false,
        incarnation: sender.incarnation,
        index: sender.index,
        receiver,
        due: Instant::NEVER,
    }
}

/// Builds the sending host of a connection before its SYN.
pub(crate) fn sending_host(network: &Network, setup: &FlowSetup<'_>) -> SendingHost {
    let &FlowSetup { owner, law, spec, mut sender, route, .. } = setup;
    sender.path = route.forward;
    SendingHost {
        owner,
        protocol: law.protocol,
        sender: Sender::new(sender, &law.params, (spec, route.view), network.seed),
        entry: route.entry,
        route: route.number,
        due: Instant::NEVER,
    }
}

/// Starts logging the steps of flow `f`'s laws. Flows of traffic sources, and protocols without fields in packets, are
/// not logged.
pub(crate) fn log_steps(
    (f, sending, receiving): (u32, &mut SendingHost, &mut ReceivingHost),
    now: Instant,
    network: &Network,
    log: &StepLog,
) {
    let (Owner::Group(group), protocol) = (sending.owner, sending.protocol) else { return };
    let Some(spec) = network.flows.get(group as usize).filter(|_| protocol.has_fields()) else { return };
    let connection = sending.sender.spec.connection(spec, PathView::UNKNOWN, network.seed);
    sending.sender.log_steps(protocol, f, now, &connection, log);
    receiving.receiver.log_steps(protocol, f, now, log);
}
