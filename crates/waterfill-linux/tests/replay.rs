//! What is simulated is what is deployed: a loaded program returns the same results for 10⁵ recorded calls as the C code
//! compiled for the host, bit for bit. Among them are those of the simulator's source and receiver with
//! `arithmetic = "kernel-host"`: the recorder compares their limits and echoes with the recorded ones. The law and the
//! host's additions are the headers that `host_maxnet.bpf.c` includes. waterfill-laws tests the C code against the law in real
//! numbers.

#![cfg(feature = "daemon")]

use libbpf_rs::{MapCore as _, MapFlags, ObjectBuilder, ProgramInput};

#[allow(unreachable_pub, reason = "an example, used as a module here")]
#[path = "../../waterfill-laws/examples/maxnet_record.rs"]
mod maxnet_record;

#[path = "common/requirements.rs"]
mod requirements;

const RECORDS: usize = 100_000;

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
    let map = |name| object.maps().find(|map| map.name() == name).unwrap();
    // A second run with one wrong record shows that the program does compare.
    let spoilt = 54_321;
    let mut play = |spoil: bool| {
        recorded[spoilt * 64 + 32] ^= u8::from(spoil);
        let records = map("records");
        for (index, record) in recorded.chunks(64).enumerate() {
            records.update(&(index as u32).to_ne_bytes(), record, MapFlags::ANY).unwrap();
        }
        recorded[spoilt * 64 + 32] ^= u8::from(spoil);
        let replays = map("replays");
        let zero = vec![0; replays.value_size() as usize];
        replays.update(&0_u32.to_ne_bytes(), &zero, MapFlags::ANY).unwrap();
        let program = object.progs_mut().find(|program| program.name() == "waterfill_replay").unwrap();
        let input = ProgramInput { data_in: Some(&[0; 64]), repeat: RECORDS as u32, ..ProgramInput::default() };
        program.test_run(input).unwrap();
        let state = replays.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        let word = |n: usize| u64::from_ne_bytes(state[n * 8..n * 8 + 8].try_into().unwrap());
        [word(0), word(1), word(2)]
    };
    assert_eq!(play(false), [RECORDS as u64, 0, 0], "played, wrong, first wrong");
    assert_eq!(play(true), [RECORDS as u64, 1, spoilt as u64 + 1], "played, wrong, first wrong");
}

/// Asserts that calls 9 have had every addition to the law in effect, each at least 100 times.
fn assert_covers_the_hosts_additions(recorded: &[u8]) {
    let mut counts = [0; 6];
    for record in recorded.chunks(64) {
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
