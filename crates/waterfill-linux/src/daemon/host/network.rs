//! Networks of peers (`--peers`).

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use crate::daemon::interface::{Bytes as _, Prefix};

/// A network of IPv6, or of IPv4 by its mapped addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    address: Ipv6Addr,
    bits: u32,
}

impl Network {
    /// Returns the key in the map of peers (`struct host_prefix`).
    pub(super) fn key(&self) -> Vec<u8> {
        let mut prefix = Prefix { bits: self.bits, ..Prefix::default() };
        for (word, bytes) in prefix.address.iter_mut().zip(self.address.octets().chunks_exact(4)) {
            *word = u32::from_ne_bytes(bytes.try_into().unwrap_or_default());
        }
        prefix.as_bytes().to_vec()
    }
}

impl FromStr for Network {
    type Err = String;

    /// Parses "10.0.0.0/8", "fd00::/8", or one address.
    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
            let address: IpAddr = address.parse().ok()?;
            let bits: Option<u32> = bits.map(str::parse).transpose().ok()?;
            let (address, bits, before) = match address {
                IpAddr::V4(v4) => (v4.to_ipv6_mapped(), bits.unwrap_or(32), 96),
                IpAddr::V6(v6) => (v6, bits.unwrap_or(128), 0),
            };
            let bits = bits.checked_add(before).filter(|bits| *bits <= 128)?;
            // Bits after the prefix would be ignored, so they are probably a mistake.
            let rest = address.to_bits().checked_shl(bits).unwrap_or(0);
            (rest == 0).then_some(Self { address, bits })
        };
        parse().ok_or_else(|| "expected a network such as 10.0.0.0/8 or fd00::/8, or an address".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_prefixes_of_ipv6_addresses() {
        let key = |text: &str| text.parse::<Network>().unwrap().key();
        let mapped = |bits: u8, ip: [u8; 4]| [&[bits, 0, 0, 0][..], &[0; 10], &[255; 2], &ip].concat();
        assert_eq!(key("10.0.0.0/8"), mapped(104, [10, 0, 0, 0]));
        assert_eq!(key("10.1.2.3"), mapped(128, [10, 1, 2, 3]));
        assert_eq!(key("0.0.0.0/0"), mapped(96, [0; 4]));
        assert_eq!(key("fd00::/8"), [&[8, 0, 0, 0, 0xfd][..], &[0; 15]].concat());
        assert_eq!(key("::/0"), [0; 20]);
        for wrong in ["10.0.0.1/8", "10.0.0.0/33", "fd00::1/64", "::/129", "::/-1", "host", "10.0.0.0/", "/8"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
