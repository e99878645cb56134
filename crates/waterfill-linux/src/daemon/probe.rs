//! What this kernel has, and what is done where it lacks something.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use libbpf_rs::ReferencesType as _;
use libbpf_rs::btf::{Btf, types};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use serde::Serialize;

use crate::delay::sys::interface_index;

use super::cli::ProbeCommand;
use super::failure::wrong;
use super::host;
use super::pins::{Role, mounts_of};
use super::router;
use super::status::{Side, table};

/// The kernel's own description of its types.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Features that are asked for by name.
const TCX: &str = "egress by tcx";
const CLSACT: &str = "clsact";
const TBF: &str = "token bucket (tbf)";
const LAWS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// Capabilities by number, of linux/capability.h. CAP_SYS_ADMIN stands for the two of BPF.
const CAP_NET_ADMIN: (u32, &str) = (12, "CAP_NET_ADMIN");
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: (u32, &str) = (38, "CAP_PERFMON");
const CAP_BPF: (u32, &str) = (39, "CAP_BPF");

/// One thing that a role needs or can use.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Feature {
    name: &'static str,
    /// The first kernel that has it, as it comes from kernel.org.
    since: &'static str,
    present: bool,
    /// Roles that use it.
    used_by: &'static [&'static str],
    /// What is done without it; none: the role cannot be.
    without: Option<&'static str>,
}

/// What this machine has.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Machine {
    kernel: String,
    cgroup2: Option<PathBuf>,
    bpffs: Option<PathBuf>,
    /// TCP's laws that are loaded.
    laws: Vec<String>,
    features: Vec<Feature>,
}

impl Machine {
    /// Looks at the running kernel. Nothing is loaded or mounted for it.
    pub(super) fn find() -> Result<Self> {
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
        let features = vec![
            Feature {
                name: "type information (BTF)",
                since: "5.2",
                present: btf.is_some(),
                used_by: BOTH,
                without: None,
            },
            Feature {
                name: "TCP's laws in BPF (struct_ops)",
                since: "5.6",
                present: structure("bpf_struct_ops_tcp_congestion_ops"),
                used_by: HOST,
                without: None,
            },
            Feature {
                name: "options by sockops",
                since: "5.10",
                present: function("__cgroup_bpf_run_filter_sock_ops"),
                used_by: HOST,
                without: None,
            },
            Feature {
                name: "control groups, version 2",
                since: "4.5",
                present: cgroup2.is_some(),
                used_by: HOST,
                without: None,
            },
            Feature {
                name: "cong_control with the acknowledgement",
                since: "6.10",
                present: btf.as_ref().and_then(cong_control_arguments).is_some_and(|n| n >= 4),
                used_by: HOST,
                without: Some("the older form, which serves as well"),
            },
            Feature {
                name: "links of struct_ops",
                since: "6.4",
                present: function("bpf_struct_ops_link_create"),
                used_by: HOST,
                without: Some("the law is pinned by its map"),
            },
            Feature {
                name: TCX,
                since: "6.6",
                present: function("tcx_link_attach"),
                used_by: ROUTER,
                without: Some("a filter on clsact"),
            },
            Feature {
                name: CLSACT,
                since: "4.5",
                present: structure("clsact_sched_data") || module(&kernel, "sch_ingress"),
                used_by: ROUTER,
                without: Some("tcx alone"),
            },
            Feature {
                name: "queue read from the device",
                since: "6.2",
                present: function("bpf_rdonly_cast"),
                used_by: ROUTER,
                without: Some("the virtual queue alone"),
            },
            Feature {
                name: TBF,
                since: "2.4",
                present: structure("tbf_sched_data") || module(&kernel, "sch_tbf"),
                used_by: ROUTER,
                without: Some("no --shape"),
            },
            Feature {
                name: "BPF file system, mounted",
                since: "4.4",
                present: bpffs.is_some(),
                used_by: BOTH,
                without: Some("one is mounted at /sys/fs/bpf; with --no-pin none is needed"),
            },
        ];
        let laws = fs::read_to_string(LAWS).unwrap_or_default();
        Ok(Self { kernel, cgroup2, bpffs, laws: laws.split_whitespace().map(Into::into).collect(), features })
    }

    fn has(&self, name: &str) -> bool {
        self.features.iter().any(|feature| feature.name == name && feature.present)
    }

    /// What a role cannot be without, and what its loading asks of this process.
    pub(super) fn check(&self, role: Role) -> Result<()> {
        let missing: Vec<String> = self
            .features
            .iter()
            .filter(|f| !f.present && f.without.is_none() && f.used_by.contains(&role.name()))
            .map(|f| format!("{} (Linux {} and newer)", f.name, f.since))
            .collect();
        if !missing.is_empty() {
            return Err(wrong(format!(
                "{} needs what this kernel, {}, lacks: {}",
                role.name(),
                self.kernel,
                missing.join(", ")
            )));
        }
        if role == Role::Router && !self.has(TCX) && !self.has(CLSACT) {
            return Err(wrong(format!(
                "router needs tcx (Linux 6.6 and newer) or clsact; this kernel, {}, has neither",
                self.kernel
            )));
        }
        check_privileges()
    }

