//! Compiles the kernel programs (`bpf/`) and makes their skeletons, for the daemon only.

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed=../waterfill-laws/kernel");
    println!("cargo::rerun-if-env-changed=CLANG");
    #[cfg(feature = "daemon")]
    daemon::build();
}

#[cfg(feature = "daemon")]
mod daemon {
    use std::env::var;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// Debian names its compilers by version. We have tried 15 and 19; tools/daemon.sh has the same list.
    const CLANGS: [&str; 6] = ["clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang"];

    /// What CLANG says, or the first of them that is there.
    fn clang() -> String {
        let there = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|said| said.status.success());
        var("CLANG").ok().or_else(|| CLANGS.iter().find(|name| there(name)).map(ToString::to_string)).unwrap_or_else(|| {
            panic!("the daemon's kernel programs need a C compiler for BPF: clang 15 or newer on PATH, or named by CLANG")
        })
    }

    pub(super) fn build() {
        let out = PathBuf::from(var("OUT_DIR").expect("cargo sets it"));
        // libbpf-sys brings libbpf's own headers; the kernel's are the system's, where Debian has a folder per architecture.
        let libbpf = var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
        let machine = var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
        let clang = clang();
        let arguments = [
            "-mcpu=v3".into(), // atomic exchanges, which Linux has had since 5.12
            "-Wall".into(),
            "-Wextra".into(),
            "-Werror".into(),
            "-Wno-unused-function".into(), // a program takes what it needs of a header
            "-I../waterfill-laws/kernel".into(),
            format!("-I{libbpf}"),
            format!("-I/usr/include/{machine}-linux-gnu"),
        ];
        // For tests, who load the objects themselves.
        for (program, name) in [("replay", "REPLAY_OBJECT"), ("path", "PATH_OBJECT")] {
            let source = format!("bpf/test/{program}.bpf.c");
            let object = out.join(format!("{program}.bpf.o"));
            libbpf_cargo::SkeletonBuilder::new()
                .source(Path::new(&source))
                .obj(&object)
                .clang(&clang)
                .clang_args(&arguments)
                .build()
                .unwrap_or_else(|e| panic!("{source}: {e:#}"));
            println!("cargo::rustc-env={name}={}", object.display());
        }
        for program in ["router", "host"] {
            let source = format!("bpf/{program}.bpf.c");
            libbpf_cargo::SkeletonBuilder::new()
                .source(Path::new(&source))
                .clang(&clang)
                .clang_args(&arguments)
                .build_and_generate(out.join(format!("{program}.skel.rs")))
                .unwrap_or_else(|e| panic!("{source}: {e:#}"));
        }
    }
}
