//! Properties of network devices, and notifications when they change.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_indextoname;
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket};

use super::interface::{Attachment, read_name, write_name};
use crate::daemon::options::error::user_error;

/// Device types of linux/if_arp.h whose packets start with an Ethernet header. Packets of the types in [`IP`] start
/// with the IP header.
const ETHERNET: [u16; 2] = [1, 772];
const IP: [u16; 6] = [512, 519, 768, 769, 776, 0xfffe];
const ETHERNET_BYTES: u32 = 14;

/// Returns the inode of this thread's network namespace.
pub(crate) fn namespace() -> Result<u64> {
    Ok(fs::metadata("/proc/thread-self/ns/net").context("cannot identify the network namespace")?.ino())
}

/// Returns a device's present name, or its name at the time of attachment if the device is gone or in another
/// namespace.
pub(crate) fn name(ifindex: u32, attachment: &Attachment) -> String {
    name_in(ifindex, attachment.namespace, &attachment.device)
}

/// Returns the present name of a device, or `then` if the device is gone or not in this network namespace.
pub(crate) fn name_in(ifindex: u32, of: u64, then: &[i8]) -> String {
    match (namespace(), if_indextoname(ifindex)) {
        (Ok(here), Ok(name)) if here == of => name.to_string_lossy().into_owned(),
        _ => read_name(then),
    }
}

/// Returns a device's MTU in bytes.
#[expect(unsafe_code, reason = "nix has no SIOCGIFMTU")]
pub(crate) fn mtu(device: &str) -> Result<u32> {
    // SAFETY: integers, arrays and pointers, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    write_name(&mut request.ifr_name, device);
    let any = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).context("no socket")?;
    // SAFETY: the kernel reads the name, which ends with a zero, and writes the MTU into the structure.
    let code = unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) };
    Errno::result(code).with_context(|| format!("cannot read the MTU of {device}"))?;
    // SAFETY: the call has written it.
    Ok(unsafe { request.ifr_ifru.ifru_mtu }.unsigned_abs())
}

/// Returns the length of a device's link header in bytes.
pub(crate) fn header_bytes(device: &str) -> Result<u32> {
    let addresses = getifaddrs().context("cannot list devices")?;
    let kind = addresses
        .filter(|a| a.interface_name == device)
        .find_map(|a| a.address.and_then(|address| address.as_link_addr().map(nix::sys::socket::LinkAddr::hatype)));
    // A device without a link address (tun, ppp, wireguard) has no link header.
    let Some(kind) = kind else { return Ok(0) };
    match kind {
        kind if ETHERNET.contains(&kind) => Ok(ETHERNET_BYTES),
        kind if IP.contains(&kind) => Ok(0),
        kind => bail!(user_error(format!(
            "--dev {device}: must be a device for Ethernet or plain IP, got type {kind} (linux/if_arp.h)"
        ))),
    }
}

/// Netlink group of the kernel's messages on devices (RTMGRP_LINK of linux/rtnetlink.h).
const LINK_MESSAGES: u32 = 1;
/// Time within which messages count as one change. Starting a container causes dozens of messages.
const SETTLING_TIME: Duration = Duration::from_millis(20);

/// Starts a thread that calls `changed` at once, and whenever a device of this namespace appears, changes or
/// disappears. The thread ends when `changed` returns false.
pub(crate) fn watch(mut changed: impl FnMut() -> bool + Send + 'static) -> Result<()> {
    let open = || {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, LINK_MESSAGES))?;
        nix::Result::Ok(socket)
    };
    let socket = open().context("cannot watch devices")?;
    let next = move |flags| match recv(socket.as_raw_fd(), &mut [0; 8192], flags) {
        Err(Errno::EINTR | Errno::ENOBUFS) => Ok(0), // ENOBUFS: messages were lost, so something changed
        result => result,
    };
    thread::spawn(move || {
        while changed() {
            if let Err(e) = next(MsgFlags::empty()) {
                tracing::warn!("devices are no longer watched: {}", e.desc());
                return;
            }
            thread::sleep(SETTLING_TIME);
            while next(MsgFlags::MSG_DONTWAIT).is_ok() {}
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_an_ethernet_header() {
        assert_eq!(header_bytes("lo").unwrap(), ETHERNET_BYTES);
    }
}