    /// What a router is told, as far as this machine decides it.
    pub(super) fn check_router(&self, options: &[router::Options]) -> Result<()> {
        if options.iter().any(|one| one.shape.is_some()) && !self.has(TBF) {
            return Err(wrong(format!(
                "--shape needs the queueing discipline tbf, which this kernel, {}, lacks",
                self.kernel
            )));
        }
        options.iter().try_for_each(|one| check_device(&one.device))
    }

    /// Where control groups begin, which stands for all connections.
    pub(super) fn cgroup(&self) -> Result<PathBuf> {
        self.cgroup2.clone().ok_or_else(|| wrong("host needs control groups of version 2, and none are mounted"))
    }

    /// What a host is told, as far as this machine decides it.
    pub(super) fn check_host(&self, options: &host::Options) -> Result<()> {
        let cgroup = options.cgroup.display();
        match statfs(&options.cgroup) {
            Err(e) => return Err(wrong(format!("--cgroup {cgroup}: {}", e.desc()))),
            Ok(found) if found.filesystem_type() != CGROUP2_SUPER_MAGIC => {
                let place =
                    self.cgroup2.as_ref().map_or_else(String::new, |point| format!(", below {}", point.display()));
                return Err(wrong(format!("--cgroup {cgroup}: expected a control group of version 2{place}")));
            }
            Ok(_) => {}
        }
        if !self.laws.contains(&options.fallback) {
            let laws = self.laws.join(", ");
            return Err(wrong(format!(
                "--fallback {}: expected a law that this kernel has loaded: {laws}",
                options.fallback
            )));
        }
        Ok(())
    }
}

const HOST: &[&str] = &["host"];
const ROUTER: &[&str] = &["router"];
const BOTH: &[&str] = &["host", "router"];

/// How many arguments the kernel gives to a law's cong_control.
fn cong_control_arguments(btf: &Btf<'_>) -> Option<usize> {
    let operations = btf.type_by_name::<types::Struct<'_>>("tcp_congestion_ops")?;
    let field = operations.iter().find(|member| member.name.is_some_and(|name| name == "cong_control"))?;
    let pointer = btf.type_by_id::<types::Ptr<'_>>(field.ty)?;
    let function = types::FuncProto::try_from(pointer.referenced_type()).ok()?;
    Some(function.len())
}

/// Whether a part of the kernel can be loaded when it is first used, or is built in.
fn module(kernel: &str, name: &str) -> bool {
    let file = format!("/{name}.ko");
    ["modules.dep", "modules.builtin"]
        .iter()
        .any(|list| fs::read_to_string(format!("/lib/modules/{kernel}/{list}")).is_ok_and(|text| text.contains(&file)))
}

/// Whether this process may load programs and attach them.
pub(super) fn check_privileges() -> Result<()> {
    let status = fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    let missing = missing_capabilities(&status);
    if missing.is_empty() {
        return Ok(());
    }
    Err(wrong(format!(
        "needs root, or the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON; lacks {}",
        missing.join(", ")
    )))
}

fn missing_capabilities(status: &str) -> Vec<&'static str> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    let has = |number: u32| effective >> number & 1 == 1;
    [(CAP_NET_ADMIN, false), (CAP_BPF, true), (CAP_PERFMON, true)]
        .into_iter()
        .filter(|((number, _), admin)| !(has(*number) || *admin && has(CAP_SYS_ADMIN)))
        .map(|((_, name), _)| name)
        .collect()
}

/// Whether there is such a device in this network namespace.
fn check_device(device: &str) -> Result<()> {
    interface_index(device)
        .map(drop)
        .map_err(|_| wrong(format!("--dev {device}: expected a device of this network namespace (ip link lists them)")))
}

/// Prints it.
pub(super) fn run(command: &ProbeCommand) -> Result<()> {
    let found = Machine::find()?;
    let text = if command.json { serde_json::to_string(&found)? + "\n" } else { found.shown() };
    let _ = std::io::stdout().write_all(text.as_bytes()); // a reader may have had enough
    Ok(())
}

