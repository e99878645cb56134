//! Kernel features that the daemon's roles need, and the substitutes for missing ones.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use libbpf_rs::btf::{Btf, types};
use nix::net::if_::if_nametoindex;
use serde::Serialize;

use super::object::{BTF, TX_START, operation};
use super::pins::{Role, mounts_of};
use super::privileges;
use crate::daemon::options::error::user_error;

const CONGESTION_CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// Name of the tcx feature, by which other code looks it up.
pub(crate) const TCX: &str = "tcx egress hook";
const CLSACT: &str = "clsact";
pub(crate) const TBF: &str = "token bucket (tbf)";
pub(crate) const HTB: &str = "hierarchical token bucket (htb)";

const HOST: &[&str] = &["host"];
const ROUTER: &[&str] = &["router"];
const BOTH: &[&str] = &["host", "router"];

/// A kernel feature that a role needs or can use.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Feature {
    pub(crate) name: &'static str,
    /// First Linux release with this feature.
    pub(crate) since: &'static str,
    pub(crate) present: bool,
    /// Roles that use this feature.
    pub(crate) used_by: &'static [&'static str],
    /// Substitute for a missing feature, or `None` if the roles need it.
    pub(crate) without: Option<&'static str>,
}

/// Way to detect a feature.
#[derive(Clone, Copy, Debug)]
enum Sign {
    TypeInformation,
    Function(&'static str),
    Structure(&'static str),
    /// Structure of the kernel, or the module that contains it.
    Module(&'static str, &'static str),
    /// Minimum number of arguments of `cong_control`.
    ControlArguments(usize),
    /// Name in any enumeration.
    Enumerator(&'static str),
    /// Operation of a TCP congestion control.
    Operation(&'static str),
    ControlGroups,
    MountedBpf,
}

/// Description of a feature: name, first release, way of detection, roles, and substitute.
type Known = (&'static str, &'static str, Sign, &'static [&'static str], Option<&'static str>);

const FEATURES: [Known; 17] = [
    ("type information (BTF)", "5.2", Sign::TypeInformation, BOTH, None),
    (
        "TCP congestion control in BPF (struct_ops)",
        "5.6",
        Sign::Structure("bpf_struct_ops_tcp_congestion_ops"),
        HOST,
        None,
    ),
    ("TCP options by sockops", "5.10", Sign::Function("__cgroup_bpf_run_filter_sock_ops"), HOST, None),
    ("cookies of network namespaces in sockops", "5.15", Sign::Function("bpf_get_netns_cookie_sock_ops"), HOST, None),
    ("timers in BPF", "5.15", Sign::Function("bpf_timer_init"), ROUTER, None),
    ("counters of all CPUs in BPF", "5.19", Sign::Function("bpf_map_lookup_percpu_elem"), ROUTER, None),
    ("control groups, version 2", "4.5", Sign::ControlGroups, HOST, None),
    (
        "cong_control with the ACK",
        "6.10",
        Sign::ControlArguments(4),
        HOST,
        Some("the older signature, which works as well"),
    ),
    (
        "operation for the first packet after a silence",
        "7.1",
        Sign::Operation(TX_START),
        HOST,
        Some("an event of cwnd_event, which these kernels have"),
    ),
    (
        "callbacks of sockets set by an iterator",
        "6.12",
        Sign::Enumerator("TCP_BPF_SOCK_OPS_CB_FLAGS"),
        HOST,
        Some("servers that listened before the start have to be restarted"),
    ),
    (
        "struct_ops links",
        "6.4",
        Sign::Function("bpf_struct_ops_link_create"),
        HOST,
        Some("the congestion control is pinned by its map"),
    ),
    (TCX, "6.6", Sign::Function("tcx_link_attach"), ROUTER, Some("a filter on clsact")),
    (CLSACT, "4.5", Sign::Module("clsact_sched_data", "sch_ingress"), ROUTER, Some("tcx only")),
    ("reading the device's queue", "6.2", Sign::Function("bpf_rdonly_cast"), ROUTER, Some("virtual queue only")),
    (TBF, "2.4", Sign::Module("tbf_sched_data", "sch_tbf"), ROUTER, Some("--shape is refused")),
    (HTB, "2.4", Sign::Module("htb_sched", "sch_htb"), ROUTER, Some("--separate is refused")),
    (
        "mounted BPF file system",
        "4.4",
        Sign::MountedBpf,
        BOTH,
        Some("mounts one at /sys/fs/bpf; not needed with --no-pin"),
    ),
];

/// The running kernel, with the mounts and features that the daemon uses.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct System {
    pub(crate) kernel: String,
    pub(crate) cgroup2: Option<PathBuf>,
    pub(crate) bpffs: Option<PathBuf>,
    /// Congestion controls that the kernel's TCP offers.
    #[serde(rename = "laws")]
    pub(crate) congestion_controls: Vec<String>,
    pub(crate) features: Vec<Feature>,
}

impl System {
    /// Examines the running kernel without loading or mounting anything.
    pub(crate) fn find() -> Result<Self> {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").context("cannot read the kernel's version")?;
        let kernel = kernel.trim().to_owned();
        let btf = Path::new(BTF)
            .exists()
            .then(|| Btf::from_path(BTF))
            .transpose()
            .with_context(|| format!("cannot read {BTF}"))?;
        let function = |name| btf.as_ref().is_some_and(|btf| btf.type_by_name::<types::Func<'_>>(name).is_some());
        let structure = |name| btf.as_ref().is_some_and(|btf| btf.type_by_name::<types::Struct<'_>>(name).is_some());
        let cgroup2 = mounts_of("cgroup2")?.into_iter().next().map(|mount| mount.point);
        let bpffs = mounts_of("bpf")?.into_iter().next().map(|mount| mount.point);
        let is_present = |sign| match sign {
            Sign::TypeInformation => btf.is_some(),
            Sign::Function(name) => function(name),
            Sign::Structure(name) => structure(name),
            Sign::Module(name, file) => structure(name) || module(&kernel, file),
            Sign::ControlArguments(min) => {
                let control = btf.as_ref().and_then(|btf| operation(btf, "cong_control"));
                control.is_some_and(|control| control.len() >= min)
            }
            Sign::Enumerator(name) => btf.as_ref().is_some_and(|btf| has_enumerator(btf, name)),
            Sign::Operation(name) => btf.as_ref().is_some_and(|btf| operation(btf, name).is_some()),
            Sign::ControlGroups => cgroup2.is_some(),
            Sign::MountedBpf => bpffs.is_some(),
        };
        let features = FEATURES
            .into_iter()
            .map(|(name, since, sign, used_by, without)| {
                let present = is_present(sign);
                Feature { name, since, present, used_by, without }
            })
            .collect();
        let controls = fs::read_to_string(CONGESTION_CONTROLS).unwrap_or_default();
        let congestion_controls = controls.split_whitespace().map(Into::into).collect();
        Ok(Self { kernel, cgroup2, bpffs, congestion_controls, features })
    }

    /// Returns a kernel with only these features, for tests.
    #[cfg(test)]
    pub(crate) fn with(present: &[&str]) -> Self {
        let features = FEATURES.into_iter().map(|(name, since, _, used_by, without)| {
            let present = present.contains(&name);
            Feature { name, since, present, used_by, without }
        });
        Self { kernel: "6.1.0-test".into(), features: features.collect(), ..Self::default() }
    }

    /// Returns true if the kernel has a feature.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.features.iter().any(|feature| feature.name == name && feature.present)
    }

    /// Checks that the kernel has the features that a role needs, and that this process may load programs.
    pub(crate) fn check(&self, role: Role) -> Result<()> {
        let missing: Vec<String> = self
            .features
            .iter()
            .filter(|f| !f.present && f.without.is_none() && f.used_by.contains(&role.name()))
            .map(|f| format!("{} (Linux {} or newer)", f.name, f.since))
            .collect();
        if !missing.is_empty() {
            return Err(user_error(format!(
                "{} needs features that this kernel, {}, does not have: {}",
                role.name(),
                self.kernel,
                missing.join(", ")
            )));
        }
        if role == Role::Router && !self.has(TCX) && !self.has(CLSACT) {
            return Err(user_error(format!(
                "router needs tcx (Linux 6.6 or newer) or clsact; this kernel, {}, has neither",
                self.kernel
            )));
        }
        privileges::check()
    }

    /// Returns the root of the version 2 control groups, which includes all connections. Fails if none are mounted.
    pub(crate) fn cgroup(&self) -> Result<PathBuf> {
        self.cgroup2.clone().ok_or_else(|| user_error("host needs control groups of version 2, but none are mounted"))
    }
}

fn has_enumerator(btf: &Btf<'_>, name: &str) -> bool {
    let mut enums = btf.type_by_kind::<types::Enum<'_>>();
    enums.any(|of| of.iter().any(|member| member.name.is_some_and(|found| found == name)))
}

/// Returns true if a module is built in, loaded, or can be loaded on first use.
fn module(kernel: &str, name: &str) -> bool {
    module_below(Path::new("/"), kernel, name)
}

/// Returns true if a module exists on a host whose files are below `root`. A container often has no /lib/modules, but
/// sees the host's loaded modules.
fn module_below(root: &Path, kernel: &str, name: &str) -> bool {
    let file = format!("/{name}.ko");
    let lists = ["modules.dep", "modules.builtin"];
    let listed = |list: &&str| {
        let path = root.join("lib/modules").join(kernel).join(list);
        fs::read_to_string(path).is_ok_and(|text| text.contains(&file))
    };
    root.join("sys/module").join(name).is_dir() || lists.iter().any(listed)
}

/// Checks that a device exists in this network namespace.
pub(crate) fn check_device(device: &str) -> Result<()> {
    if_nametoindex(device).map(drop).map_err(|_| {
        user_error(format!("--dev {device}: not in this network namespace, whose devices `ip link` lists"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_missing_features_are_named_at_once() {
        let why = System::with(&["type information (BTF)"]).check(Role::Host).unwrap_err().to_string();
        for part in [
            "6.1.0-test",
            "TCP congestion control in BPF (struct_ops) (Linux 5.6 or newer)",
            "TCP options by sockops",
            "control groups",
        ] {
            assert!(why.contains(part), "{why}");
        }
        assert!(!why.contains("tcx") && !why.contains("BTF"), "{why}");
    }

    #[test]
    fn a_router_needs_one_of_two_hooks() {
        let others = ["type information (BTF)", "timers in BPF", "counters of all CPUs in BPF"];
        let why = System::with(&others).check(Role::Router).unwrap_err().to_string();
        assert!(why.contains("tcx") && why.contains("clsact"), "{why}");
    }

    /// A kernel that lacks needed helpers, such as Debian 11's, is refused in one sentence. The kernel's verifier would
    /// say no more than "invalid argument".
    #[test]
    fn a_kernel_without_what_the_programs_call_is_refused_in_one_sentence() {
        let why = System::with(&["type information (BTF)", CLSACT]).check(Role::Router).unwrap_err().to_string();
        let wanted = "router needs features that this kernel, 6.1.0-test, does not have: \
                      timers in BPF (Linux 5.15 or newer), counters of all CPUs in BPF (Linux 5.19 or newer)";
        assert_eq!(why, wanted);
    }

    #[test]
    fn a_module_is_found_loaded_or_in_the_lists() {
        let root = std::env::temp_dir().join(format!("waterfill-probe-{}", std::process::id()));
        let has = |name: &str| module_below(&root, "6.1.0-test", name);
        fs::create_dir_all(root.join("sys/module/sch_ingress")).unwrap();
        assert!(has("sch_ingress") && !has("sch_tbf"), "as in a container without /lib/modules");
        let lists = root.join("lib/modules/6.1.0-test");
        fs::create_dir_all(&lists).unwrap();
        fs::write(lists.join("modules.dep"), "kernel/net/sched/sch_tbf.ko.xz: \n").unwrap();
        fs::write(lists.join("modules.builtin"), "kernel/net/sched/sch_htb.ko\n").unwrap();
        assert!(has("sch_tbf") && has("sch_htb") && !has("sch_fq"));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_device_that_is_not_there_is_named() {
        let why = check_device("nosuchdevice0").unwrap_err().to_string();
        assert!(why.starts_with("--dev nosuchdevice0: not in this network namespace"), "{why}");
        check_device("lo").unwrap();
    }
}
