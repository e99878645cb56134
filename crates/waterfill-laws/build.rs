//! Compiles the fixed-point versions of laws (`kernel/`) for the host: the same C that the BPF programs include.

fn main() {
    println!("cargo::rerun-if-changed=kernel");
    let laws = ["kernel/maxnet.c", "kernel/maxnet2006.c"];
    cc::Build::new().files(laws).std("c11").extra_warnings(true).compile("waterfill_kernel");
}
