//! The law in the kernel: a loaded program returns the same results for 10⁵ recorded calls as the C code compiled for the
//! host, bit for bit. waterfill-laws tests the C code against the law in real numbers.

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
