//! `waterfilld`: MaxNet on this machine, as host and as router.

use std::process::ExitCode;

fn main() -> ExitCode {
    waterfill_linux::daemon::main()
}
