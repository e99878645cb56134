//! Capabilities that loading and attaching programs need.

use std::fs;

use anyhow::{Context as _, Result};

use crate::daemon::options::error::user_error;

/// Number and name of a capability, as in linux/capability.h. CAP_SYS_ADMIN includes CAP_PERFMON and CAP_BPF.
const CAP_NET_ADMIN: (u32, &str) = (12, "CAP_NET_ADMIN");
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: (u32, &str) = (38, "CAP_PERFMON");
const CAP_BPF: (u32, &str) = (39, "CAP_BPF");

/// Checks that this process may load and attach programs. An error names the missing capabilities.
pub(crate) fn check() -> Result<()> {
    let status = fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    let missing = missing_capabilities(&status);
    if missing.is_empty() {
        return Ok(());
    }
    Err(user_error(format!(
        "{} missing; run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON",
        missing.join(", ")
    )))
}

fn missing_capabilities(status: &str) -> Vec<&'static str> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    let has = |number: u32| effective >> number & 1 == 1;
    [(CAP_NET_ADMIN, false), (CAP_BPF, true), (CAP_PERFMON, true)]
        .into_iter()
        .filter(|((number, _), of_bpf)| !(has(*number) || *of_bpf && has(CAP_SYS_ADMIN)))
        .map(|((_, name), _)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_effective_set() {
        let status = |effective: u64| format!("CapPrm:\t000001ffffffffff\nCapEff:\t{effective:016x}\n");
        assert_eq!(missing_capabilities(&status(0x1ff_ffff_ffff)), [] as [&str; 0]);
        assert_eq!(missing_capabilities(&status(1 << 12 | 1 << 39 | 1 << 38)), [] as [&str; 0]);
        assert_eq!(missing_capabilities(&status(1 << 12 | 1 << 21)), [] as [&str; 0]);
        assert_eq!(missing_capabilities(&status(1 << 39)), ["CAP_NET_ADMIN", "CAP_PERFMON"]);
        assert_eq!(missing_capabilities(&status(0)), ["CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON"]);
    }
}
