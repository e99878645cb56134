use super::super::tests::{bps, bytes, feedback, packet_of};
use super::super::{Form, Params, Xcp};
use super::*;
use crate::protocol::PacketKind;
use crate::testing::close;

const MBPS: f64 = 1e6;

fn link() -> LinkView {
    LinkView { id: 0, capacity: bps(100.0 * MBPS), target: None, queue: Volume::ZERO }
}

/// `[ixcp-2007:eq1]` The spare bandwidth is 0.4 · 31 = 12.4 Mbit/s. A queue of 10 kB over 80 ms is 1 Mbit/s and takes
/// off 0.226 Mbit/s.
#[test]
fn eq1_spare() {
    let d = Duration::from_millis(80);
    let (c, y) = (bps(155.0 * MBPS), bps(124.0 * MBPS));
    close(spare(0.4, 0.226, c, y, Volume::ZERO, d).as_bps(), 12.4 * MBPS, 1e-12);
    close(spare(0.4, 0.226, c, c, bytes(10e3), d).as_bps(), -0.226 * MBPS, 1e-12);
}

/// `[ixcp-2007:eq2]` The shuffled bandwidth is γ·150 − 2 Mbit/s for either sign of φ. At 124 of 155 Mbit/s (80 %)
/// nothing is shuffled.
#[test]
fn eq2_shuffled() {
    close(shuffled(0.1, bps(150.0 * MBPS), bps(2.0 * MBPS)).as_bps(), 13.0 * MBPS, 1e-12);
    close(shuffled(0.1, bps(150.0 * MBPS), bps(-2.0 * MBPS)).as_bps(), 13.0 * MBPS, 1e-12);
    assert_eq!(shuffled(0.1, bps(100.0 * MBPS), bps(12.4 * MBPS)), Rate::ZERO);
}

/// `[katabi-2002:d]` Flows of 40 and 80 ms count once each, which gives a mean RTT of 60 ms for any windows.
#[test]
fn d_is_the_mean_over_flows() {
    let mut router = Router::<Draft>::with(&Params::default(), &link());
    for (rtt, cwnd) in [(0.04, 10e3), (0.08, 80e3)] {
        // In 160 ms a flow sends 0.16/rtt windows.
        for _ in 0..(0.16 / rtt * cwnd / 1000.0_f64).round() as u32 {
            router.count_arrival(bytes(1000.0), 1.0, Some(&packet_of(Form::Katabi, rtt, cwnd)), true);
        }
    }
    router.tick(Volume::ZERO, Instant::from_secs(0.05));
    close(router.interval.as_secs(), 0.06, 1e-6);
}

/// A packet without a header counts as load, except with `counts = "own"`.
#[test]
fn packets_of_others_count_or_not() {
    for (counts, arrived) in [(Counts::All, 1500.0), (Counts::Own, 1000.0)] {
        let mut router = Router::<Draft>::with(&Params { counts, ..Params::default() }, &link());
        let mut header = packet_of(Form::Katabi, 0.1, 1e4);
        for (bytes_of, header) in [(500.0, None), (1000.0, Some(&mut header))] {
            let (now, volume) = (Instant::ZERO, bytes(bytes_of));
            let mut passing = Passing { now, volume, packets: 1.0, kind: PacketKind::Other, header };
            crate::protocol::Router::<Xcp>::on_arrival(&mut router, &link(), &mut passing);
        }
        close(router.arrived.volume.as_bytes(), arrived, 1e-12);
    }
}

/// Returns a router after an interval of 100 ms with two flows of 100 ms, which sent 1000 kB (80 Mbit/s) in total.
fn after_one_interval(params: &Params) -> Router {
    let params = Params { first_interval: Duration::from_millis(100), ..params.clone() };
    let form = params.header;
    let mut router = Router::with(&params, &link());
    for cwnd in [800e3, 200e3] {
        for _ in 0..(cwnd / 1000.0) as u32 {
            router.count_arrival(bytes(1000.0), 1.0, Some(&packet_of(form, 0.1, cwnd)), true);
        }
    }
    router.tick(Volume::ZERO, Instant::from_secs(0.1));
    router
}

/// `[draft-falk:cp]` Each of two flows gains 4 Mbit/s, which is 5 and 20 kbit/s for each of 800 and 200 packets. φ/d =
/// 0.4 · 20 = 8 Mbit/s equals γ·y, which gives h = 0.
#[test]
fn cp_gives_every_flow_the_same() {
    for form in [Form::Katabi, Form::Falk] {
        let mut router = after_one_interval(&Params { header: form, ..Params::default() });
        for (cwnd, gain) in [(800e3, 5e3), (200e3, 20e3)] {
            let mut header = packet_of(form, 0.1, cwnd);
            assert!(router.write_feedback(bytes(1000.0), 1.0, &mut header, true));
            // Katabi's feedback is the change of the window: the throughput's times 100 ms.
            let per_s = if form == Form::Katabi { 10.0 } else { 1.0 };
            close(feedback(&header) * per_s * 8.0, gain, 1e-4);
        }
        assert!(!router.is_full());
    }
}

