//! Tests of flows that start when others have completed.

use crate::common::{flow, link, network, refusal, run, run_on};
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

/// Returns a first message of 100 packets on a new connection over 100 Mbit/s and 10 ms, and a second one of 50.
fn two_messages(protocol: &str, second: FlowSpec) -> Network {
    let second = FlowSpec { name: "second".into(), after: vec![0], ..second };
    let first = FlowSpec { name: "first".into(), continues: None, after: vec![], start_s: 0.0, ..second.clone() };
    let message = |flow, packets: u64| FlowSpec { size_bytes: Some(1460 * packets), protocol: protocol.into(), ..flow };
    network(10.0, link("a", 1e8, 10e-3, 10_000_000).to_vec(), vec![message(first, 100), message(second, 50)])
}

/// Returns how long the second message takes, from its start.
fn second_took_s(network: &Network) -> f64 {
    let (_, summary) = run(network);
    summary.flows[1].completed_s.unwrap() - summary.flows[1].start_s
}

#[test]
fn a_message_on_an_open_connection_leaves_with_the_window_that_the_one_before_has_left() {
    let continued = |start_s| FlowSpec { continues: Some(0), start_s, ..flow("", "sack", &[0], 10.0) };
    // The first message is sent in flights of 10, 20, 40 and 30 packets, so 70 may leave at once afterwards: 50 full packets
    // take 6 ms, and 10 ms on the wire.
    let took_s = second_took_s(&two_messages("sack", continued(0.0)));
    assert!((took_s - 0.016).abs() < 1e-9, "{took_s}");
    // A new connection opens in an RTT, and needs three flights.
    assert!(second_took_s(&two_messages("sack", FlowSpec { continues: None, ..continued(0.0) })) > 0.07);
    // A pause of several timeouts halves the window (RFC 2861), unless the host keeps it.
    let off = FlowSpec { window_validation: Some("off".into()), ..continued(5.0) };
    let took_s = [second_took_s(&two_messages("sack", continued(5.0))), second_took_s(&two_messages("sack", off))];
    assert!(took_s[0] > 0.035 && (took_s[1] - 0.016).abs() < 1e-9, "{took_s:?}");
    // An explicit law sends at its rate at once.
    let rate =
        |continues| second_took_s(&two_messages("maxnet", FlowSpec { continues, ..flow("", "maxnet", &[0], 10.0) }));
    assert!(rate(Some(0)) < rate(None) - 0.015, "{} {}", rate(Some(0)), rate(None));
}

#[test]
fn two_threads_have_both_flows_of_a_connection_in_one_part() {
    let continued = FlowSpec { continues: Some(0), ..flow("", "sack", &[0], 10.0) };
    let mut n = two_messages("sack", continued);
    n.links.extend(link("b", 1e8, 10e-3, 10_000_000));
    n.flows.push(flow("other", "sack", &[2], 10.0));
    let done = |threads| run_on(&n, threads).1.flows.iter().map(|flow| flow.completed_s).collect::<Vec<_>>();
    assert_eq!(done(1), done(2));
}

#[test]
fn a_connection_is_continued_only_by_a_like_flow_that_waits_for_it() {
    let first = || step("a", 0, 1000, &[]);
    let second = |change: &dyn Fn(&mut FlowSpec)| {
        let mut second = FlowSpec { continues: Some(0), ..step("b", 0, 1000, &[0]) };
        change(&mut second);
        refusal(steps(vec![first(), second, step("c", 2, 1000, &[])]))
    };
    let waits = "flow.b.continues: must be a flow of after, and all of these must have completed";
    assert_eq!(second(&|flow| flow.after = vec![2]), waits);
    assert_eq!(second(&|flow| flow.after_count = Some(1)), waits);
    let like = "flow.b.continues: must have the same hosts, count, protocol, recovery and window_validation, got a";
    assert_eq!(second(&|flow| flow.protocol = "sack".into()), like);
    assert_eq!(second(&|flow| flow.count = 2), like);
    let twice = ["b", "c"].map(|name| FlowSpec { continues: Some(0), ..step(name, 0, 1000, &[0]) });
    let both = steps([vec![first()], twice.to_vec()].concat());
    assert_eq!(refusal(both), "flow.c.continues: b uses this connection at the same time");
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
