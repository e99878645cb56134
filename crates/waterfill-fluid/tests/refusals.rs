//! Tests that networks the fluid model cannot run are refused in one sentence.

use crate::common;

use crate::common::{flows, link, network};
use waterfill_laws::units::{Duration, Rate};
use waterfill_network::{
    ChangeSpec, Effect, FaultSpec, HostEffect, HostFaultSpec, Level, LossSpec, Network, QueueSpec, ReorderSpec,
    ShaperSpec, TrafficKind, TrafficSpec,
};

#[test]
fn networks_that_the_fluid_model_cannot_run_are_refused() {
    let net = || network(1.0, link("a", 1e8, 0.01, 600_000).to_vec(), vec![flows("f", 1, "maxnet", &[0], 1.0)]);
    let stepped = |step_s| common::fluid(&net(), Some(step_s)).err().unwrap_or_default();
    assert!(stepped(0.01).starts_with("step: must be above zero and at most 5.0"));
    assert!(stepped(0.0).starts_with("step: "));
    assert!(stepped(f64::NAN).starts_with("step: "));
    assert!(common::fluid(&net(), Some(0.005)).is_ok());
    let refused = |change: &dyn Fn(&mut Network)| {
        let mut changed = net();
        change(&mut changed);
        common::fluid(&changed, None).err().unwrap_or_default()
    };
    let host = refused(&|n| n.set_param("maxnet", "arithmetic", "kernel-host"));
    let expected =
        "params.maxnet.arithmetic: must be real or kernel on fluid, which has no packets to count or to pace";
    assert!(host.starts_with(expected), "{host}");
    let fast = refused(&|n| n.links[0].rate_bps = 1e17);
    assert!(fast.starts_with("params.maxnet.x_max: ") && fast.ends_with("(for link a)"), "{fast}");
    assert_eq!(refused(&|n| n.flows[0].protocol = "cubic".into()), "flow.f.protocol: cubic does not run on fluid");
    assert_eq!(
        refused(&|n| n.flows[0].access_bps = Some(1e9)),
        "flow.f.access_rate: not supported by the fluid model, where no burst waits at a host; use demand to cap a rate"
    );
    let short = refused(&|n| {
        for l in &mut n.links {
            (l.rate_bps, l.delay_s) = (1e18, 0.0);
        }
    });
    assert!(short.starts_with("step: every RTT must be at least 100 ps, got "), "{short}");
}

/// The fluid engine refuses features that only packet engines have, because ignoring them would give wrong results.
#[test]
fn faults_and_packets_are_refused() {
    let refused = |change: &dyn Fn(&mut Network)| {
        let mut n = network(1.0, link("a", 1e8, 0.01, 600_000).to_vec(), vec![flows("f", 1, "maxnet", &[0], 1.0)]);
        change(&mut n);
        common::fluid(&n, None).err().unwrap_or_default()
    };
    let loss = "link.a.loss: not supported: the fluid model has no random loss";
    assert_eq!(refused(&|n| n.links[0].loss = 0.1), loss);
    assert_eq!(refused(&|n| n.links[0].loss_model = Some(LossSpec::Periodic { every: 9 })), loss);
    let reorder = "link.a.reorder: not supported: the fluid model has no packets";
    assert_eq!(refused(&|n| n.links[0].duplicate = 0.1), reorder);
    assert_eq!(refused(&|n| n.links[0].reorder = Some(ReorderSpec { share: 0.1, delay_s: 0.1 })), reorder);
    assert_eq!(
        refused(&|n| n.links[0].policer = Some(ShaperSpec { line_bps: 1e9, depth_bytes: 3e3, timer_s: 0.0 })),
        "link.a.policer: not supported: the fluid model has no packets"
    );
    assert_eq!(
        refused(&|n| n.links[0].shaper = Some(ShaperSpec { line_bps: 1e9, depth_bytes: 3e3, timer_s: 0.0 })),
        "link.a.shaper: not supported: the fluid model has no bursts; set the link's rate to the shaper's"
    );
    assert_eq!(
        refused(&|n| n.links[0].queue = QueueSpec::Droptail { mark_at: Some(Level::Packets(5.0)), ramp: None }),
        "link.a.queue: must be droptail without marks"
    );
    let fault = "link.a.fault: not supported: the fluid model has no packets or routers to damage";
    let strip = FaultSpec { from_s: 0.1, until_s: 0.2, share: 1.0, effect: Effect::Strip {} };
    assert_eq!(refused(&|n| n.links[0].faults = vec![strip]), fault);
    let change = ChangeSpec { at_s: 0.5, ..ChangeSpec::default() };
    assert_eq!(refused(&|n| n.links[0].changes = vec![ChangeSpec { restart: true, ..change }]), fault);
    assert_eq!(refused(&|n| n.links[0].changes = vec![ChangeSpec { clock_step_s: Some(0.1), ..change }]), fault);
    let ignore = HostFaultSpec { from_s: 0.1, until_s: 0.2, effect: HostEffect::Ignore {} };
    assert_eq!(refused(&|n| n.flows[0].faults = vec![ignore]), "flow.f.fault: not supported by the fluid model");
    let span = [0.0, 1.0].map(Duration::from_secs);
    let source = TrafficSpec::cbr("t", &[0], Rate::from_bps(1e6), span);
    assert_eq!(
        refused(&|n| n.traffic = vec![TrafficSpec { access_bps: Some(1e9), ..source.clone() }]),
        "traffic.t.access_rate: not supported by the fluid model, where no packet waits at a host"
    );
    assert_eq!(
        refused(&|n| n.traffic = vec![TrafficSpec { kind: TrafficKind::Poisson, ..source.clone() }]),
        "traffic.t.kind: must be cbr, got poisson"
    );
}