impl Machine {
    fn shown(&self) -> String {
        let place = |path: &Option<PathBuf>| {
            path.as_ref().map_or_else(|| "not mounted".into(), |path| path.display().to_string())
        };
        let may = check_privileges().map_or_else(|e| e.to_string(), |()| "may load programs".into());
        let top = [
            ["kernel".into(), self.kernel.clone()],
            ["control groups".into(), place(&self.cgroup2)],
            ["BPF file system".into(), place(&self.bpffs)],
            ["TCP's laws".into(), self.laws.join(" ")],
            ["this process".into(), may],
        ];
        let row = |f: &Feature| {
            let then = match (f.present, f.without) {
                (true, _) => "",
                (false, Some(instead)) => instead,
                (false, None) => "needed",
            };
            let here = if f.present { "yes" } else { "no" };
            [f.name.into(), f.used_by.join(", "), f.since.into(), here.into(), then.into()]
        };
        let head = ["feature", "used by", "since", "here", "without it"].map(|name| (name, Side::Left));
        let features: Vec<_> = self.features.iter().map(row).collect();
        let top_head = ["this machine", ""].map(|name| (name, Side::Left));
        format!("{}\n{}", table(top_head, &top), table(head, &features))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(present: &[&str]) -> Machine {
        let features = Machine::find().unwrap().features.into_iter();
        Machine {
            kernel: "6.1.0-test".into(),
            cgroup2: None,
            bpffs: None,
            laws: vec!["reno".into(), "cubic".into()],
            features: features.map(|f| Feature { present: present.contains(&f.name), ..f }).collect(),
        }
    }

    #[test]
    fn what_a_role_needs_is_named_all_at_once() {
        let why = machine(&["type information (BTF)"]).check(Role::Host).unwrap_err().to_string();
        for part in [
            "6.1.0-test",
            "TCP's laws in BPF (struct_ops) (Linux 5.6 and newer)",
            "options by sockops",
            "control groups",
        ] {
            assert!(why.contains(part), "{why}");
        }
        assert!(!why.contains("tcx") && !why.contains("BTF"), "{why}");
    }

    #[test]
    fn a_router_needs_one_of_two_hooks() {
        let why = machine(&["type information (BTF)"]).check(Role::Router).unwrap_err().to_string();
        assert!(why.contains("tcx") && why.contains("clsact"), "{why}");
    }

    #[test]
    fn a_shaper_needs_its_discipline() {
        let device = |name: &str, shape| router::Options {
            device: name.into(),
            rate_bps: 1_000_000,
            target: 0.94,
            overhead_bytes: 14,
            dt_p: std::time::Duration::from_millis(1),
            t_0: std::time::Duration::from_millis(130),
            x_max_bps: 1_000_000_000,
            t: std::time::Duration::from_millis(400),
            promise: false,
            shape,
            virtual_queue: false,
        };
        let shaped = [device("lo", None), device("lo", Some(router::Shape { buffer_bytes: None }))];
        let why = machine(&[]).check_router(&shaped).unwrap_err().to_string();
        assert!(why.starts_with("--shape needs"), "{why}");
        machine(&[TBF]).check_router(&shaped).unwrap();
        machine(&[]).check_router(&shaped[..1]).unwrap();
    }

    #[test]
    fn capabilities_are_read_from_the_effective_set() {
        let status = |effective: u64| format!("CapPrm:\t000001ffffffffff\nCapEff:\t{effective:016x}\n");
        assert_eq!(missing_capabilities(&status(0x1ff_ffff_ffff)), [] as [&str; 0]);
        assert_eq!(missing_capabilities(&status(1 << 12 | 1 << 39 | 1 << 38)), [] as [&str; 0]);
        assert_eq!(missing_capabilities(&status(1 << 12 | 1 << 21)), [] as [&str; 0]);
        assert_eq!(missing_capabilities(&status(1 << 39)), ["CAP_NET_ADMIN", "CAP_PERFMON"]);
        assert_eq!(missing_capabilities(&status(0)), ["CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON"]);
    }

    #[test]
    fn a_device_that_is_not_there_is_named() {
        let why = check_device("nosuchdevice0").unwrap_err().to_string();
        assert!(why.starts_with("--dev nosuchdevice0: expected"), "{why}");
        check_device("lo").unwrap();
    }

    #[test]
    fn a_host_is_told_what_this_machine_has() {
        let mut options = host::Options {
            name: "bpf_maxnet".into(),
            cgroup: "/proc".into(),
            fallback: "reno".into(),
            netns_cookies: Vec::new(),
            kind: host::Kind::Experiment,
            alpha: 0.66,
            eta: 0.06,
            t: std::time::Duration::from_millis(400),
            x_max_bps: 1_000_000_000_000_000,
            dt_min: std::time::Duration::from_micros(1),
            average: true,
            compensate: true,
        };
        let machine = machine(&[]);
        let said = |options: &host::Options| machine.check_host(options).unwrap_err().to_string();
        assert!(said(&options).contains("--cgroup /proc: expected a control group"), "{}", said(&options));
        options.cgroup = "/no/such/folder".into();
        assert!(said(&options).contains("--cgroup /no/such/folder"), "{}", said(&options));
    }
}
