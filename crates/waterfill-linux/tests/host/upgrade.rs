//! Tests of a daemon that replaces the programs of an earlier one.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Daemon, Network, SERVER, WATERFILLD, assert_priced, run};

/// A BPF file system in its own mount namespace, which ends when this value is dropped.
pub(crate) struct Pinned {
    folder: PathBuf,
    holder: Child,
    /// Prefix that runs a command in the mount namespace.
    pub(crate) inside: String,
    /// Option `--pins` of the daemon for this file system.
    pub(crate) option: String,
}

impl Pinned {
    pub(crate) fn new(network: &Network) -> Self {
        let folder = std::env::temp_dir().join(format!("waterfill-test-{}", network.spaces.prefix));
        fs::create_dir(&folder).unwrap();
        let script = format!("mount -t bpf bpf {} && echo mounted && read end", folder.display());
        let mut holder = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
        let inside = format!("nsenter --mount --target {}", holder.id());
        let option = format!("--pins {}/pins", folder.display());
        Self { folder, holder, inside, option }
    }

    pub(crate) fn daemon(&self, network: &Network, arguments: &str) -> Daemon {
        Daemon::host(&network.spaces, &self.inside, &format!("{} {arguments}", self.option))
    }

    /// Removes a pin, as a new version does if its map has another size.
    fn forget(&self, pin: &str) {
        run(&format!("{} rm {}/pins/{pin}", self.inside, self.folder.display())).unwrap();
    }

    /// Returns the length in bytes of the list of connections with state.
    pub(crate) fn records_bytes(&self) -> usize {
        let script = format!("{} sh -c 'wc -c < {}/pins/host/flows'", self.inside, self.folder.display());
        run(&script).unwrap().trim().parse().unwrap()
    }

    pub(crate) fn unload(&self) {
        run(&format!("{} {WATERFILLD} unload {}", self.inside, self.option)).unwrap();
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        drop(run(&format!("{} {WATERFILLD} unload {}", self.inside, self.option)));
        drop(self.holder.stdin.take());
        drop(self.holder.wait());
        drop(fs::remove_dir(&self.folder));
    }
}

/// Returns true if the kernel's TCP has a congestion control of this name.
pub(crate) fn is_listed(law: &str) -> bool {
    let laws = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    laws.split_whitespace().any(|listed| listed == law)
}

#[test]
fn the_name_exists_all_the_time_while_programs_are_replaced() {
    let Some(network) = Network::new() else { return };
    let pinned = Pinned::new(&network);
    drop(pinned.daemon(&network, ""));
    let law = network.spaces.law();
    assert!(is_listed(&law));
    let replaced = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut missing = 0;
            while !replaced.load(Ordering::Relaxed) {
                missing += u32::from(!is_listed(&law));
            }
            missing
        });
        drop(pinned.daemon(&network, ""));
        replaced.store(true, Ordering::Relaxed);
        let missing = reader.join().unwrap();
        // Before Linux 6.4 a law cannot be replaced, only removed and registered.
        let replaces = fs::read_to_string("/proc/kallsyms").unwrap().contains(" bpf_struct_ops_link_create");
        assert!(missing == 0 || !replaces, "the name did not exist {missing} times");
    });
    // Another name replaces the first one.
    let other = law.replacen("bpf", "bpg", 1);
    let daemon = Daemon::start(
        &pinned.inside,
        &format!("host --name {other} --cgroup {} {}", network.spaces.cgroup.display(), pinned.option),
    );
    drop(daemon);
    assert!(is_listed(&other) && !is_listed(&law));
    pinned.unload();
    assert!(!is_listed(&other));
}

/// Connections that follow the sysctl use the new programs. The kernel itself would keep the law that had the name when
/// the sysctl was written.
#[test]
fn connections_that_follow_the_sysctl_use_the_new_programs() {
    let Some(network) = Network::new() else { return };
    let pinned = Pinned::new(&network);
    drop(pinned.daemon(&network, ""));
    network.spaces.use_law();
    network.path("price", &['a', 'b']);
    // The old programs do not know the new map of connections, and fall back.
    pinned.forget("host/connections");
    let mut daemon = pinned.daemon(&network, "");
    let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, true);
    assert_priced(&flow);
    drop(daemon);
}

/// A version with other structures starts with new maps, and no program reads a state of the older version.
#[test]
fn maps_of_another_layout_are_not_taken_over() {
    let Some(network) = Network::new() else { return };
    let pinned = Pinned::new(&network);
    let mut daemon = pinned.daemon(&network, "");
    network.spaces.use_law();
    network.path("price", &['a', 'b']);
    network.transfer(&mut daemon, SERVER[0], 0, true);
    let started = |daemon: &mut Daemon| daemon.status()["counters"]["started"].as_u64().unwrap();
    assert_eq!(started(&mut daemon), 2);
    drop(daemon);
    let mut daemon = pinned.daemon(&network, "");
    assert_eq!(started(&mut daemon), 2, "the same layout");
    drop(daemon);
    pinned.forget("host/layout");
    let mut daemon = pinned.daemon(&network, "");
    assert_eq!(started(&mut daemon), 0, "no layout, as of older versions");
    let (flow, _) = network.transfer(&mut daemon, SERVER[0], 0, true);
    assert_priced(&flow);
    drop(daemon);
}
