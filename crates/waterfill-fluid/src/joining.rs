//! Who is joined to whom: every stream's places in the inbox, from its source over the links of its path to its end.

use waterfill_laws::protocol::PacketKind;
use waterfill_network::FlowSpec;
use waterfill_network::Network;

use crate::class::Joints;
use crate::link::{PlainKind, Streams};
use crate::plan::Edge;

/// A network being joined.
///
/// Links have the first places of the inbox, each all of its own one after another; then come the ends of streams.
pub(crate) struct Joining {
    classes: u32,
    links: Vec<Streams>,
    /// Links that each class crosses with data and with acknowledgements, and its place among the streams of each.
    data: Vec<Vec<Hop>>,
    plain: Vec<Vec<Hop>>,
    edges: Vec<Edge>,
}

#[derive(Clone, Copy)]
struct Hop {
    link: u32,
    stream: u32,
}

/// The places of the inbox that a link's data, and its other streams, go to.
#[derive(Clone, Debug)]
pub(crate) struct Onward {
    pub(crate) data: Vec<u32>,
    pub(crate) plain: Vec<u32>,
}

/// A network joined.
pub(crate) struct Joined {
    /// Places of the inbox.
    pub(crate) data: usize,
    pub(crate) plain: usize,
    pub(crate) classes: Vec<Joints>,
    /// Where traffic is put in, and where it comes out.
    pub(crate) traffic: Vec<(usize, usize)>,
    pub(crate) links: Vec<(Streams, Onward)>,
    pub(crate) edges: Vec<Edge>,
}

impl Joining {
    pub(crate) fn new(network: &Network, classes: usize) -> Self {
        let links = network.links.iter().map(|_| Streams::default()).collect();
        Self { classes: classes as u32, links, data: Vec::new(), plain: Vec::new(), edges: Vec::new() }
    }

    /// The next class; the pipes of link l are 2l for data and 2l + 1 for all else, its node comes after two a class.
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

    /// The next uncontrolled source, after all classes. It is there before a step and is looked at after it.
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

    pub(crate) fn joined(mut self) -> Joined {
        let (mut data, mut plain) = (0, 0);
        for streams in &mut self.links {
            streams.data = data..data + streams.classes.len();
            streams.plain = plain..plain + streams.kinds.len();
            (data, plain) = (streams.data.end, streams.plain.end);
        }
        let places = |s: &Streams| Onward { data: vec![0; s.data.len()], plain: vec![0; s.plain.len()] };
        let mut onward: Vec<Onward> = self.links.iter().map(places).collect();
        let mut ends = Vec::new();
        for (c, hops) in self.data.iter().enumerate() {
            let place = |hop: &Hop| self.links[hop.link as usize].data.start + hop.stream as usize;
            let end = data + c;
            for (i, hop) in hops.iter().enumerate() {
                onward[hop.link as usize].data[hop.stream as usize] = hops.get(i + 1).map_or(end, place) as u32;
            }
            ends.push((hops.first().map_or(end, place), end));
        }
        let mut plain_ends = Vec::new();
        for (s, hops) in self.plain.iter().enumerate() {
            let place = |hop: &Hop| self.links[hop.link as usize].plain.start + hop.stream as usize;
            let end = plain + s;
            for (i, hop) in hops.iter().enumerate() {
                onward[hop.link as usize].plain[hop.stream as usize] = hops.get(i + 1).map_or(end, place) as u32;
            }
            plain_ends.push((hops.first().map_or(end, place), end));
        }
        let traffic = plain_ends.split_off(self.data.len());
        let classes = ends
            .into_iter()
            .zip(plain_ends)
            .map(|((data_out, data_in), (acks_out, acks_in))| Joints { data_out, data_in, acks_out, acks_in })
            .collect();
        let inbox = (data + self.data.len(), plain + self.plain.len());
        let links = self.links.into_iter().zip(onward).collect();
        Joined { data: inbox.0, plain: inbox.1, classes, traffic, links, edges: self.edges }
    }
}
