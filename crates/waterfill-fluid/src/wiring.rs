//! Connections between streams: the inbox indices of every stream, from its source over the links of its path to its
//! receiver.

use waterfill_laws::protocol::PacketKind;
use waterfill_network::{FlowSpec, Network};

use crate::class::Places;
use crate::link::{PlainKind, Streams};
use crate::plan::Edge;

/// Builder that collects the streams of a network and assigns their inbox indices.
///
/// The first places are the links', each link's next to each other; the ends of streams follow.
pub(crate) struct Wiring {
    classes: u32,
    links: Vec<Streams>,
    /// Links that each class's data crosses, and the index of its stream on each link.
    data: Vec<Vec<Hop>>,
    /// Links that acknowledgements and uncontrolled traffic cross, with the index of the stream on each link.
    plain: Vec<Vec<Hop>>,
    edges: Vec<Edge>,
}

#[derive(Clone, Copy)]
struct Hop {
    link: u32,
    stream: u32,
}

/// Inbox indices to which a link's streams are delivered.
#[derive(Clone, Debug)]
pub(crate) struct Destinations {
    pub(crate) data: Vec<u32>,
    pub(crate) plain: Vec<u32>,
}

/// Result of the wiring: the size of the inbox, and the inbox indices of all streams.
pub(crate) struct Wired {
    /// Number of inbox entries for data.
    pub(crate) data: usize,
    /// Number of inbox entries for headerless streams.
    pub(crate) plain: usize,
    pub(crate) classes: Vec<Places>,
    /// Inbox indices that each source of traffic writes and reads.
    pub(crate) traffic: Vec<(usize, usize)>,
    pub(crate) links: Vec<(Streams, Destinations)>,
    pub(crate) edges: Vec<Edge>,
}

impl Wiring {
    pub(crate) fn new(network: &Network, classes: usize) -> Self {
        let links = network.links.iter().map(|_| Streams::default()).collect();
        Self { classes: classes as u32, links, data: Vec::new(), plain: Vec::new(), edges: Vec::new() }
    }

    /// Adds the next class.
    ///
    /// The pipes of link l are 2l for data and 2l + 1 for headerless streams. Nodes are two per class, then one per
    /// link.
    pub(crate) fn add_class(&mut self, class: u32, flow: &FlowSpec, ack_bytes: f64) {
        let (source, receiver) = (class, self.classes + class);
        let mut hops = Vec::with_capacity(flow.forward.len());
        for &link in &flow.forward {
            let streams = &mut self.links[link as usize];
            hops.push(Hop { link, stream: streams.classes.len() as u32 });
            streams.classes.push(class);
        }
        self.add_edges(source, &flow.forward, receiver, 0);
        self.data.push(hops);
        self.add_plain(&flow.reverse, PlainKind { kind: PacketKind::Ack, packet_bytes: ack_bytes });
        self.add_edges(receiver, &flow.reverse, source, 1);
    }

    /// Adds the next uncontrolled source. All classes must be added first.
    ///
    /// The source writes before the tasks of a step and reads after them.
    pub(crate) fn add_traffic(&mut self, path: &[u32], packet_bytes: f64) {
        self.add_plain(path, PlainKind { kind: PacketKind::Other, packet_bytes });
        for pair in path.windows(2) {
            let (from, to) = (self.node(pair[0]), self.node(pair[1]));
            self.edges.push(Edge { from, to, pipe: Some(2 * pair[0] + 1) });
        }
    }

    fn add_plain(&mut self, path: &[u32], kind: PlainKind) {
        let mut hops = Vec::with_capacity(path.len());
        for &link in path {
            let streams = &mut self.links[link as usize];
            hops.push(Hop { link, stream: streams.kinds.len() as u32 });
            streams.kinds.push(kind);
        }
        self.plain.push(hops);
    }

    fn node(&self, link: u32) -> u32 {
        2 * self.classes + link
    }

    fn add_edges(&mut self, from: u32, path: &[u32], to: u32, lane: u32) {
        let (mut before, mut pipe) = (from, None);
        for &link in path {
            let node = self.node(link);
            self.edges.push(Edge { from: before, to: node, pipe });
            (before, pipe) = (node, Some(2 * link + lane));
        }
        self.edges.push(Edge { from: before, to, pipe });
    }

    /// Assigns the inbox indices of all streams.
    pub(crate) fn finish(mut self) -> Wired {
        let (mut data, mut plain) = (0, 0);
        for streams in &mut self.links {
            streams.data = data..data + streams.classes.len();
            streams.plain = plain..plain + streams.kinds.len();
            (data, plain) = (streams.data.end, streams.plain.end);
        }
        let empty = |s: &Streams| Destinations { data: vec![0; s.data.len()], plain: vec![0; s.plain.len()] };
        let mut destinations: Vec<Destinations> = self.links.iter().map(empty).collect();
        let mut ends = Vec::new();
        for (c, hops) in self.data.iter().enumerate() {
            let place = |hop: &Hop| self.links[hop.link as usize].data.start + hop.stream as usize;
            let end = data + c;
            for (i, hop) in hops.iter().enumerate() {
                destinations[hop.link as usize].data[hop.stream as usize] = hops.get(i + 1).map_or(end, place) as u32;
            }
            ends.push((hops.first().map_or(end, place), end));
        }
        let mut plain_ends = Vec::new();
        for (s, hops) in self.plain.iter().enumerate() {
            let place = |hop: &Hop| self.links[hop.link as usize].plain.start + hop.stream as usize;
            let end = plain + s;
            for (i, hop) in hops.iter().enumerate() {
                destinations[hop.link as usize].plain[hop.stream as usize] = hops.get(i + 1).map_or(end, place) as u32;
            }
            plain_ends.push((hops.first().map_or(end, place), end));
        }
        let traffic = plain_ends.split_off(self.data.len());
        let classes = ends
            .into_iter()
            .zip(plain_ends)
            .map(|((data_out, data_in), (acks_out, acks_in))| Places { data_out, data_in, acks_out, acks_in })
            .collect();
        let inbox = (data + self.data.len(), plain + self.plain.len());
        let links = self.links.into_iter().zip(destinations).collect();
        Wired { data: inbox.0, plain: inbox.1, classes, traffic, links, edges: self.edges }
    }
}
