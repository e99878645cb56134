//! Renews the sysctl for the default congestion control after a law has been replaced.
//!
//! The sysctl `net.ipv4.tcp_congestion_control` names a congestion control, but the kernel keeps the object that had the
//! name when the sysctl was written. So after the law is replaced, the same name is written again.

use std::fs;

use anyhow::Result;

use super::namespaces;

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Writes the sysctl again in all network namespaces where it names the law.
pub(super) fn renew(law: &str) -> Result<()> {
    let denied = namespaces::visit(|place| renew_one(law, place))?;
    if denied > 0 {
        tracing::warn!(
            "cannot enter {denied} network namespaces without CAP_SYS_ADMIN: where net.ipv4.tcp_congestion_control is {law}, \
             write it again, or new connections use the older version"
        );
    }
    Ok(())
}

/// Writes the sysctl again in this thread's namespace if it names the law.
fn renew_one(law: &str, place: &str) {
    if !fs::read_to_string(DEFAULT).is_ok_and(|name| name.trim() == law) {
        return;
    }
    match fs::write(DEFAULT, law) {
        Ok(()) => tracing::debug!("{place}: wrote net.ipv4.tcp_congestion_control again"),
        Err(e) => tracing::warn!(
            "{place}: net.ipv4.tcp_congestion_control keeps the older version of {law} for new connections: {e}"
        ),
    }
}
