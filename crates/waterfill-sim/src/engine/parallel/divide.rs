//! Distribution of a network's links and hosts among its parts, before the run begins.
//!
//! A part keeps its links, delay lines and access links in the order of the whole network, because that order decides
//! between two stations whose ranks agree in the bits that the tournament compares.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use waterfill_laws::units::{Duration, Instant};

use super::plan::Plan;
use super::{CutLink, Pair, Part, path};
use crate::delay_line::DelayLine;
use crate::engine::buffers::SharedBuffer;
use crate::engine::record::{Place, Places};
use crate::engine::routes::{RouteChange, RouteChanges, RouteHost};
use crate::engine::switching::Switches;
use crate::flow::{HostAccess, Owner};

/// Divides a network. Returns its parts, the places of its links and hosts, and the pairs of parts with cut links.
pub(super) fn divide(mut whole: Part, plan: &Plan) -> (Vec<Part>, Places, Vec<Pair>) {
    let mut parts: Vec<Part> = (0..plan.parts).map(|_| Part::empty(&whole.network, &whole.watch)).collect();
    for part in &mut parts {
        part.telemetry = whole.telemetry;
    }
    let mut places = Places::default();
    let pairs = move_links(&mut whole, &mut parts, &mut places, plan);
    move_buffers(std::mem::take(&mut whole.buffers), &mut parts, &places);
    let lines = copy_delay_lines(&whole, &mut parts, plan);
    let mut before = 0; // the link before this entry of the paths
    let paths = whole.paths.iter().map(|&entry| match entry {
        path::END | path::SWITCHED..path::DELAY_LINE => entry,
        path::DELAY_LINE.. => path::DELAY_LINE | lines[plan.links[before].1][&(entry & !path::DELAY_LINE)],
        link => {
            before = link as usize;
            places.links[before].index
        }
    });
    let paths: Arc<[u32]> = paths.collect();
    let routes = std::mem::take(&mut whole.routes);
    if let Some(switches) = whole.switches.take() {
        divide_switches(*switches, &mut parts, &places, (plan, &lines));
    }
    move_hosts(whole, &mut parts, &mut places, (plan, &lines));
    move_routes(routes, &mut parts, &places);
    for part in &mut parts {
        part.paths = Arc::clone(&paths);
        part.start_agenda();
    }
    (parts, places, pairs)
}

/// Moves each link to the part where it begins, and adds the far ends of cut links.
fn move_links(whole: &mut Part, parts: &mut [Part], places: &mut Places, plan: &Plan) -> Vec<Pair> {
    let mut cuts = BTreeMap::<(usize, usize), Vec<CutLink>>::new();
    for (mut link, &(from, to)) in std::mem::take(&mut whole.links).into_iter().zip(&plan.links) {
        let here = parts[from].links.len() as u32;
        if from != to {
            let min_delay = Duration::from_secs(whole.network.links[link.view().id as usize].delay_min_s());
            let there = parts[to].links.len() as u32;
            parts[to].links.push(link.far_end(&whole.network));
            link.export();
            cuts.entry((from, to)).or_default().push(CutLink { here, there, min_delay });
        }
        parts[from].links.push(link);
        places.links.push(Place { part: from as u32, index: here });
    }
    cuts.into_iter().map(|((from, to), links)| Pair { from, to, links }).collect()
}

/// Moves the buffer of each switch to the part in which its links begin.
fn move_buffers(buffers: Vec<SharedBuffer>, parts: &mut [Part], places: &Places) {
    for mut buffer in buffers {
        let Some(place) = buffer.outputs.first().map(|&l| places.links[l as usize]) else { continue };
        let part = &mut parts[place.part as usize];
        for l in &mut buffer.outputs {
            *l = places.links[*l as usize].index;
            part.links[*l as usize].share(part.buffers.len() as u32);
        }
        part.buffers.push(buffer);
    }
}

/// Gives each part a copy of the switches, with the numbers of its own links.
fn divide_switches(
    mut switches: Switches,
    parts: &mut [Part],
    places: &Places,
    (plan, lines): (&Plan, &[BTreeMap<u32, u32>]),
) {
    for destination in &mut switches.destinations {
        if (path::DELAY_LINE..path::END).contains(&destination.end) {
            let part = plan.part_of(destination.node, &switches.nodes);
            destination.end = path::DELAY_LINE | lines[part][&(destination.end & !path::DELAY_LINE)];
        }
    }
    Arc::make_mut(&mut switches.table).renumber(|l| places.links[l as usize].index);
    for part in parts {
        let nodes = part.links.iter().map(|link| switches.nodes[link.view().id as usize]).collect();
        part.switches = Some(Box::new(switches.of_part(nodes)));
    }
}

