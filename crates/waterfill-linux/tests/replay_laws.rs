//! Tests that simulated and deployed laws are equal, for every law behind `kernel/law.h`. After each of 10⁵ recorded
//! calls, a loaded program has bit for bit the same state and results as the C code on the host.

#![cfg(feature = "daemon")]

use libbpf_rs::ObjectBuilder;
use waterfill_laws::registry::kernel_protocols;

#[allow(unreachable_pub, reason = "an example, used as a module here")]
#[path = "../../waterfill-laws/examples/law_record.rs"]
mod law_record;

#[path = "common/replay.rs"]
mod replay;
#[path = "common/requirements.rs"]
mod requirements;

use replay::{RECORDS, play};

const RECORD_BYTES: usize = 96;
/// Offset of the hash in a record, in bytes.
const HASH: usize = 88;

/// Returns the name and object path of each law, which the build script lists.
fn objects() -> Vec<(&'static str, &'static str)> {
    env!("REPLAY_OBJECTS").split(';').map(|object| object.split_once('=').expect("law=path")).collect()
}

#[test]
fn the_kernel_and_the_host_compute_the_same_for_every_law() {
    if let Err(why) = requirements::can_load_programs() {
        eprintln!("skipped: {why}");
        return;
    }
    let mut names: Vec<_> = objects().into_iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        kernel_protocols().into_iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "an object for every law"
    );
    for (law, path) in objects() {
        let object = ObjectBuilder::default().open_file(path).unwrap().load().unwrap();
        let mut recorded = Vec::new();
        law_record::record(law, RECORDS as u64, &mut recorded).unwrap();
        assert_covers_all_calls(law, &recorded);
        assert_eq!(play(&object, &recorded, RECORD_BYTES), [RECORDS as u64, 0, 0], "{law}: played, wrong, first wrong");
        // A second run with one wrong record shows that the program does compare.
        let spoilt = 54_321;
        recorded[spoilt * RECORD_BYTES + HASH] ^= 1;
        let wrong = [RECORDS as u64, 1, spoilt as u64 + 1];
        assert_eq!(play(&object, &recorded, RECORD_BYTES), wrong, "{law}: played, wrong, first wrong");
    }
}

/// Checks that each kind of call is recorded, and that most calls change the state or have distinct results.
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
