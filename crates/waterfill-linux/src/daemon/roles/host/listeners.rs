//! Servers that do not answer the option because they listened before the option's program was attached
//! (`bpf/listeners.inc.h`).

use anyhow::{Context as _, Result, ensure};
use libbpf_rs::{Iter, Link, Object};

use super::namespaces;
use super::status::address;
use crate::daemon::kernel::interface::{Bytes as _, HostListener};
use crate::daemon::kernel::object;

/// Maximum number of listeners that a message names.
const SHOWN: usize = 8;

/// Makes listening servers answer the option in all network namespaces that this process may enter. Servers that remain
/// silent are logged.
pub(super) fn enable(object: &Object) -> Result<()> {
    let link = object::program(object, "waterfill_enable_listeners")?.attach().context("cannot list servers")?;
    let mut listeners = Vec::new();
    let found = &mut listeners;
    let denied = namespaces::visit(move |place| match read(&link) {
        Ok(here) => found.extend(here),
        Err(e) => tracing::warn!("{place}: cannot list servers: {e:#}"),
    })?;
    let (enabled, silent): (Vec<_>, Vec<_>) = listeners.into_iter().partition(|listener| listener.enabled);
    if !enabled.is_empty() {
        tracing::info!("{} servers that listened before answer the option now", enabled.len());
    }
    if !silent.is_empty() {
        tracing::warn!("{}", describe(silent.iter().map(|listener| listener.address.as_str())));
    }
    if denied > 0 {
        tracing::info!(
            "cannot enter {denied} network namespaces without CAP_SYS_ADMIN: servers there that listened before do not answer \
             the option until they are restarted"
        );
    }
    Ok(())
}

/// Describes the servers that do not answer the option. On newer kernels, these are in namespaces that the daemon may
/// not enter.
pub(crate) fn describe<'a>(addresses: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = addresses.len().saturating_sub(SHOWN);
    let mut shown: Vec<&str> = addresses.take(SHOWN).collect();
    let rest = format!("{more} more");
    if more > 0 {
        shown.push(&rest);
    }
    format!(
        "servers that do not answer the option until they are restarted, as they listened before: {}",
        shown.join(", ")
    )
}

/// A server that listened before the option's program was attached.
#[derive(Debug, PartialEq)]
pub(super) struct Listener {
    pub(super) address: String,
    /// True if the server answers the option from now on.
    pub(super) enabled: bool,
}

/// Reads the listeners that an iterator program finds in this thread's network namespace.
pub(super) fn read(link: &Link) -> Result<Vec<Listener>> {
    parse(&super::read(Iter::new(link)?)?)
}

/// Parses the records of the iterator program (`struct host_listener`).
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Listener>> {
    let size = size_of::<HostListener>();
    ensure!(bytes.len() % size == 0, "the list of servers is from another version of waterfilld");
    let records = bytes.chunks_exact(size).filter_map(HostListener::from_prefix);
    let listener = |record: HostListener| Listener {
        address: address(record.address, record.port as u16),
        enabled: record.enabled != 0,
    };
    Ok(records.map(listener).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_and_a_long_list_is_cut_short() {
        let any = HostListener { port: 443, enabled: 1, ..HostListener::default() };
        let mut one = HostListener { port: 22, ..HostListener::default() };
        one.address = std::net::Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped().octets();
        let bytes = [any.as_bytes(), one.as_bytes()].concat();
        let found = parse(&bytes).unwrap();
        let listener = |address: &str, enabled| Listener { address: address.into(), enabled };
        assert_eq!(found, [listener("[::]:443", true), listener("10.0.0.1:22", false)]);
        assert!(parse(&bytes[1..]).is_err());
        let many: Vec<_> = (0..SHOWN + 3).map(|n| format!("10.0.0.{n}:80")).collect();
        let text = describe(many.iter().map(String::as_str));
        assert!(text.contains("before: 10.0.0.0:80, ") && text.ends_with(":80, 3 more"), "{text}");
        assert!(describe(["10.0.0.1:22"].into_iter()).ends_with("before: 10.0.0.1:22"));
    }
}
