//! Compiles the kernel programs (`bpf/`) and generates their Rust skeletons, for the daemon only.

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed=../waterfill-laws/kernel");
    println!("cargo::rerun-if-env-changed=CLANG");
    #[cfg(feature = "daemon")]
    daemon::build();
}

#[cfg(feature = "daemon")]
#[path = "build/laws.rs"]
mod laws;

#[cfg(feature = "daemon")]
mod daemon {
    use std::env::var;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::laws;

    /// Names of the clang commands to try, in order of preference. Debian names its compilers by version. Releases 15,
    /// 16 and 19 were tried; tools/daemon.sh has the same list.
    const CLANGS: [&str; 6] = ["clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang"];
    /// Kernel programs for which Rust skeletons are generated. The first one is compiled for its types only.
    const SKELETONS: [&str; 4] = ["interface", "cohabit", "csig", "scone"];
    const KERNEL: &str = "../waterfill-laws/kernel";
    /// Test programs, each with the environment variable that holds the path of its object.
    const TEST_OBJECTS: [(&str, &str); 6] = [
        ("path", "PATH_OBJECT"),
        ("cost", "COST_OBJECT"),
        ("shared", "SHARED_OBJECT"),
        ("select", "SELECT_OBJECT"),
        ("summary", "SUMMARY_OBJECT"),
        ("cohabit_replay", "COHABIT_REPLAY_OBJECT"),
    ];

    /// Returns the compiler that the variable CLANG names, or the first installed one of [`CLANGS`].
    fn clang() -> String {
        let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success());
        var("CLANG").ok().or_else(|| CLANGS.iter().find(|name| runs(name)).map(ToString::to_string)).unwrap_or_else(
            || panic!("the daemon's kernel programs need clang 15 or newer, on PATH or named by the variable CLANG"),
        )
    }

    pub(super) fn build() {
        let out = PathBuf::from(var("OUT_DIR").expect("cargo sets it"));
        // libbpf's headers come with libbpf-sys; the kernel's are the system's, where Debian has a folder per architecture.
        let libbpf = var("DEP_BPF_INCLUDE").expect("libbpf-sys exports its include folder");
        let architecture = var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
        let clang = clang();
        let package = PathBuf::from(var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
        let workspace = package.ancestors().nth(2).expect("crates/waterfill-linux is in the workspace");
        let arguments = [
            "-mcpu=v3".into(), // atomic exchanges, which Linux has had since 5.12
            "-Wall".into(),
            "-Wextra".into(),
            "-Werror".into(),
            "-Wno-unused-function".into(), // a program uses a part of each header
            // Line information names the sources: without the folder of this build, the same commit gives the same bytes.
            format!("-ffile-prefix-map={}=.", workspace.display()),
            format!("-I{KERNEL}"),
            format!("-I{libbpf}"),
            format!("-I/usr/include/{architecture}-linux-gnu"),
        ];
        let builder = |source: &str| {
            let mut builder = libbpf_cargo::SkeletonBuilder::new();
            builder.source(source).clang(&clang).clang_args(&arguments);
            builder
        };
        // Compiles a source for one law. Returns what can make a skeleton of the object.
        let build_for = |source: &str, law: &str, object: &Path| {
            let name = format!("-DLAW_CONGESTION_NAME=\"bpf_{law}\"");
            let mut builder = builder(source);
            builder.clang_args(arguments.iter().cloned().chain([laws::header(law), name])).obj(object);
            builder.build().unwrap_or_else(|e| panic!("{source} for {law}: {e:#}"));
            builder
        };
        for (name, variable) in TEST_OBJECTS {
            let source = format!("bpf/test/{name}.bpf.c");
            let object = out.join(format!("{name}.bpf.o"));
            builder(&source).obj(&object).build().unwrap_or_else(|e| panic!("{source}: {e:#}"));
            println!("cargo::rustc-env={variable}={}", object.display());
        }
        // The daemon embeds one object for each law and role.
        let names = laws::names(KERNEL);
        for law in &names {
            build_for("bpf/host.bpf.c", law, &out.join(format!("host_{law}.bpf.o")));
            let mut router = build_for("bpf/router.bpf.c", law, &out.join(format!("router_{law}.bpf.o")));
            // Tests read a router's structures.
            if law == "maxnet" {
                router.generate(out.join("router_maxnet.skel.rs")).unwrap_or_else(|e| panic!("the skeleton: {e:#}"));
            }
        }
        // A test replays recorded calls of every law, another one gives frames to its decoders: the variables have
        // "law=path" for each law, with semicolons between.
        for (source, variable) in [("replay_law", "REPLAY_OBJECTS"), ("decode", "DECODE_OBJECTS")] {
            let objects = names.iter().map(|law| {
                let object = out.join(format!("{source}_{law}.bpf.o"));
                build_for(&format!("bpf/test/{source}.bpf.c"), law, &object);
                format!("{law}={}", object.display())
            });
            println!("cargo::rustc-env={variable}={}", objects.collect::<Vec<_>>().join(";"));
        }
        build_decoders(&names, &out);
        for name in SKELETONS {
            let source = format!("bpf/{name}.bpf.c");
            let skeleton = out.join(format!("{name}.skel.rs"));
            builder(&source).build_and_generate(skeleton).unwrap_or_else(|e| panic!("{source}: {e:#}"));
        }
    }

    /// Compiles the decoders for the host and links tests with them. The tests compare them with the decoders in the
    /// kernel.
    fn build_decoders(names: &[String], out: &Path) {
        for law in names {
            let library = format!("decode_{law}");
            laws::decoder("bpf", KERNEL, law).cargo_metadata(false).compile(&library);
            println!("cargo::rustc-link-arg-tests={}", out.join(format!("lib{library}.a")).display());
        }
        laws::list_decoders(names, out);
    }
}
