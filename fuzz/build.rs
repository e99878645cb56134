//! Compiles the decoders of the laws' TCP options for the host, which the target `frame` compares with Rust.

#[path = "../crates/waterfill-linux/build/laws.rs"]
mod laws;

const FOLDER: &str = "../crates/waterfill-linux/bpf";
const KERNEL: &str = "../crates/waterfill-laws/kernel";

fn main() {
    println!("cargo::rerun-if-changed={FOLDER}");
    println!("cargo::rerun-if-changed={KERNEL}");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os != "linux") {
        return; // the frames are those of Linux
    }
    let names = laws::names(KERNEL);
    for law in &names {
        laws::decoder(FOLDER, KERNEL, law).compile(&format!("decode_{law}"));
    }
    laws::list_decoders(&names, std::path::Path::new(&std::env::var("OUT_DIR").expect("cargo sets it")));
}
