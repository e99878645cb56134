//! What is simulated is what is deployed: a loaded program returns the same results for 10⁵ recorded calls as the C code
//! compiled for the host, bit for bit. Among them are those of the simulator's source and receiver with
//! `arithmetic = "kernel-host"`: the recorder compares their limits and echoes with the recorded ones. The law and the
//! host's additions are the headers that `host.bpf.c` includes. waterfill-laws tests the C code against the law in real
//! numbers.

#![cfg(feature = "daemon")]

use libbpf_rs::ObjectBuilder;

#[allow(unreachable_pub, reason = "an example, used as a module here")]
#[path = "../../waterfill-laws/examples/maxnet_record.rs"]
mod maxnet_record;

#[path = "common/replay.rs"]
mod replay;
#[path = "common/requirements.rs"]
mod requirements;

use replay::{RECORDS, play};

const RECORD_BYTES: usize = 64;

#[test]
fn the_kernel_and_the_host_compute_the_same() {
    if let Err(why) = requirements::can_load_programs() {
        eprintln!("skipped: {why}");
        return;
    }
    let object = ObjectBuilder::default().open_file(env!("REPLAY_OBJECT")).unwrap().load().unwrap();
    let mut recorded = Vec::new();
    maxnet_record::record(RECORDS as u64, &mut recorded).unwrap();
    assert_covers_the_hosts_additions(&recorded);
    assert_eq!(play(&object, &recorded, RECORD_BYTES), [RECORDS as u64, 0, 0], "played, wrong, first wrong");
    // A second run with one wrong record shows that the program does compare.
    let spoilt = 54_321;
    recorded[spoilt * RECORD_BYTES + 32] ^= 1;
    let wrong = [RECORDS as u64, 1, spoilt as u64 + 1];
    assert_eq!(play(&object, &recorded, RECORD_BYTES), wrong, "played, wrong, first wrong");
}

/// Asserts that calls 9 have had every addition to the law in effect, each at least 100 times.
fn assert_covers_the_hosts_additions(recorded: &[u8]) {
    let mut counts = [0; 6];
    for record in recorded.chunks(RECORD_BYTES) {
        let word = |n: usize| u64::from_ne_bytes(record[n * 8..n * 8 + 8].try_into().unwrap());
        let [call, base_rtt, limit, rate, tau_and_boost] = [0, 2, 4, 5, 7].map(word);
        let (base_rtt, tau) = (base_rtt & 0xffff_ffff, tau_and_boost & 0xffff_ffff);
        let slow_start = rate == 0;
        let smallest_tau = tau == 1000 && base_rtt < 1000;
        let pairs = tau > base_rtt.max(1000);
        let slowest_packet = rate == 7500;
        let ack_clock = limit >> 32 & 1 == 1;
        let boost = tau_and_boost >> 32 > 1024;
        let seen = [slow_start, smallest_tau, pairs, slowest_packet, ack_clock, boost];
        for (count, seen) in counts.iter_mut().zip(seen) {
            *count += u32::from(call == 9 && seen);
        }
    }
    assert!(counts.iter().all(|&count| count >= 100), "{counts:?}");
}