/// `[draft-falk:cn]` The flows gain equally and lose in proportion to their rates. With 50 kB in the queue, φ = 8 −
/// 0.226 · 4 and h = 0.904 Mbit/s. The flows gain (8 − 0.904 + 0.904)/2 each and lose 0.904 in total.
#[test]
fn cn_takes_from_every_flow_in_proportion() {
    let mut router = after_one_interval(&Params::default());
    (router.queue, router.interval) = (bytes(50e3), Duration::from_millis(100));
    for cwnd in [800e3, 200e3] {
        for _ in 0..(cwnd / 1000.0) as u32 {
            router.count_arrival(bytes(1000.0), 1.0, Some(&packet_of(Form::Katabi, 0.1, cwnd)), true);
        }
    }
    router.control();
    close(router.spare.as_bps(), 7.096 * MBPS, 1e-6);
    close(router.shuffled.as_bps(), 0.904 * MBPS, 1e-6);
    for (cwnd, change) in [(800e3, 4.0 - 0.904 * 0.8), (200e3, 4.0 - 0.904 * 0.2)] {
        let mut header = packet_of(Form::Katabi, 0.1, cwnd);
        router.write_feedback(bytes(1000.0), 1.0, &mut header, true);
        close(feedback(&header) * 8.0 / 0.1 * (cwnd / 1000.0), change * MBPS, 1e-5);
    }
}

/// `[draft-falk:residue]` An interval allocates all of the gains, and no more.
#[test]
fn residues_limit_what_is_allocated() {
    let mut router = after_one_interval(&Params::default());
    let mut given = 0.0;
    for _ in 0..3000 {
        let mut header = packet_of(Form::Katabi, 0.1, 800e3);
        router.write_feedback(bytes(1000.0), 1.0, &mut header, true);
        given += feedback(&header) * 8.0 / 0.1;
    }
    close(given, 8.0 * MBPS, 1e-5);
}

/// `[ixcp-2007:2.1]` Without residues nothing limits an interval: each of 3000 packets gains C_p·X, 5 kbit/s.
#[test]
fn without_residues_every_packet_gets_what_it_is_due() {
    let mut router = after_one_interval(&Params { residues: false, ..Params::default() });
    for _ in 0..3000 {
        let mut header = packet_of(Form::Katabi, 0.1, 800e3);
        router.write_feedback(bytes(1000.0), 1.0, &mut header, true);
        close(feedback(&header) * 8.0 / 0.1, 5e3, 1e-4);
    }
}

/// `[draft-falk:residue]` A smaller feedback of an earlier router stays, and the router counts only that feedback as
/// given.
#[test]
fn an_earlier_router_that_gave_less_prevails() {
    let mut router = after_one_interval(&Params { header: Form::Falk, ..Params::default() });
    let mut header = packet_of(Form::Falk, 0.1, 200e3); // would get 20 kbit/s
    header.set_feedback(bps(8e3), 0.1);
    assert!(!router.write_feedback(bytes(1000.0), 1.0, &mut header, true));
    assert_eq!(header.feedback(0.1), Some(bps(8e3)));
    close(router.residue_gain.as_bps(), 8.0 * MBPS - 8e3, 1e-9);
    // With losses to allocate, the difference is one of them: 20 − 8 kbit/s, so the gain is 20.
    router.residue_loss = bps(1.0 * MBPS);
    let before = router.residue_gain;
    router.write_feedback(bytes(1000.0), 1.0, &mut header, true);
    close(router.residue_loss.as_bps(), 1.0 * MBPS - 12e3, 1e-4);
    close((before - router.residue_gain).as_bps(), 20e3, 1e-4);
}

/// The persistent queue is the smallest queue of an interval, not the longest.
#[test]
fn the_persistent_queue_is_the_smallest() {
    let mut router = Router::<Draft>::with(&Params::default(), &link());
    router.tick(bytes(9e3), Instant::from_secs(0.05));
    for queue in [8e3, 5e3, 9e3] {
        let view = LinkView { queue: bytes(queue), ..link() };
        let (now, volume) = (Instant::from_secs(0.06), bytes(1000.0));
        let mut passing = Passing { now, volume, packets: 1.0, kind: PacketKind::Other, header: None };
        crate::protocol::Router::<Xcp>::on_departure(&mut router, &view, &mut passing);
    }
    // (50 ms − 9 kB/100 Mbit/s)/2 later.
    assert_eq!(router.next_queue, Instant::from_secs(0.05 + 0.02464));
    router.tick(bytes(9e3), router.next_queue);
    assert_eq!(router.queue, bytes(5e3));
}

#[test]
fn a_syn_is_load_and_nothing_else() {
    let mut router = after_one_interval(&Params::default());
    let mut header = Header::stamped(Form::Katabi, None, bytes(1000.0), bytes(40.0));
    router.count_arrival(bytes(40.0), 1.0, Some(&header), true);
    assert!(!router.write_feedback(bytes(40.0), 1.0, &mut header, true));
    assert_eq!((header.feedback(0.1), router.arrived.x), (None, 0.0));
    assert_eq!(router.arrived.volume, bytes(40.0));
}
