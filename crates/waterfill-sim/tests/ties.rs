//! Ties between events of one time favour no flow and no link because of its index.

use crate::common::{flow, link, network, run};
use waterfill_network::Network;

const FLOWS: u32 = 64;
const SEEDS: u64 = 50;

/// Equal flows that start together into one full drop-tail queue; with `hosts`, each over a link of its own.
fn symmetric(hosts: bool, seed: u64) -> Network {
    let mut links = link("bottleneck", 2e7, 5e-3, 60_000).to_vec();
    let flows = (0..FLOWS).map(|f| {
        let mut path = vec![0];
        if hosts {
            links.extend(link(&format!("host{f}"), 1e8, 2e-3, 1_000_000));
            path.insert(0, links.len() as u32 - 2);
        }
        flow(&format!("f{f}"), "newreno", &path, 3.0)
    });
    let flows = flows.collect();
    let mut n = network(3.0, links, flows);
    n.seed = seed;
    n
}

/// Returns the rank of each value, equal values sharing their mean rank.
fn ranks(values: &[u64]) -> Vec<f64> {
    let rank = |&value: &u64| {
        let below = values.iter().filter(|&&other| other < value).count();
        let equal = values.iter().filter(|&&other| other == value).count();
        below as f64 + (equal - 1) as f64 / 2.0
    };
    values.iter().map(rank).collect()
}

/// Returns Spearman's rank correlation between the values and their indexes; 0 if all values are equal.
fn correlation_with_index(values: &[u64]) -> f64 {
    let ranks = ranks(values);
    let middle = (values.len() - 1) as f64 / 2.0;
    let sum = |f: fn(f64, f64) -> f64| -> f64 {
        ranks.iter().enumerate().map(|(i, rank)| f(i as f64 - middle, rank - middle)).sum()
    };
    let spread = sum(|_, y| y * y);
    if spread == 0.0 { 0.0 } else { sum(|x, y| x * y) / (sum(|x, _| x * x) * spread).sqrt() }
}

#[test]
fn losses_are_not_correlated_with_the_index_of_a_flow() {
    let means = [false, true].map(|hosts| {
        let of_seed = |seed| {
            let (_, summary) = run(&symmetric(hosts, seed));
            let losses: Vec<u64> = summary.flows.iter().map(|flow| flow.retransmissions).collect();
            assert!(losses.iter().sum::<u64>() > u64::from(FLOWS), "the queue is full");
            correlation_with_index(&losses)
        };
        (1..=SEEDS).map(of_seed).sum::<f64>() / SEEDS as f64
    });
    // Without correlation the mean's standard deviation is 1 / √(63 · 50) = 0.018.
    assert!(means.iter().all(|mean| mean.abs() < 0.1), "without and with links of their own: {means:?}");
}

#[test]
fn the_rank_correlation_is_spearmans() {
    assert_eq!(correlation_with_index(&[1, 3, 7, 9]), 1.0);
    assert_eq!(correlation_with_index(&[9, 7, 3, 1]), -1.0);
    assert_eq!(correlation_with_index(&[5, 5, 5]), 0.0);
    // 1 − 6 Σd² / (n (n² − 1)) = 1 − 6 · 2 / 60.
    assert!((correlation_with_index(&[1, 2, 4, 3]) - 0.8).abs() < 1e-12);
}
