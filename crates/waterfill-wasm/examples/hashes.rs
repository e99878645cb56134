//! Runs requests from files and prints the hash of each result, or the sentence with which it was refused.
//!
//! The lines of every target must be equal: `make validate STUDY=targets`.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    for path in std::env::args().skip(1) {
        let Ok(request) = std::fs::read(&path) else {
            eprintln!("{path}: cannot be read");
            return ExitCode::FAILURE;
        };
        let outcome = waterfill_wasm::finish(&request).and_then(|finished| finished.digest());
        println!("{path}\t{}", outcome.unwrap_or_else(|why| format!("refused: {why}")));
        std::io::stdout().flush().expect("standard output is open");
    }
    ExitCode::SUCCESS
}
