//! Network namespaces whose default congestion control is our law.
//!
//! The sysctl `net.ipv4.tcp_congestion_control` names a congestion control, but the kernel keeps the object that had the
//! name when the sysctl was written. So after the law is replaced, the same name is written again.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::thread;

use anyhow::{Context as _, Result, anyhow};
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const OWN: &str = "/proc/thread-self/ns/net";

/// Writes the sysctl again in all network namespaces that this process finds, where it names the law.
pub(super) fn renew(law: &str) -> Result<()> {
    // A thread of its own, because it changes its namespace.
    thread::scope(|scope| scope.spawn(|| renew_all(law)).join().map_err(|_| anyhow!("a thread ended early"))?)
}

fn renew_all(law: &str) -> Result<()> {
    let mut seen = BTreeSet::from([fs::metadata(OWN).context("cannot identify the network namespace")?.ino()]);
    let mut denied = 0;
    renew_one(law, "this network namespace");
    for path in namespaces() {
        // Processes and names come and go meanwhile.
        let Ok(namespace) = File::open(&path) else { continue };
        if !namespace.metadata().is_ok_and(|of| seen.insert(of.ino())) {
            continue;
        }
        match setns(&namespace, CloneFlags::CLONE_NEWNET) {
            Ok(()) => renew_one(law, &path.display().to_string()),
            Err(Errno::EPERM) => denied += 1,
            Err(e) => tracing::debug!("{}: {}", path.display(), e.desc()), // a file that is not a namespace
        }
    }
    if denied > 0 {
        tracing::warn!(
            "cannot enter {denied} network namespaces without CAP_SYS_ADMIN: where net.ipv4.tcp_congestion_control is {law}, \
             write it again, or new connections use the older version"
        );
    }
    Ok(())
}

/// Lists the namespaces of processes, and those that `ip netns` has named.
fn namespaces() -> Vec<PathBuf> {
    let list = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let processes = list("/proc")
        .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit)));
    processes.map(|process| process.join("ns/net")).chain(list("/run/netns")).collect()
}

/// Writes the sysctl again in this thread's namespace.
fn renew_one(law: &str, place: &str) {
    if !fs::read_to_string(DEFAULT).is_ok_and(|name| name.trim() == law) {
        return;
    }
    match fs::write(DEFAULT, law) {
        Ok(()) => tracing::debug!("{place}: wrote net.ipv4.tcp_congestion_control again"),
        Err(e) => tracing::warn!(
            "{place}: net.ipv4.tcp_congestion_control keeps the older version of {law} for new connections: {e}"
        ),
    }
}
