//! Compiles the decoders of the laws' TCP options for the host, which the target `frame` compares with Rust.

const FOLDER: &str = "../crates/waterfill-linux/bpf";
const LAWS: [&str; 9] = ["maxnet", "maxnet2006", "aecp", "rcp", "vcp", "xcp", "pxcp", "ixcp", "jetmax"];

fn main() {
    println!("cargo::rerun-if-changed={FOLDER}");
    println!("cargo::rerun-if-changed=../crates/waterfill-laws/kernel");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os != "linux") {
        return; // the frames are those of Linux
    }
    for law in LAWS {
        cc::Build::new()
            .file(format!("{FOLDER}/test/decode_host.c"))
            .include("../crates/waterfill-laws/kernel")
            .std("gnu11")
            .extra_warnings(true)
            .flag("-Wno-unused-function")
            .flag(format!("-DLAW_HEADER=\"{law}.h\""))
            .define("DECODE(name)", format!("decode_{law}_##name").as_str())
            .compile(&format!("decode_{law}"));
    }
}