/// Gives each part the delay lines that its senders use. Returns the index there of each, by its former index.
fn copy_delay_lines(whole: &Part, parts: &mut [Part], plan: &Plan) -> Vec<BTreeMap<u32, u32>> {
    let mut used = vec![BTreeSet::new(); parts.len()];
    let mut entry = |part: usize, entry: HostAccess| {
        if let HostAccess::DelayLine(line) = entry {
            used[part].extend([line, line + 1]); // out and back
        }
    };
    whole.senders.iter().for_each(|host| entry(parts_of(plan, host.owner).0, host.entry));
    for (traffic, routes) in whole.traffic.iter().zip(&plan.traffic) {
        let all = traffic.web.iter().flat_map(|web| web.routes.all());
        all.zip(routes).for_each(|((route, _), &(part, _))| entry(part, route.entry));
    }
    let mut before = 0;
    for &next in whole.paths.iter().filter(|&&next| next != path::END) {
        if next < path::SWITCHED {
            before = next as usize;
        } else if next >= path::DELAY_LINE {
            used[plan.links[before].1].insert(next & !path::DELAY_LINE);
        }
    }
    for destination in whole.switches.iter().flat_map(|switches| &switches.destinations) {
        if (path::DELAY_LINE..path::END).contains(&destination.end) {
            let nodes = &whole.switches.as_ref().map_or(&[][..], |switches| &switches.nodes);
            used[plan.part_of(destination.node, nodes)].insert(destination.end & !path::DELAY_LINE);
        }
    }
    for (part, used) in parts.iter_mut().zip(&used) {
        let lines = used.iter().map(|&line| &whole.delay_lines[line as usize]);
        part.delay_lines = lines.map(|line| DelayLine::new(line.number, line.delay())).collect();
    }
    used.into_iter().map(|used| used.into_iter().zip(0..).collect()).collect()
}

/// Moves hosts and traffic sources to their parts, with their access links.
fn move_hosts(whole: Part, parts: &mut [Part], places: &mut Places, (plan, lines): (&Plan, &[BTreeMap<u32, u32>])) {
    let mut access: Vec<_> = whole.access_links.into_iter().map(Some).collect();
    let mut move_access = |part: &mut Part, index: u32| {
        part.access_links.extend(access[index as usize].take());
        part.access_links.len() as u32 - 1
    };
    let (mut senders, mut receivers) = (vec![0; parts.len()], vec![0; parts.len()]);
    let next = |counts: &mut [u32], part: usize| {
        counts[part] += 1;
        Place { part: part as u32, index: counts[part] - 1 }
    };
    for host in &whole.senders {
        let (from, to) = parts_of(plan, host.owner);
        places.senders.push(next(&mut senders, from));
        places.receivers.push(next(&mut receivers, to));
    }
    for (p, part) in parts.iter_mut().enumerate() {
        part.order = whole.order.for_part(|f| places.senders.get(f).map_or(0, |place| place.index));
        part.senders.reserve_exact(senders[p] as usize);
        part.receivers.reserve_exact(receivers[p] as usize);
    }
    let line = |part: usize, entry: HostAccess| match entry {
        HostAccess::DelayLine(line) => HostAccess::DelayLine(lines[part][&line]),
        HostAccess::Ideal | HostAccess::Access(_) => entry,
    };
    for ((mut host, place), to) in whole.senders.into_iter().zip(&places.senders).zip(&places.receivers) {
        let part = &mut parts[place.part as usize];
        host.entry = match host.entry {
            HostAccess::Access(index) => HostAccess::Access(move_access(part, index)),
            entry => line(place.part as usize, entry),
        };
        host.sender.spec.to = to.index;
        host.due = Instant::NEVER; // scheduled again
        part.senders.push(host);
    }
    for ((mut host, place), from) in whole.receivers.into_iter().zip(&places.receivers).zip(&places.senders) {
        host.receiver.spec.to = from.index;
        parts[place.part as usize].receivers.push(host);
    }
    for (mut traffic, routes) in whole.traffic.into_iter().zip(&plan.traffic) {
        for (p, part) in parts.iter_mut().enumerate() {
            let mut there = traffic.for_part(p, routes);
            if let Some(web) = &mut there.web {
                web.routes.change_entries(|here, entry| if here == p { line(p, entry) } else { entry });
            }
            part.traffic.push(there);
        }
        let source = &mut parts[routes[0].0];
        if let (None, Some(there)) = (&traffic.web, source.traffic.len().checked_sub(1)) {
            traffic.access = traffic.access.map(|index| move_access(source, index));
            source.traffic[there] = traffic;
        }
    }
}

/// Moves each change of a route to the part of its host.
fn move_routes(routes: RouteChanges, parts: &mut [Part], places: &Places) {
    let mut of_parts = vec![Vec::new(); parts.len()];
    for change in routes.into_ordered() {
        let (place, host) = match change.host {
            RouteHost::Sender(f) => (places.senders[f as usize], RouteHost::Sender as fn(u32) -> RouteHost),
            RouteHost::Receiver(f) => (places.receivers[f as usize], RouteHost::Receiver as fn(u32) -> RouteHost),
        };
        of_parts[place.part as usize].push(RouteChange { host: host(place.index), ..change });
    }
    for (part, changes) in parts.iter_mut().zip(of_parts) {
        part.routes = RouteChanges::new(changes);
    }
}

/// Returns the parts of the senders and receivers of a group. Flows of traffic sources start later.
fn parts_of(plan: &Plan, owner: Owner) -> (usize, usize) {
    if let Owner::Group(group) = owner { plan.groups[group as usize] } else { (0, 0) }
}
