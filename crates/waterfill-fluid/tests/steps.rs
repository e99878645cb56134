//! Tests of the step log of a fluid run. The log changes no result, and contains the laws of every link and class.

use std::collections::BTreeSet;

use crate::common::{flows, fluid, link, network, run};
use waterfill_laws::registry::ProtocolId;

#[test]
fn a_log_changes_nothing_and_has_every_law() {
    let links = [link("a", 1e7, 0.005, 30_000), link("b", 8e6, 0.005, 30_000)].concat();
    let groups = ["maxnet", "xcp"].map(|name| flows(name, 2, name, &[0, 2], 1.0));
    let n = network(1.0, links, groups.into());
    let (_, plain) = run(&n, None);
    let mut logged = fluid(&n, None).expect("a valid network");
    assert!(logged.step_log().is_none());
    logged.log_steps(1_000_000, None);
    logged.advance(logged.end());
    assert_eq!(logged.summary(), plain);
    let log = logged.step_log().expect("a log");
    let place = |id| ProtocolId::ALL.iter().position(|&known| known == id).expect("a protocol") as u32;
    let seen: BTreeSet<[u32; 3]> = log.with_rows(|rows| {
        let entities = rows.law.iter().zip(&rows.part).zip(&rows.entity);
        entities.map(|((&law, &part), &entity)| [law, part, entity]).collect()
    });
    for (class, law) in (0..).zip([ProtocolId::MaxNet, ProtocolId::Xcp].map(place)) {
        for entity in [[law, 0, 0], [law, 0, 2], [law, 1, class], [law, 2, class]] {
            assert!(seen.contains(&entity), "{entity:?} of {seen:?}");
        }
    }
    assert_eq!(log.dropped(), 0);
}
