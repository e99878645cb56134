//! Compiles the laws' integer twins (`kernel/`) for the host: the same C that a kernel program includes.

fn main() {
    println!("cargo::rerun-if-changed=kernel");
    let twins = ["kernel/maxnet.c", "kernel/maxnet2006.c"];
    cc::Build::new().files(twins).std("c11").extra_warnings(true).compile("waterfill_kernel");
}
