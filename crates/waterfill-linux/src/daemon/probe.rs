//! The kernel features that host and router need, and the substitutes for missing ones.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use libbpf_rs::ReferencesType as _;
use libbpf_rs::btf::{Btf, types};
use nix::net::if_::if_nametoindex;
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use serde::Serialize;

use super::cli::ProbeCommand;
use super::error::user_error;
use super::host;
use super::pins::{Role, mounts_of};
use super::privileges;
use super::router;
use super::settings::{Names, Wrong};
use super::table::{Align, table};

/// The kernel's type information.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Features that are looked up by name.
const TCX: &str = "tcx egress hook";
const CLSACT: &str = "clsact";
const TBF: &str = "token bucket (tbf)";
const HTB: &str = "hierarchical token bucket (htb)";
const LAWS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// A kernel feature that a role needs or can use.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Feature {
    name: &'static str,
    /// First Linux release that has it.
    since: &'static str,
    present: bool,
    /// Roles that use it.
    used_by: &'static [&'static str],
    /// The substitute where it is missing; `None`: the role needs it.
    without: Option<&'static str>,
}

/// The running kernel and what is mounted.
#[derive(Clone, Debug, Serialize)]
pub(super) struct System {
    kernel: String,
    cgroup2: Option<PathBuf>,
    bpffs: Option<PathBuf>,
    /// TCP's congestion controls that are loaded.
    laws: Vec<String>,
    features: Vec<Feature>,
}

impl System {
    /// Examines the running kernel. Loads and mounts nothing.
    #[expect(clippy::too_many_lines, reason = "a list of features")]
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
                name: "TCP congestion control in BPF (struct_ops)",
                since: "5.6",
                present: structure("bpf_struct_ops_tcp_congestion_ops"),
                used_by: HOST,
                without: None,
            },
            Feature {
                name: "TCP options by sockops",
                since: "5.10",
                present: function("__cgroup_bpf_run_filter_sock_ops"),
                used_by: HOST,
                without: None,
            },
            Feature {
                name: "cookies of network namespaces in sockops",
                since: "5.15",
                present: function("bpf_get_netns_cookie_sock_ops"),
                used_by: HOST,
                without: None,
            },
            Feature {
                name: "timers in BPF",
                since: "5.15",
                present: function("bpf_timer_init"),
                used_by: ROUTER,
                without: None,
            },
            Feature {
                name: "counters of all CPUs in BPF",
                since: "5.19",
                present: function("bpf_map_lookup_percpu_elem"),
                used_by: ROUTER,
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
                name: "cong_control with the ACK",
                since: "6.10",
                present: btf.as_ref().and_then(cong_control_arguments).is_some_and(|n| n >= 4),
                used_by: HOST,
                without: Some("the older signature, which works as well"),
            },
            Feature {
                name: "struct_ops links",
                since: "6.4",
                present: function("bpf_struct_ops_link_create"),
                used_by: HOST,
                without: Some("the congestion control is pinned by its map"),
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
                without: Some("tcx only"),
            },
            Feature {
                name: "reading the device's queue",
                since: "6.2",
                present: function("bpf_rdonly_cast"),
                used_by: ROUTER,
                without: Some("virtual queue only"),
            },
            Feature {
                name: TBF,
                since: "2.4",
                present: structure("tbf_sched_data") || module(&kernel, "sch_tbf"),
                used_by: ROUTER,
                without: Some("--shape is refused"),
            },
            Feature {
                name: HTB,
                since: "2.4",
                present: structure("htb_sched") || module(&kernel, "sch_htb"),
                used_by: ROUTER,
                without: Some("--separate is refused"),
            },
            Feature {
                name: "mounted BPF file system",
                since: "4.4",
                present: bpffs.is_some(),
                used_by: BOTH,
                without: Some("mounts one at /sys/fs/bpf; not needed with --no-pin"),
            },
        ];
        let laws = fs::read_to_string(LAWS).unwrap_or_default();
        Ok(Self { kernel, cgroup2, bpffs, laws: laws.split_whitespace().map(Into::into).collect(), features })
    }

    fn has(&self, name: &str) -> bool {
        self.features.iter().any(|feature| feature.name == name && feature.present)
    }

    /// Checks that the kernel has what a role needs, and that this process may load it.
    pub(super) fn check(&self, role: Role) -> Result<()> {
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

    /// Checks a router's options against this kernel.
    pub(super) fn check_router(&self, options: &[router::Options], names: Names) -> Result<(), Wrong> {
        let any = |of: fn(&router::Options) -> bool| options.iter().any(of);
        let wants: [(&str, &str, &str, bool); 4] = [
            ("shape", "the queueing discipline tbf", TBF, any(|one| one.shape.is_some())),
            ("separate", "the queueing discipline htb", HTB, any(router::Options::separate)),
            ("cohabit", "the hook tcx (Linux 6.6)", TCX, any(|one| one.cohabit.is_some())),
            ("scone", "the hook tcx (Linux 6.6)", TCX, any(|one| one.scone)),
        ];
        match wants.into_iter().find(|(_, _, feature, wanted)| *wanted && !self.has(feature)) {
            Some((key, what, ..)) => {
                let (name, kernel) = (names.of(key), &self.kernel);
                Err(Wrong::new(key, format!("{name} needs {what}, which this kernel, {kernel}, does not have")))
            }
            None => Ok(()),
        }
    }

    /// Checks the tags of a device against this kernel.
    pub(super) fn check_csig(&self, device: &str) -> Result<(), Wrong> {
        if self.has(TCX) {
            return Ok(());
        }
        let kernel = &self.kernel;
        let text =
            format!("device {device} needs the hook tcx (Linux 6.6), which this kernel, {kernel}, does not have");
        Err(Wrong::new("device", text))
    }

    /// Returns the root of the control groups, which includes all connections.
    pub(super) fn cgroup(&self) -> Result<PathBuf> {
        self.cgroup2.clone().ok_or_else(|| user_error("host needs control groups of version 2, but none are mounted"))
    }

    /// Checks a host's options against this host.
    pub(super) fn check_host(&self, options: &host::Options, names: Names) -> Result<(), Wrong> {
        let cgroup = options.cgroup.display();
        let wrong = |why: String| Err(Wrong::new("cgroup", format!("{} {cgroup}: {why}", names.of("cgroup"))));
        match statfs(&options.cgroup) {
            Err(e) => return wrong(e.desc().into()),
            Ok(found) if found.filesystem_type() != CGROUP2_SUPER_MAGIC => {
                let place =
                    self.cgroup2.as_ref().map_or_else(String::new, |point| format!(", below {}", point.display()));
                return wrong(format!("expected a control group of version 2{place}"));
            }
            Ok(_) => {}
        }
        if !self.laws.contains(&options.fallback) {
            let (name, laws) = (names.of("fallback"), self.laws.join(", "));
            let text = format!("{name} {}: expected a loaded congestion control: {laws}", options.fallback);
            return Err(Wrong::new("fallback", text));
        }
        Ok(())
    }
}

