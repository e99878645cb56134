//! Visits the network namespaces of this host.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::thread;

use anyhow::{Context as _, Result, anyhow};
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};

const OWN: &str = "/proc/thread-self/ns/net";

/// Calls `visit` with a name for messages in every network namespace that this process finds and may enter, first in
/// its own. Returns the number of namespaces that the process may not enter.
pub(super) fn visit(visit: impl FnMut(&str) + Send) -> Result<usize> {
    // A thread of its own, because it changes its namespace.
    thread::scope(|scope| scope.spawn(|| visit_all(visit)).join().map_err(|_| anyhow!("a thread ended early"))?)
}

fn visit_all(mut visit: impl FnMut(&str)) -> Result<usize> {
    let mut seen = BTreeSet::from([fs::metadata(OWN).context("cannot identify the network namespace")?.ino()]);
    let mut denied = 0;
    visit("this network namespace");
    for path in namespaces() {
        // Processes and names come and go meanwhile.
        let Ok(namespace) = File::open(&path) else { continue };
        if !namespace.metadata().is_ok_and(|of| seen.insert(of.ino())) {
            continue;
        }
        match setns(&namespace, CloneFlags::CLONE_NEWNET) {
            Ok(()) => visit(&path.display().to_string()),
            Err(Errno::EPERM) => denied += 1,
            Err(e) => tracing::debug!("{}: {}", path.display(), e.desc()), // a file that is not a namespace
        }
    }
    Ok(denied)
}

/// Returns the paths of all processes' network namespaces, and of the namespaces that `ip netns` has named.
fn namespaces() -> Vec<PathBuf> {
    let list = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let processes = list("/proc")
        .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit)));
    processes.map(|process| process.join("ns/net")).chain(list("/run/netns")).collect()
}
