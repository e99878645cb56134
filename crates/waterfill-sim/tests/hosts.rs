//! Tests of loss recovery packet by packet: retransmissions after each acknowledgement.

use waterfill_laws::protocol::Retransmission;
use waterfill_sim::{Acknowledgement, HostPair};

/// Returns a host pair that has sent packets 0 to `count` − 1.
fn sent(mode: Retransmission, delayed_ack: bool, count: u64) -> HostPair {
    let mut hosts = HostPair::new(mode, delayed_ack);
    for number in 0..count {
        assert_eq!(hosts.send(), number);
    }
    assert_eq!((hosts.sent(), hosts.in_flight(), hosts.unacknowledged()), (count, count, count));
    hosts
}

fn cumulative(next: u64) -> Acknowledgement {
    Acknowledgement { next, blocks: None }
}

/// Delivers a packet and its acknowledgement. Returns the acknowledgement.
fn deliver(hosts: &mut HostPair, number: u64) -> Acknowledgement {
    let ack = hosts.arrive(number).expect("at once");
    hosts.acknowledge(&ack);
    ack
}

#[test]
fn in_order_every_packet_is_acknowledged_once() {
    let mut hosts = sent(Retransmission::Rfc6675, false, 3);
    for number in 0..3 {
        let ack = hosts.arrive(number).expect("at once");
        assert_eq!(ack, cumulative(number + 1));
        assert_eq!(hosts.acknowledge(&ack), 1);
        assert_eq!(hosts.acknowledge(&ack), 0, "reported before");
    }
    assert_eq!((hosts.outstanding(), hosts.in_flight(), hosts.to_resend(), hosts.arrived()), (0, 0, None, 3));
}

/// `[rfc6675]` A missing packet counts as lost when three packets above it have arrived. It is sent again once.
#[test]
fn a_hole_is_sent_again_by_selective_acknowledgements() {
    let mut hosts = sent(Retransmission::Rfc6675, false, 5);
    for number in 1..4 {
        assert_eq!(hosts.resend(), None);
        let ack = deliver(&mut hosts, number);
        assert_eq!((ack.next, ack.blocks.expect("a block")[0]), (0, (1, number + 1)));
    }
    assert_eq!((hosts.to_resend(), hosts.resend(), hosts.resend()), (Some(0), Some(0), None));
    // The packet that was sent again, and packet 4.
    assert_eq!((hosts.in_flight(), hosts.outstanding()), (2, 2));
    assert_eq!(deliver(&mut hosts, 0), cumulative(4));
    assert_eq!((hosts.unacknowledged(), hosts.arrived(), hosts.sacks_in_use()), (1, 4, 0));
}

/// `[rfc6582]` Without selective acknowledgements, a partial acknowledgement shows the next hole.
#[test]
fn newreno_finds_the_second_hole_by_a_partial_acknowledgement() {
    let mut hosts = sent(Retransmission::NewReno, false, 8);
    for number in [1, 2, 4, 5, 6, 7] {
        assert_eq!(deliver(&mut hosts, number), cumulative(0));
    }
    assert_eq!((hosts.resend(), hosts.resend()), (Some(0), None));
    assert_eq!(deliver(&mut hosts, 0), cumulative(3));
    assert_eq!(hosts.resend(), Some(3));
    assert_eq!(deliver(&mut hosts, 3), cumulative(8));
    assert_eq!((hosts.outstanding(), hosts.resend()), (0, None));
}

/// `[rfc5681:§4.2]` Every second packet is acknowledged, the last packet after a delay, and a packet out of order at
/// once.
#[test]
fn delayed_acknowledgements() {
    let mut hosts = sent(Retransmission::Rfc6675, true, 4);
    assert_eq!(hosts.receiver_timer(), None, "nothing waits");
    assert_eq!(hosts.arrive(0), None);
    assert_eq!(hosts.arrive(1), Some(cumulative(2)));
    assert_eq!(hosts.arrive(2), None);
    assert_eq!(hosts.receiver_timer(), Some(cumulative(3)));
    assert_eq!(hosts.receiver_timer(), None);
    let mut late = sent(Retransmission::Rfc6675, true, 2);
    assert_eq!(late.arrive(1).expect("at once").next, 0);
}

#[test]
fn after_a_timeout_all_that_is_missing_is_sent_again() {
    let mut hosts = sent(Retransmission::Rfc6675, false, 4);
    deliver(&mut hosts, 2);
    hosts.time_out();
    assert_eq!(hosts.in_flight(), 0);
    assert_eq!([hosts.resend(), hosts.resend(), hosts.resend(), hosts.resend()], [Some(0), Some(1), Some(3), None]);
}

#[test]
fn a_mark_sends_nothing_again() {
    let mut hosts = sent(Retransmission::Rfc6675, false, 3);
    hosts.mark();
    assert_eq!((hosts.to_resend(), hosts.in_flight()), (None, 3));
}