const HOST: &[&str] = &["host"];
const ROUTER: &[&str] = &["router"];
const BOTH: &[&str] = &["host", "router"];

/// Returns how many arguments the kernel passes to cong_control.
fn cong_control_arguments(btf: &Btf<'_>) -> Option<usize> {
    let operations = btf.type_by_name::<types::Struct<'_>>("tcp_congestion_ops")?;
    let field = operations.iter().find(|member| member.name.is_some_and(|name| name == "cong_control"))?;
    let pointer = btf.type_by_id::<types::Ptr<'_>>(field.ty)?;
    let function = types::FuncProto::try_from(pointer.referenced_type()).ok()?;
    Some(function.len())
}

/// Whether a module is built in, loaded, or can be loaded on first use.
fn module(kernel: &str, name: &str) -> bool {
    module_below(Path::new("/"), kernel, name)
}

/// The same on a host whose files are below `root`. A container often has no /lib/modules, but the host's modules.
fn module_below(root: &Path, kernel: &str, name: &str) -> bool {
    let file = format!("/{name}.ko");
    let lists = ["modules.dep", "modules.builtin"];
    let listed = |list: &&str| {
        let path = root.join("lib/modules").join(kernel).join(list);
        fs::read_to_string(path).is_ok_and(|text| text.contains(&file))
    };
    root.join("sys/module").join(name).is_dir() || lists.iter().any(listed)
}

/// Checks that a device exists.
pub(super) fn check_device(device: &str) -> Result<()> {
    if_nametoindex(device).map(drop).map_err(|_| {
        user_error(format!("--dev {device}: expected a device of this network namespace (listed by: ip link)"))
    })
}

/// Prints what was found.
pub(super) fn run(command: &ProbeCommand) -> Result<()> {
    let found = System::find()?;
    let text = if command.json { serde_json::to_string(&found)? + "\n" } else { found.tables() };
    super::output::print(&text)
}

