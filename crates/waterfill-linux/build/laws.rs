//! Build helpers that find the laws in the kernel directory and compile their decoders for the host. The build scripts
//! of this crate and of the fuzz targets use them.

use std::path::Path;

/// Returns the names of all laws, sorted. Each law has a C source of that name, which defines LAW_NAME for
/// `shim.inc.c`.
pub(crate) fn names(kernel: &str) -> Vec<String> {
    let folder = std::fs::read_dir(kernel).expect("the folder of the C code");
    let mut names: Vec<String> = folder
        .map(|entry| entry.expect("a file").path())
        .filter(|file| file.extension().is_some_and(|extension| extension == "c"))
        .filter(|file| std::fs::read_to_string(file).expect("a source").contains("#define LAW_NAME "))
        .map(|file| file.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Returns the compiler flag that defines LAW_HEADER as the header of a law.
pub(crate) fn header(law: &str) -> String {
    format!("-DLAW_HEADER=\"{law}.h\"")
}

/// Returns a C build of a law's decoders for the host.
pub(crate) fn decoder(bpf: &str, kernel: &str, law: &str) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .file(format!("{bpf}/test/decode_host.c"))
        .include(kernel)
        .std("gnu11")
        .extra_warnings(true)
        .flag("-Wno-unused-function")
        .flag(header(law))
        .define("DECODE(name)", format!("decode_{law}_##name").as_str());
    build
}

/// Writes `decoders.rs`, which lists the decoders' functions for `tests/decoders/host.rs`.
pub(crate) fn list_decoders(laws: &[String], out: &Path) {
    let lines =
        laws.iter().map(|law| format!("\"{law}\": decode_{law}_frame, decode_{law}_write, decode_{law}_option;\n"));
    std::fs::write(out.join("decoders.rs"), format!("hosts! {{\n{}}}\n", lines.collect::<String>())).expect("a file");
}
