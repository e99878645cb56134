//! libFuzzer for the target that `FUZZ_TARGET` names; `list` prints all. Instrumented by tools/fuzz.sh, or it would find nothing.

#![no_main]
#![allow(unsafe_code, reason = "libFuzzer calls functions by their C names; libfuzzer-sys writes them")]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use waterfill_fuzz::{TARGETS, Target, target};

static SELECTED: OnceLock<&Target> = OnceLock::new();

fn select() {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    if name == "list" {
        for target in TARGETS {
            println!("{}\t{}\t{}\t{}", target.name, target.max_bytes, target.executions, target.checks);
        }
        std::process::exit(0);
    }
    let Some(found) = target(&name) else {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("fuzz: FUZZ_TARGET: expected one of {}, not '{name}'", names.join(", "));
        std::process::exit(2);
    };
    SELECTED.set(found).expect("set once");
}

fuzz_target!(
    init: select(),
    |data: &[u8]| {
        if let Some(selected) = SELECTED.get() {
            (selected.run)(data);
        }
    }
);
