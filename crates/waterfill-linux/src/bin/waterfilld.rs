//! `waterfilld`: the daemon that runs MaxNet and other laws on this Linux host, as an end host and as a router.

use std::process::ExitCode;

fn main() -> ExitCode {
    waterfill_linux::daemon::main()
}
