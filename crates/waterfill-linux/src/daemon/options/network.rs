//! Networks whose hosts are peers (`--peers`).

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// An IPv6 network, or an IPv4 network as mapped addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) address: Ipv6Addr,
    pub(crate) bits: u32,
}

impl FromStr for Network {
    type Err = String;

    /// Parses a network, such as "10.0.0.0/8" or "fd00::/8", or a single address.
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
        parse().ok_or_else(|| "must be a network such as 10.0.0.0/8 or fd00::/8, or an address".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_prefixes_of_ipv6_addresses() {
        let read = |text: &str| text.parse::<Network>().unwrap();
        let network = |address: &str, bits| Network { address: address.parse().unwrap(), bits };
        assert_eq!(read("10.0.0.0/8"), network("::ffff:10.0.0.0", 104));
        assert_eq!(read("10.1.2.3"), network("::ffff:10.1.2.3", 128));
        assert_eq!(read("0.0.0.0/0"), network("::ffff:0.0.0.0", 96));
        assert_eq!(read("fd00::/8"), network("fd00::", 8));
        assert_eq!(read("::/0"), network("::", 0));
        for wrong in ["10.0.0.1/8", "10.0.0.0/33", "fd00::1/64", "::/129", "::/-1", "host", "10.0.0.0/", "/8"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
