//! Compiles the laws' integer twins (`kernel/`) for the host: the same C that a kernel program includes.

fn main() {
    println!("cargo::rerun-if-changed=kernel");
    cc::Build::new().file("kernel/maxnet2006.c").std("c11").extra_warnings(true).compile("waterfill_kernel");
}
