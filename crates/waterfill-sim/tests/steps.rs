//! Tests of the log of law steps: it changes no result, and includes every law whose packets carry fields.

use std::collections::BTreeSet;

use crate::common::{build, flow, link, network, run};
use waterfill_laws::registry::ProtocolId;
use waterfill_network::{ChangeSpec, Network};

fn shared() -> Network {
    let links = [link("a", 1e7, 0.005, 30_000), link("b", 8e6, 0.005, 30_000)].concat();
    let flows = ["maxnet", "xcp", "reno"].map(|name| flow(name, name, &[0, 2], 1.0));
    let mut n = network(1.0, links, flows.into());
    n.links[0].changes = vec![ChangeSpec { at_s: 0.5, restart: true, ..ChangeSpec::default() }];
    n
}

/// Runs a network with a step log of up to `limit` rows. Returns the distinct triples of law, role (router, receiver or
/// source) and entity in the log, and the number of rows left out.
fn logged(n: &Network, limit: usize, only: Option<ProtocolId>) -> (BTreeSet<[u32; 3]>, u64) {
    let mut sim = build(n);
    assert!(sim.step_log().is_none());
    sim.log_steps(limit, only);
    sim.set_threads(Some(2)); // one thread all the same
    sim.advance(sim.end());
    assert_eq!(sim.summary(), run(n).1, "a log changes nothing");
    let log = sim.step_log().expect("a log");
    let seen = log.with_rows(|rows| {
        assert!(rows.law.len() <= limit);
        let entities = rows.law.iter().zip(&rows.part).zip(&rows.entity);
        entities.map(|((&law, &part), &entity)| [law, part, entity]).collect()
    });
    (seen, log.dropped())
}

fn place(id: ProtocolId) -> u32 {
    ProtocolId::ALL.iter().position(|&known| known == id).expect("a protocol") as u32
}

#[test]
fn every_law_of_the_run_is_logged() {
    let (seen, dropped) = logged(&shared(), 1_000_000, None);
    let [maxnet, xcp, reno] = [ProtocolId::MaxNet, ProtocolId::Xcp, ProtocolId::Reno].map(place);
    // Routers of explicit laws at the links that data crosses; receiver and source of each flow.
    let routers = [maxnet, xcp].into_iter().flat_map(|law| [[law, 0, 0], [law, 0, 2]]);
    let hosts = [maxnet, xcp].into_iter().zip(0..).flat_map(|(law, flow)| [[law, 1, flow], [law, 2, flow]]);
    assert!(routers.chain(hosts).all(|entity| seen.contains(&entity)), "{seen:?}");
    // A TCP without fields in its packets has no steps that a log could check.
    assert!(seen.iter().all(|&[law, ..]| law != reno), "{seen:?}");
    assert_eq!(dropped, 0);
}

#[test]
fn one_law_by_itself_and_a_limit() {
    let (seen, dropped) = logged(&shared(), 100, Some(ProtocolId::Xcp));
    assert!(seen.iter().all(|&[law, ..]| law == place(ProtocolId::Xcp)), "{seen:?}");
    assert!(dropped > 1000, "{dropped}");
}
