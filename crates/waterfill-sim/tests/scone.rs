//! Tests of senders that follow throughput advice, together with MaxNet flows whose price sets the advice.

use crate::common::{column, flow, link, mean, network, run, set};
use waterfill_laws::scone::HALF_STEP;
use waterfill_network::{FlowSpec, Network, ParamValue};
use waterfill_sim::Simulation;

/// Returns a network of MaxNet flows and senders with advice, on a link of 40 Mbit/s and 50 ms. They share 36 Mbit/s,
/// and the senders start 5 s later. Windows have ten packets or more, because MaxNet flows that round smaller windows
/// down would be slower than their price says.
fn scenario(duration_s: f64, maxnet: usize, scone: usize) -> Network {
    let links = link("l", 40e6, 0.050, 500_000).to_vec();
    let names = (0..maxnet).map(|n| (format!("m{n}"), "maxnet")).chain((0..scone).map(|n| (format!("s{n}"), "scone")));
    let one = |(name, protocol): (String, &str)| {
        let start_s = if protocol == "scone" { 5.0 } else { 0.0 };
        FlowSpec { start_s, ..flow(&name, protocol, &[0], duration_s) }
    };
    let flows = names.map(one).collect();
    network(duration_s, links, flows)
}

/// Returns the times and values of a column, for one flow (table 0) or link direction (table 1).
fn samples(sim: &Simulation, table: usize, which: usize, name: &str) -> Vec<(f64, f64)> {
    let key = ["flow", "link"][table];
    let [time, id, wanted] = ["time_s", key, name].map(|name| column(sim.series()[table], name));
    (0..time.len()).filter(|&row| id[row] == which as f64).map(|row| (time[row], wanted[row])).collect()
}

/// Advice follows the price at which MaxNet's flows have their max-min share.
#[test]
fn advice_is_within_half_a_step_of_the_max_min_share() {
    // A change of advice needs 20 s down and 67 s up, and each corrects the last by the ratio of the two kinds of flows.
    for (maxnet, scone, settled_s, end_s) in [(4, 1, 100.0, 150.0), (11, 1, 100.0, 150.0), (5, 3, 190.0, 250.0)] {
        let (sim, summary) = run(&scenario(end_s, maxnet, scone));
        let share = 36e6 / (maxnet + scone) as f64;
        for n in maxnet..maxnet + scone {
            let advice = samples(&sim, 0, n, "scone_advice").into_iter().filter(|(time, _)| *time > settled_s);
            let advice: Vec<f64> = advice.map(|(_, advice)| advice).collect();
            assert!(advice.len() > 10);
            for advice in &advice {
                let off = advice / share;
                assert!((1.0 / HALF_STEP..HALF_STEP).contains(&off), "{maxnet} + {scone}: {advice} of {share}");
            }
            let rate = summary.flows[n].rate_bps.unwrap() / mean(&advice);
            assert!((0.97..1.02).contains(&rate), "{maxnet} + {scone}: {rate} of the advice");
        }
    }
}

/// Advice of an element that vanishes at 70 s is forgotten 67 s after the last SCONE packet that the element changed.
/// CUBIC then takes the rate that the queue allows.
#[test]
fn an_element_that_vanishes_is_forgotten_within_a_period() {
    let mut network = scenario(180.0, 4, 1);
    set(&mut network, "scone", &[("element_until", ParamValue::Number(70.0))]);
    let (sim, _) = run(&network);
    let advice = samples(&sim, 0, 4, "scone_advice");
    let last = advice.iter().rev().find(|(_, advice)| advice.is_finite()).unwrap().0;
    assert!((60.0 + 67.0 - 7.0..=70.0 + 67.1).contains(&last), "{last}");
    let rates = samples(&sim, 0, 4, "rate_bps");
    let over = |from: f64, to: f64| {
        mean(&rates.iter().filter(|(t, _)| (from..to).contains(t)).map(|(_, rate)| *rate).collect::<Vec<_>>())
    };
    let (before, after) = (over(80.0, last), over(last + 5.0, 180.0));
    assert!(before < 1.06 * 36e6 / 5.0 && after > 2.0 * before, "{before} {after}");
}

/// Without MaxNet flows, nothing holds the price while advice takes up to 67 s, so advice swings over the whole range.
#[test]
fn advice_alone_has_no_equilibrium() {
    let (sim, _) = run(&scenario(200.0, 0, 4));
    let advice: Vec<f64> =
        samples(&sim, 1, 0, "scone_advice").iter().filter(|(t, _)| *t > 70.0).map(|(_, a)| *a).collect();
    let (low, high) = advice.iter().fold((f64::MAX, 0_f64), |(low, high), a| (low.min(*a), high.max(*a)));
    assert!(high / low > 10.0, "{low} to {high}");
}
