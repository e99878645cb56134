//! What is simulated is what is deployed, for every law behind `kernel/law.h`: a loaded program has the same state and
//! results after each of 10⁵ recorded calls as the C code compiled for the host, bit for bit.

#![cfg(feature = "daemon")]

use libbpf_rs::{MapCore as _, MapFlags, ObjectBuilder, ProgramInput};
use waterfill_laws::kernel::Law;

#[allow(unreachable_pub, reason = "an example, used as a module here")]
#[path = "../../waterfill-laws/examples/law_record.rs"]
mod law_record;

#[path = "common/requirements.rs"]
mod requirements;

const RECORDS: usize = 100_000;
const RECORD_BYTES: usize = 96;
/// Byte of a record where its hash begins.
const HASH: usize = 88;

/// The laws with their objects, which the build script lists.
fn objects() -> Vec<(&'static str, &'static str)> {
    env!("REPLAY_OBJECTS").split(';').map(|object| object.split_once('=').expect("law=path")).collect()
}

/// Plays the records in a loaded program; returns how many it played, how many were wrong, and the first of them.
fn play(object: &libbpf_rs::Object, recorded: &[u8]) -> [u64; 3] {
    let map = |name| object.maps().find(|map| map.name() == name).expect("a map of the program");
    let records = map("records");
    for (index, record) in recorded.chunks(RECORD_BYTES).enumerate() {
        records.update(&(index as u32).to_ne_bytes(), record, MapFlags::ANY).unwrap();
    }
    let replays = map("replays");
    let zero = vec![0; replays.value_size() as usize];
    replays.update(&0_u32.to_ne_bytes(), &zero, MapFlags::ANY).unwrap();
    let program = object.progs_mut().find(|program| program.name() == "waterfill_replay").expect("the program");
    let input = ProgramInput { data_in: Some(&[0; 64]), repeat: RECORDS as u32, ..ProgramInput::default() };
    program.test_run(input).unwrap();
    let state = replays.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
    [0, 1, 2].map(|n: usize| u64::from_ne_bytes(state[n * 8..n * 8 + 8].try_into().unwrap()))
}

#[test]
fn the_kernel_and_the_host_compute_the_same_for_every_law() {
    if let Err(why) = requirements::can_load_programs() {
        eprintln!("skipped: {why}");
        return;
    }
    let mut names: Vec<_> = objects().into_iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    assert_eq!(names, Law::all().into_iter().map(|(name, _)| name).collect::<Vec<_>>(), "an object for every law");
    for (law, path) in objects() {
        let object = ObjectBuilder::default().open_file(path).unwrap().load().unwrap();
        let mut recorded = Vec::new();
        law_record::record(law, RECORDS as u64, &mut recorded).unwrap();
        assert_covers_all_calls(law, &recorded);
        assert_eq!(play(&object, &recorded), [RECORDS as u64, 0, 0], "{law}: played, wrong, first wrong");
        // A second run with one wrong record shows that the program does compare.
        let spoilt = 54_321;
        recorded[spoilt * RECORD_BYTES + HASH] ^= 1;
        let wrong = [RECORDS as u64, 1, spoilt as u64 + 1];
        assert_eq!(play(&object, &recorded), wrong, "{law}: played, wrong, first wrong");
    }
}

/// Asserts that each kind of call is there, and that most calls change the state or have results of their own.
fn assert_covers_all_calls(law: &str, recorded: &[u8]) {
    let mut counts = [0; law_record::CALLS];
    let mut hashes = std::collections::HashSet::new();
    for record in recorded.chunks(RECORD_BYTES) {
        counts[u32::from_ne_bytes(record[..4].try_into().unwrap()) as usize] += 1;
        hashes.insert(&record[HASH..]);
    }
    assert!(counts.iter().all(|&count| count >= 20), "{law}: {counts:?}");
    assert!(hashes.len() > RECORDS / 2, "{law}: {} states", hashes.len());
}
