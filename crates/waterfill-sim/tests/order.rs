//! Tests of flows that start when others have completed.

use crate::common::{flow, link, network, refusal, run};
use waterfill_network::{FlowSpec, Network};

/// Returns a flow with a size over one link.
fn step(name: &str, link: u32, size_bytes: u64, after: &[u32]) -> FlowSpec {
    FlowSpec { size_bytes: Some(size_bytes), after: after.into(), ..flow(name, "window", &[link], 10.0) }
}

/// Returns two links of different lengths, and flows over them.
fn steps(flows: Vec<FlowSpec>) -> Network {
    let links = [link("a", 1e7, 10e-3, 100_000), link("b", 1e7, 30e-3, 100_000)].concat();
    Network { measure_s: [0.0, 10.0], ..network(10.0, links, flows) }
}

#[test]
fn a_flow_starts_when_the_last_byte_of_the_flow_before_has_arrived() {
    let (_, summary) = run(&steps(vec![step("second", 2, 50_000, &[1]), step("first", 0, 50_000, &[])]));
    let [second, first] = &summary.flows[..] else { panic!("two flows") };
    // By hand: the SYN of 40 B and its answer take 20.064 ms; a window of 10 packets of 1500 B takes 12 ms to send, so
    // the acknowledgements of the 35 packets (1460 B each) clock them out at one window per 21.232 ms.
    let ended = first.completed_s.unwrap();
    assert!((0.09..0.12).contains(&ended), "{ended}");
    assert_eq!((first.start_s, second.start_s), (0.0, ended));
    assert!(second.completed_s.unwrap() > ended + 0.18, "its own path, three times as long");
    assert_eq!(second.active_s.unwrap()[0], ended);
    let sent = second.goodput_bps.unwrap() * (second.completed_s.unwrap() - ended) / 8.0;
    assert!((sent - 50_000.0).abs() < 1e-6, "each byte counts: {sent}");
}

#[test]
fn a_flow_waits_for_all_flows_of_all_groups_that_it_names_and_for_its_delay() {
    let group = FlowSpec { count: 3, stagger_s: 0.25, ..step("group", 0, 20_000, &[]) };
    let long = step("long", 2, 100_000, &[]);
    let last = FlowSpec { count: 2, start_s: 0.5, stagger_s: 0.25, ..step("last", 0, 20_000, &[0, 1]) };
    let (_, summary) = run(&steps(vec![group, long, last]));
    let completed = |i: usize| summary.flows[i].completed_s.unwrap();
    let barrier = (0..4).map(completed).fold(0.0, f64::max);
    assert_eq!(barrier, completed(2), "the last flow of the group is the last of all");
    let starts = [4, 5].map(|i| summary.flows[i].start_s);
    assert!((starts[0] - barrier - 0.5).abs() < 1e-12 && (starts[1] - barrier - 0.75).abs() < 1e-12, "{starts:?}");
}

#[test]
fn a_flow_may_wait_for_some_of_the_groups_that_it_names() {
    let sizes = [30_000, 90_000, 60_000].map(|size| step(&format!("f{size}"), 0, size, &[]));
    let waiting = |n| FlowSpec { after_count: Some(n), ..step(&format!("after{n}"), 2, 1_000, &[0, 1, 2]) };
    let (_, summary) = run(&steps([sizes.to_vec(), vec![waiting(1), waiting(2), waiting(3)]].concat()));
    let mut ends: Vec<f64> = summary.flows[..3].iter().map(|flow| flow.completed_s.unwrap()).collect();
    ends.sort_by(f64::total_cmp);
    assert!(ends[0] < ends[1] && ends[1] < ends[2], "{ends:?}");
    assert_eq!(summary.flows[3..].iter().map(|flow| flow.start_s).collect::<Vec<_>>(), ends);
    let many = steps(vec![step("a", 0, 1000, &[]), FlowSpec { after_count: Some(2), ..step("b", 0, 1000, &[0]) }]);
    assert_eq!(refusal(many), "flow.b.after_count: must be 1 to 1, got 2");
}

#[test]
fn a_flow_whose_turn_never_comes_has_no_life() {
    let (sim, summary) = run(&steps(vec![step("first", 0, 100_000_000, &[]), step("second", 2, 1000, &[0])]));
    let second = &summary.flows[1];
    assert_eq!((second.start_s, second.completed_s, second.active_s), (10.0, None, None));
    assert_eq!((second.packets_sent, second.rate_bps), (0, None));
    assert!(sim.series()[0].columns()[1].iter().all(|&flow| flow == 0.0), "no row");
}

#[test]
fn flows_that_wait_for_each_other_or_for_no_end_are_refused() {
    let circle = steps(vec![step("a", 0, 1000, &[1]), step("b", 0, 1000, &[0])]);
    assert_eq!(refusal(circle), "flow.a.after: the flow waits for flows that wait for it");
    let itself = steps(vec![step("a", 0, 1000, &[0])]);
    assert_eq!(refusal(itself), "flow.a.after: the flow waits for flows that wait for it");
    let endless = steps(vec![FlowSpec { size_bytes: None, ..step("a", 0, 1, &[]) }, step("b", 0, 1000, &[0])]);
    assert_eq!(refusal(endless), "flow.b.after: must name flows with a size, got a");
    assert_eq!(refusal(steps(vec![step("a", 0, 1000, &[7])])), "flow.a.after: no flow 7");
}
