//! Tests of the kernel's view of connections: the mode of one connection, and the sums over many connections. Without
//! root, they are skipped.

#![cfg(feature = "daemon")]
#![expect(unsafe_code, reason = "a program's context is bytes")]

#[path = "common/generated.rs"]
mod generated;
#[path = "common/requirements.rs"]
mod requirements;

use generated::generated;
use libbpf_rs::{MapCore as _, MapFlags, Object, ObjectBuilder, ProgramInput};

generated!(interface, "interface.skel.rs");
use interface::types::{
    host_flag as Flag, host_mode as Mode, host_reason as Reason, host_samples as Samples, host_summary as Summary,
};

/// Mirror of `struct question` in `bpf/test/summary.bpf.c`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Question {
    flags: u32,
    reason: u32,
    state: u32,
    restart_window: u32,
    rate: u64,
    steady: u32,
    mode: u32,
    records: u32,
    answered: u32,
}

/// Loads the programs. If they cannot be loaded, prints the reason and returns `None`.
fn load() -> Option<Object> {
    requirements::can_load_programs().inspect_err(|why| eprintln!("skipped: {why}")).ok()?;
    Some(ObjectBuilder::default().open_file(env!("SUMMARY_OBJECT")).unwrap().load().unwrap())
}

fn ask(object: &Object, program: &str, question: Question) -> Question {
    let mut question = question;
    // SAFETY: integers without padding, for which any bytes are valid.
    let bytes = unsafe { std::slice::from_raw_parts_mut((&raw mut question).cast::<u8>(), size_of::<Question>()) };
    let program = object.progs_mut().find(|found| found.name() == program).unwrap();
    program.test_run(ProgramInput { context_in: Some(bytes), ..ProgramInput::default() }).unwrap();
    question
}

#[test]
fn the_mode_follows_from_flags_law_and_restart() {
    let Some(object) = load() else { return };
    let flags = |flags: &[Flag]| flags.iter().map(|flag| flag.0).sum::<u32>();
    let (selected, active) = (Flag::HOST_LAW_SELECTED, Flag::HOST_LAW_ACTIVE);
    let running = flags(&[selected, active, Flag::HOST_LAW_STARTED]);
    let priced = running | Flag::HOST_WAS_PRICED.0;
    let ended = flags(&[selected, Flag::HOST_WAS_PRICED]);
    let (no_echo, established, closed) = (Reason::HOST_NO_ECHO.0, 1, 7);
    // Flags, reason, TCP's state, restart window, rate, steady.
    for ((flags, reason, state, restart_window, rate, steady), mode) in [
        ((0, 0, established, 0, 0, 0), Mode::HOST_MODE_NONE),
        ((Flag::HOST_NEGOTIATED.0, 0, established, 0, 0, 0), Mode::HOST_MODE_RECEIVING),
        ((running, 0, established, 0, 0, 0), Mode::HOST_MODE_ASKING),
        ((running, 0, established, 0, 5, 1), Mode::HOST_MODE_ASKING),
        ((running, 0, established, 0, 5, 0), Mode::HOST_MODE_RISING),
        ((priced, 0, established, 0, 5, 1), Mode::HOST_MODE_PRICED),
        ((priced, 0, established, 1, 5, 1), Mode::HOST_MODE_RESTARTING),
        // TCP ends the law of every connection that closes.
        ((ended, 0, established, 0, 5, 1), Mode::HOST_MODE_RECEIVING),
        ((ended, 0, 4, 0, 5, 1), Mode::HOST_MODE_CLOSING),
        ((ended, 0, closed, 0, 5, 1), Mode::HOST_MODE_CLOSING),
        ((ended, no_echo, closed, 0, 5, 1), Mode::HOST_MODE_FALLEN_BACK),
        ((ended, no_echo, established, 0, 0, 0), Mode::HOST_MODE_FALLEN_BACK),
    ] {
        let question = Question { flags, reason, state, restart_window, rate, steady, ..Question::default() };
        let answer = ask(&object, "mode_of", question).mode;
        assert_eq!(answer, mode.0, "{flags:#x} {reason} {state} {restart_window} {rate} {steady}");
    }
}

#[test]
fn sums_are_exact_and_samples_are_a_fair_choice() {
    const RECORDS: u32 = 200_000;
    let Some(object) = load() else { return };
    let sums = || {
        let map = object.maps().find(|map| map.name() == "sums").unwrap();
        let bytes = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        assert_eq!(bytes.len(), size_of::<Summary>());
        // SAFETY: integers, and as many bytes as they have.
        unsafe { bytes.as_ptr().cast::<Summary>().read_unaligned() }
    };
    let (back, reason) = (Mode::HOST_MODE_FALLEN_BACK.0, Reason::HOST_NO_ROUTER.0);
    let samples = Samples::HOST_SAMPLES.0;
    let question = Question { rate: 7, mode: back, reason, records: samples, ..Question::default() };
    assert_eq!(ask(&object, "add_up", question).answered, samples);
    let few = sums();
    assert!(few.samples.iter().copied().eq(1..=u64::from(samples)), "all of them, as there are no more");
    assert_eq!((few.signal_min, few.signal_max, few.signals), (1, u64::from(samples), samples));
    assert_eq!(ask(&object, "add_up", Question { records: RECORDS, ..question }).answered, RECORDS);
    let all = sums();
    let count = RECORDS + samples;
    assert_eq!((all.flows[back as usize], all.fallen_back[reason as usize]), (count, count));
    assert_eq!((all.rate[back as usize], all.signals), (7 * u64::from(count), count));
    assert_eq!((all.signal_min, all.signal_max), (1, u64::from(RECORDS)));
    assert_eq!(all.flows.iter().sum::<u32>() + all.fallen_back.iter().sum::<u32>(), 2 * count);
    // 1024 numbers between 0 and 1 have a mean of 1/2, with a deviation of 0.009.
    let mean = all.samples.iter().sum::<u64>() as f64 / f64::from(samples) / f64::from(RECORDS);
    assert!((mean - 0.5).abs() < 0.06, "{mean}");
}
