//! The law inside the kernel: a loaded program answers 10⁵ recorded calls as the host-compiled C does, bit for bit. That the
//! C agrees with the law in real numbers, within the quantisation it states, is tested beside it in waterfill-laws.

#![cfg(feature = "daemon")]

use std::path::Path;

use libbpf_rs::{MapCore as _, MapFlags, ObjectBuilder, ProgramInput};

#[allow(unreachable_pub, reason = "an example, used as a module here")]
#[path = "../../waterfill-laws/examples/maxnet_record.rs"]
mod maxnet_record;

const RECORDS: usize = 100_000;

#[test]
fn the_loaded_program_answers_as_the_c_on_the_host() {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        eprintln!("skipped: this kernel has no type information (BTF)");
        return;
    }
    let object = match ObjectBuilder::default().open_file(env!("REPLAY_OBJECT")).and_then(libbpf_rs::OpenObject::load) {
        Ok(object) => object,
        Err(why) if why.kind() == libbpf_rs::ErrorKind::PermissionDenied => {
            eprintln!("skipped: loading a program needs root (CAP_BPF)");
            return;
        }
        Err(why) => panic!("{why:#}"),
    };
    let mut recorded = Vec::new();
    maxnet_record::record(RECORDS as u64, &mut recorded).unwrap();
    let map = |name| object.maps().find(|map| map.name() == name).unwrap();
    // One record is wrong, so that the comparison is seen to compare.
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
