//! Compiles the fixed-point versions of laws (`kernel/`) for the host: the same C that the BPF programs include.

/// Laws behind the interface of `kernel/law.h`: src/kernel/mod.rs says how to add one.
const LAWS: &[&str] = &["aecp", "ixcp", "jetmax", "maxnet_law", "maxnet2006_law", "pxcp", "rcp", "vcp", "xcp"];

fn main() {
    println!("cargo::rerun-if-changed=kernel");
    let files = ["law", "maxnet", "maxnet2006", "cohabit", "csig", "scone"]
        .into_iter()
        .chain(LAWS.iter().copied())
        .map(|name| format!("kernel/{name}.c"));
    cc::Build::new().files(files).std("c11").extra_warnings(true).compile("waterfill_kernel");
}
