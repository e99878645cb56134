//! Replays recorded calls in a loaded program that includes `bpf/test/records.h`.

use libbpf_rs::{MapCore as _, MapFlags, Object, ProgramInput};

/// Number of records in a replay.
pub(crate) const RECORDS: usize = 100_000;

/// Replays records of `record_bytes` bytes each. Returns the number of records, the number of wrong records, and the
/// position of the first wrong record, counted from 1.
pub(crate) fn play(object: &Object, recorded: &[u8], record_bytes: usize) -> [u64; 3] {
    assert_eq!(recorded.len(), RECORDS * record_bytes);
    play_some(object, recorded, record_bytes)
}

/// Replays recorded calls as [`play`] does, but accepts fewer records.
pub(crate) fn play_some(object: &Object, recorded: &[u8], record_bytes: usize) -> [u64; 3] {
    let map = |name| object.maps().find(|map| map.name() == name).expect("a map of the program");
    let records = map("records");
    for (index, record) in recorded.chunks(record_bytes).enumerate() {
        records.update(&(index as u32).to_ne_bytes(), record, MapFlags::ANY).unwrap();
    }
    let replays = map("replays");
    let zero = vec![0; replays.value_size() as usize];
    replays.update(&0_u32.to_ne_bytes(), &zero, MapFlags::ANY).unwrap();
    let program = object.progs_mut().find(|program| program.name() == "waterfill_replay").expect("the program");
    let input = ProgramInput {
        data_in: Some(&[0; 64]),
        repeat: (recorded.len() / record_bytes) as u32,
        ..ProgramInput::default()
    };
    program.test_run(input).unwrap();
    let state = replays.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
    [0, 1, 2].map(|n: usize| u64::from_ne_bytes(state[n * 8..n * 8 + 8].try_into().unwrap()))
}
