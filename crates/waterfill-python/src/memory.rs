//! Checks of a run's memory against the free memory.

use std::fs::read_to_string;
use std::path::Path;

use waterfill_network::Estimate;

/// Minimum size in bytes of a process that stops when memory becomes scarce. A smaller process is not the cause of the
/// scarcity.
const LARGE_BYTES: f64 = 1e9;
/// Fraction of the host's memory that a large run leaves free.
const RESERVE: f64 = 0.02;

/// Returns the bytes that this process can still allocate, or `None` if the system does not report them.
///
/// The limits are the host's memory, the control group's limit, and the process's own limits (`ulimit -v`, `ulimit
/// -d`).
fn free_bytes() -> Option<f64> {
    let host = field("/proc/meminfo", "MemAvailable:")? * 1024.0;
    Some([group_bytes(), limit_bytes()].into_iter().flatten().fold(host, f64::min))
}

/// Returns the bytes left under the soft limits on this process's address space and data, or `None` without a limit.
fn limit_bytes() -> Option<f64> {
    let limits = read_to_string("/proc/self/limits").ok()?;
    [("Max address space", "VmSize:"), ("Max data size", "VmData:")]
        .into_iter()
        .filter_map(|(limit, used)| {
            Some((soft_limit(&limits, limit)? - field("/proc/self/status", used)? * 1024.0).max(0.0))
        })
        .reduce(f64::min)
}

/// Returns a soft limit from the text of `/proc/PID/limits`; `None` for `unlimited`.
fn soft_limit(limits: &str, name: &str) -> Option<f64> {
    limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Returns the number that follows a name in a file with lines `NAME NUMBER …`, or `None` if there is none.
fn field(file: &str, name: &str) -> Option<f64> {
    let text = read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Returns the bytes left under the limits of this process's control group (version 2) and its ancestors, or `None`
/// without a limit.
fn group_bytes() -> Option<f64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let above = root.join(own);
    let number = |path: &Path| read_to_string(path).ok()?.trim().parse::<f64>().ok();
    above
        .ancestors()
        .take_while(|group| group.starts_with(root))
        .filter_map(|group| {
            let (most, used) = (number(&group.join("memory.max"))?, number(&group.join("memory.current"))?);
            // What files have cached can be taken back.
            let cached = field(group.join("memory.stat").to_str()?, "inactive_file ").unwrap_or(0.0);
            Some((most - used + cached).max(0.0))
        })
        .reduce(f64::min)
}

/// Checks that a run's estimate fits into the free memory.
pub(crate) fn fits(estimate: &Estimate) -> Result<(), String> {
    let need = &estimate.bytes;
    match free_bytes() {
        Some(free) if need.total > free => Err(format!(
            "{}: the run needs about {}, most of it for this, but only {} of memory are free",
            need.key,
            size(need.total),
            size(free)
        )),
        _ => Ok(()),
    }
}

/// Checks that a large run leaves a reserve of free memory.
pub(crate) fn leaves_reserve() -> Result<(), String> {
    let free = || Some((field("/proc/self/status", "VmRSS:")? * 1024.0, free_bytes()?, all_bytes()?));
    match free() {
        Some((own, free, all)) if own > LARGE_BYTES && free < RESERVE * all => {
            Err(format!("run: outgrew the memory; it holds {}, and {} are free", size(own), size(free)))
        }
        _ => Ok(()),
    }
}

fn all_bytes() -> Option<f64> {
    Some(field("/proc/meminfo", "MemTotal:")? * 1024.0)
}

/// Returns a size as text with a unit, for example `22.4 GB`.
fn size(bytes: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let place = ((bytes.max(1.0).log10() / 3.0) as usize).min(units.len() - 1);
    let unit = units.get(place).copied().unwrap_or("B");
    format!("{:.1} {unit}", bytes / 1000f64.powi(place as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let sizes = [0.0, 999.0, 2.24e10, 4e12, 1e30].map(size);
        assert_eq!(sizes, ["0.0 B", "999.0 B", "22.4 GB", "4.0 TB", "1000000000000000.0 PB"]);
    }

    #[test]
    fn a_soft_limit_is_read() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax data size  unlimited  unlimited  bytes\n\
                      Max address space  4096000  8192000  bytes\n";
        assert_eq!(soft_limit(limits, "Max address space"), Some(4_096_000.0));
        assert_eq!(soft_limit(limits, "Max data size"), None);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let mut estimate = Estimate::default();
        estimate.bytes.add(1.0, || "small".into());
        assert_eq!(fits(&estimate), Ok(()));
        estimate.bytes.add(1e30, || "flow.f.count".into());
        if free_bytes().is_some() {
            assert!(fits(&estimate).unwrap_err().starts_with("flow.f.count: the run needs about "));
        }
    }
}
