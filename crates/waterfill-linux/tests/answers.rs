//! Tests that `waterfilld` fails with one sentence and exit code 1 if its output cannot be written.

#![cfg(feature = "daemon")]

use std::process::{Command, Output};

/// Runs a shell line in which `"$0"` is the daemon.
fn shell(line: &str) -> Output {
    Command::new("sh").args(["-c", line, env!("CARGO_BIN_EXE_waterfilld")]).output().expect("a shell")
}

#[test]
fn a_lost_answer_is_an_error() {
    for (stream, reason) in [(">/dev/full", "No space left on device"), (">&-", "it is closed")] {
        for command in ["schema", "laws", "probe", "completions bash"] {
            let done = shell(&format!("\"$0\" {command} {stream}"));
            let said = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(1), "{command} {stream}: {said}");
            assert!(said.contains("standard output: cannot be written"), "{command} {stream}: {said}");
            assert!(said.contains(reason), "{command} {stream}: {said}");
            assert_eq!(said.lines().count(), 1, "{command} {stream}: {said}");
        }
    }
}

#[test]
fn an_answer_that_nobody_reads_is_none() {
    assert_eq!(shell("\"$0\" laws >/dev/null").status.code(), Some(0));
    let done = shell("{ \"$0\" schema; echo \"code $?\" >&2; } | true");
    assert_eq!(String::from_utf8_lossy(&done.stderr), "code 0\n");
}
