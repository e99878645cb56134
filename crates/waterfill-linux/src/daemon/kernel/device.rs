//! Properties of network devices, and notifications when they change.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
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

/// Netlink groups of the kernel's messages on devices and on traffic control (RTMGRP_LINK and RTMGRP_TC of
/// linux/rtnetlink.h).
const GROUPS: u32 = 1 | 8;
/// Time within which messages count as one change. Starting a container causes dozens of messages.
const SETTLING_TIME: Duration = Duration::from_millis(20);

// Types of messages (linux/rtnetlink.h).
const NEW_LINK: u16 = 16;
const SET_LINK: u16 = 19;
const NEW_QDISC: u16 = 36;
const DEL_QDISC: u16 = 37;
const NEW_FILTER: u16 = 44;
const DEL_FILTER: u16 = 45;
/// Parent of a root qdisc (TC_H_ROOT), and the attribute with a qdisc's kind (TCA_KIND).
const ROOT: u32 = u32::MAX;
const KIND: u16 = 1;
/// Lengths of `struct nlmsghdr` and `struct tcmsg`, in bytes.
const HEADER: usize = 16;
const TC_HEADER: usize = 20;

/// Changes that the kernel reported since the last ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NetworkChange {
    /// True if messages were lost: anything may have changed.
    pub(crate) lost: bool,
    /// True if a device appeared, changed or disappeared.
    pub(crate) devices: bool,
    /// Indexes of devices with a qdisc or filter that was added, changed or removed.
    pub(crate) qdiscs: BTreeSet<u32>,
    /// Kinds of new root qdiscs, by the index of their device.
    pub(crate) roots: BTreeMap<u32, String>,
}

impl NetworkChange {
    /// Adds netlink messages. Classes are ignored, because `--separate` changes them all the time.
    fn add(&mut self, mut messages: &[u8]) {
        while let Some(length) =
            number(messages, 0).map(|n| n as usize).filter(|n| (HEADER..=messages.len()).contains(n))
        {
            let (message, rest) = (&messages[..length], &messages[length.next_multiple_of(4).min(messages.len())..]);
            let kind = u16::from_ne_bytes([message[4], message[5]]);
            match (kind, number(message, HEADER + 4), number(message, HEADER + 12)) {
                (NEW_LINK..=SET_LINK, ..) => self.devices = true,
                (NEW_QDISC | DEL_QDISC | NEW_FILTER | DEL_FILTER, Some(ifindex), parent) => {
                    self.qdiscs.insert(ifindex);
                    let root = kind == NEW_QDISC && parent == Some(ROOT);
                    if let Some(name) = root.then(|| qdisc_kind(&message[HEADER + TC_HEADER..])).flatten() {
                        self.roots.insert(ifindex, name);
                    }
                }
                _ => {}
            }
            messages = rest;
        }
    }
}

/// Returns the number of 32 bits at an offset, or `None` behind the end.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns a qdisc's kind from the attributes of its message.
fn qdisc_kind(mut attributes: &[u8]) -> Option<String> {
    loop {
        let [a, b, c, d] = *attributes.first_chunk::<4>()?;
        let (length, kind) = (usize::from(u16::from_ne_bytes([a, b])), u16::from_ne_bytes([c, d]));
        let value = attributes.get(4..length)?;
        if kind == KIND {
            return Some(CStr::from_bytes_until_nul(value).ok()?.to_string_lossy().into_owned());
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

/// Starts a thread that calls `changed` at once, and whenever a device of this namespace, its queueing disciplines or its
/// filters appear, change or disappear. The thread ends when `changed` returns false.
pub(crate) fn watch(mut changed: impl FnMut(NetworkChange) -> bool + Send + 'static) -> Result<()> {
    let open = || {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
        nix::Result::Ok(socket)
    };
    let socket = open().context("cannot watch devices")?;
    let mut buffer = vec![0; 1 << 15];
    let mut next = move |flags, change: &mut NetworkChange| {
        match recv(socket.as_raw_fd(), &mut buffer, flags) {
            Ok(n) => change.add(&buffer[..n]),
            Err(Errno::EINTR) => {}
            Err(Errno::ENOBUFS) => (change.lost, change.devices) = (true, true),
            Err(e) => return Err(e),
        }
        Ok(())
    };
    thread::spawn(move || {
        let mut change = NetworkChange { lost: true, devices: true, ..NetworkChange::default() };
        while change == NetworkChange::default() || changed(std::mem::take(&mut change)) {
            if let Err(e) = next(MsgFlags::empty(), &mut change) {
                tracing::warn!("devices are no longer watched: {}", e.desc());
                return;
            }
            thread::sleep(SETTLING_TIME);
            while next(MsgFlags::MSG_DONTWAIT, &mut change).is_ok() {}
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

    /// Returns a message of this type on a qdisc of device 7.
    fn message(kind: u16, parent: u32, attributes: &[u8]) -> Vec<u8> {
        let length = (HEADER + TC_HEADER + attributes.len()) as u32;
        let words = [0, 7, 0x8001_0000, parent, 0];
        let head = [length.to_ne_bytes(), u32::from(kind).to_ne_bytes(), [0; 4], [0; 4]];
        [head.concat(), words.map(u32::to_ne_bytes).concat(), attributes.to_vec()].concat()
    }

    #[test]
    fn messages_name_the_device_and_its_new_root_qdisc() {
        let attributes = [&[5, 0, 9, 0, 1, 0, 0, 0][..], &[7, 0, 1, 0], b"fq\0\0"].concat();
        let of = |messages: &[u8]| {
            let mut change = NetworkChange::default();
            change.add(messages);
            change
        };
        let root = of(&message(NEW_QDISC, ROOT, &attributes));
        assert_eq!((root.qdiscs, root.roots), ([7].into(), [(7, "fq".to_owned())].into()));
        let leaf = of(&message(NEW_QDISC, 0x0001_0001, &attributes));
        assert_eq!((leaf.qdiscs.len(), leaf.roots.len(), leaf.devices), (1, 0, false));
        let gone = of(&message(DEL_QDISC, ROOT, &attributes));
        assert_eq!((gone.qdiscs.len(), gone.roots.len()), (1, 0));
        assert_eq!(of(&message(40, ROOT, &attributes)), NetworkChange::default(), "a class");
        assert!(of(&[message(40, ROOT, &attributes), message(NEW_LINK, 0, &[])].concat()).devices);
        // Cut short, or of a length that cannot be.
        for end in 0..HEADER {
            assert_eq!(of(&message(NEW_QDISC, ROOT, &attributes)[..end]), NetworkChange::default());
        }
        assert_eq!(of(&[0; 64]), NetworkChange::default());
    }
}
