//! Snapshot test of a small run as a readable table, in which any change of behaviour shows as a diff.

use std::fmt::Write as _;

use crate::common::{cbr, flow, link, network, run_on};

/// The table of results is the same on any number of threads.
#[test]
fn two_protocols_two_links() {
    for threads in [1, 2, 3] {
        let (table, used) = two_protocols_two_links_on(threads);
        assert_eq!(used, threads);
        insta::assert_snapshot!("two_protocols_two_links", table);
    }
}

fn two_protocols_two_links_on(threads: usize) -> (String, usize) {
    let links = [link("fast", 5e7, 0.01, 125_000), link("slow", 2e7, 0.02, 60_000)].concat();
    let mut long = flow("long", "maxnet", &[0, 2], 12.0);
    long.count = 2;
    long.stagger_s = 1.0;
    long.pad_s = 0.005;
    long.base_rtt_s = 0.07;
    let mut short = flow("short", "maxnet", &[0], 12.0);
    short.base_rtt_s = 0.02;
    let mut file = flow("file", "window", &[2], 12.0);
    file.size_bytes = Some(400_000);
    file.start_s = 7.0;
    file.base_rtt_s = 0.04;
    let mut n = network(12.0, links, vec![long, short, file]);
    n.links[2].loss = 0.002;
    n.traffic = vec![cbr("cbr", &[2], 2e6, [3.0, 11.0], 500)];
    // The table is of the 2007 paper's law, which has no eq. 12.
    n.set_param("maxnet", "compensate", false);
    let (sim, s) = run_on(&n, threads);

    let mut table = String::new();
    let num = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.3}"));
    for f in &s.flows {
        let (rate, good) = (f.rate_bps.map(|r| r / 1e6), f.goodput_bps.map(|r| r / 1e6));
        writeln!(
            table,
            "{:8} {:7} rate {:>7} good {:>7} Mbit/s  rtt {:>7} p99 {:>7} ms  sent {:5} again {:3} completed {}",
            f.name,
            f.protocol,
            num(rate),
            num(good),
            num(f.rtt_ms.mean),
            num(f.rtt_ms.p99),
            f.packets_sent,
            f.retransmissions,
            num(f.completed_s)
        )
        .unwrap();
    }
    for l in &s.links {
        writeln!(
            table,
            "{:8} utilization {:.4}  queue mean {:8.1} p99 {:8.1} max {:6} bytes  drops {} lost {}",
            l.name, l.utilization, l.queue_bytes.mean, l.queue_bytes.p99, l.queue_bytes.max, l.drops, l.lost
        )
        .unwrap();
    }
    for t in &s.traffic {
        writeln!(
            table,
            "{:8} {:7} rate {:>7} Mbit/s  sent {} received {}",
            t.name,
            t.kind,
            num(t.rate_bps.map(|r| r / 1e6)),
            t.packets_sent,
            t.packets_received
        )
        .unwrap();
    }
    let l = sim.ledger();
    writeln!(
        table,
        "sent {} delivered {} dropped {} lost {} in transit {}",
        l.sent, l.delivered, l.dropped, l.lost, l.in_transit
    )
    .unwrap();
    (table, sim.threads())
}
