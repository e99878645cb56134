//! Requirements for loading kernel programs.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Checks that this process can load kernel programs.
pub(crate) fn can_load_programs() -> Result<(), String> {
    if fs::metadata("/proc/self").map_or(true, |me| me.uid() != 0) {
        return Err("needs root".into());
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err("this kernel has no type information (BTF)".into());
    }
    Ok(())
}
