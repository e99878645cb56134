//! Compiles the fixed-point versions of laws (`kernel/`) for the host, from the same C code that the BPF programs
//! include.

fn main() {
    println!("cargo::rerun-if-changed=kernel");
    let folder = std::fs::read_dir("kernel").expect("the folder of the C code");
    let mut files: Vec<_> = folder.map(|entry| entry.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "c"));
    files.retain(|file| !file.to_string_lossy().ends_with(".inc.c"));
    files.sort();
    cc::Build::new().files(files).std("c11").extra_warnings(true).compile("waterfill_kernel");
}
