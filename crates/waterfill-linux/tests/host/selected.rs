//! Tests of a law that another BPF program selects, during which the kernel refuses every other choice.

use std::fs::File;
use std::os::fd::AsRawFd as _;

use libbpf_rs::{MapCore as _, MapFlags, ObjectBuilder};

use super::{Network, SERVER, assert_priced, number};

#[test]
fn a_law_that_another_program_selects_falls_back_with_the_first_acknowledgement() {
    let Some(network) = Network::new() else { return };
    let mut daemon = network.daemon("--no-pin");
    let other = ObjectBuilder::default().open_file(env!("SELECT_OBJECT")).unwrap().load().unwrap();
    let cgroup = File::open(&network.spaces.cgroup).unwrap();
    let link = other.progs_mut().next().unwrap().attach_cgroup(cgroup.as_raw_fd()).unwrap();
    let maps = |end: &str| other.maps().find(|map| map.name().to_string_lossy().ends_with(end)).unwrap();
    let mut name = vec![0; usize::try_from(maps(".bss").value_size()).unwrap()];
    let law = network.spaces.law();
    name[..law.len()].copy_from_slice(law.as_bytes());
    maps(".bss").update(&0_u32.to_ne_bytes(), &name, MapFlags::ANY).unwrap();
    let refused = |daemon: &mut super::Daemon| number(&daemon.status()["counters"], "fallback_refused");

    // The peer does not answer the option, so the connection has no state when the other program selects the law, and
    // init() must fall back while that call is in progress.
    let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, false);
    let reason = "in a cgroup, a namespace or with a peer for which the law is not loaded";
    assert_eq!((&flow["mode"], &flow["fallback_reason"]), (&"fallen back".into(), &reason.into()), "{flow}");
    let flags = flow["flags"].as_array().unwrap();
    assert!(!flags.contains(&"Reno".into()) && !flags.contains(&"deferred".into()), "{flow}");
    assert_eq!(refused(&mut daemon), 0.0);

    // Where the peer answers, the same program's choice runs the law.
    network.path("price", &['b']);
    let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, true);
    assert_priced(&flow);
    drop((daemon, link));
}