impl System {
    fn tables(&self) -> String {
        let place = |path: &Option<PathBuf>| {
            path.as_ref().map_or_else(|| "not mounted".into(), |path| path.display().to_string())
        };
        let may = privileges::check().map_or_else(|e| e.to_string(), |()| "may load programs".into());
        let top = [
            ["kernel".into(), self.kernel.clone()],
            ["control groups".into(), place(&self.cgroup2)],
            ["BPF file system".into(), place(&self.bpffs)],
            ["TCP congestion controls".into(), self.laws.join(" ")],
            ["this process".into(), may],
        ];
        let row = |f: &Feature| {
            let then = match (f.present, f.without) {
                (true, _) => "",
                (false, Some(instead)) => instead,
                (false, None) => "none: required",
            };
            let here = if f.present { "yes" } else { "no" };
            [f.name.into(), f.used_by.join(", "), f.since.into(), here.into(), then.into()]
        };
        let head = ["feature", "used by", "since", "present", "substitute"].map(|name| (name, Align::Left));
        let features: Vec<_> = self.features.iter().map(row).collect();
        let top_head = ["this host", ""].map(|name| (name, Align::Left));
        format!("{}\n{}", table(top_head, &top), table(head, &features))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(present: &[&str]) -> System {
        let features = System::find().unwrap().features.into_iter();
        System {
            kernel: "6.1.0-test".into(),
            cgroup2: None,
            bpffs: None,
            laws: vec!["reno".into(), "cubic".into()],
            features: features.map(|f| Feature { present: present.contains(&f.name), ..f }).collect(),
        }
    }

    #[test]
    fn all_missing_features_are_named_at_once() {
        let why = system(&["type information (BTF)"]).check(Role::Host).unwrap_err().to_string();
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
        let why = system(&others).check(Role::Router).unwrap_err().to_string();
        assert!(why.contains("tcx") && why.contains("clsact"), "{why}");
    }

    /// Debian 11's kernel: its verifier would refuse the programs with no more than "invalid argument".
    #[test]
    fn a_kernel_without_what_the_programs_call_is_refused_in_one_sentence() {
        let why = system(&["type information (BTF)", CLSACT]).check(Role::Router).unwrap_err().to_string();
        let wanted = "router needs features that this kernel, 6.1.0-test, does not have: \
                      timers in BPF (Linux 5.15 or newer), counters of all CPUs in BPF (Linux 5.19 or newer)";
        assert_eq!(why, wanted);
    }

    #[test]
    fn a_shaper_needs_tbf() {
        let device = |name: &str, shape| router::Options {
            device: name.into(),
            rate_bps: 1_000_000,
            target: Some(0.94),
            overhead_bytes: 14,
            parameters: Vec::new(),
            shape,
            cohabit: None,
            scone: false,
            virtual_queue: false,
        };
        let shaped = [device("lo", None), device("lo", Some(router::Shape { buffer_bytes: None }))];
        let why = system(&[]).check_router(&shaped, Names::Options).unwrap_err().to_string();
        assert!(why.starts_with("--shape needs"), "{why}");
        system(&[TBF]).check_router(&shaped, Names::Options).unwrap();
        system(&[]).check_router(&shaped[..1], Names::Options).unwrap();
    }

    #[test]
    fn tags_need_tcx() {
        let why = system(&[CLSACT]).check_csig("t2").unwrap_err().to_string();
        assert_eq!(why, "device t2 needs the hook tcx (Linux 6.6), which this kernel, 6.1.0-test, does not have");
        system(&[TCX]).check_csig("t2").unwrap();
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
        assert!(why.starts_with("--dev nosuchdevice0: expected"), "{why}");
        check_device("lo").unwrap();
    }

    #[test]
    fn a_wrong_cgroup_is_named() {
        let mut options = host::Options {
            name: "bpf_maxnet".into(),
            cgroup: "/proc".into(),
            fallback: "reno".into(),
            netns_cookies: Vec::new(),
            peers: Vec::new(),
            unrestricted: false,
            kind: host::Kind::Experiment,
            law: crate::daemon::law::default(),
            parameters: Vec::new(),
        };
        let system = system(&[]);
        let error = |options: &host::Options| system.check_host(options, Names::Options).unwrap_err().to_string();
        assert!(error(&options).contains("--cgroup /proc: expected a control group"), "{}", error(&options));
        options.cgroup = "/no/such/folder".into();
        assert!(error(&options).contains("--cgroup /no/such/folder"), "{}", error(&options));
    }
}
