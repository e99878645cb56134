//! Where a packet carries MaxNet's two fields: the TCP option, an IPv4 option, or an IPv6 hop-by-hop option.
//!
//! maxnet-2007 §V: "The current implementation of MaxNet uses TCP options, although IPv4 options or IPv6 per-hop options
//! could also be used." The fields are Fig. 4's. Both papers leave the option types open; here they are RFC 4727's for
//! experiments. Fig. 4's `optsize = 6` is what IPv6 writes: only there does a length leave out the two leading bytes.
//!
//! | carriage | bytes | price at | routers update |
//! |---|---|---|---|
//! | TCP option | 8 | 5 | TCP's checksum |
//! | IPv4 option | 8 | 5 | the IPv4 header's checksum |
//! | IPv6 hop-by-hop header | 16 | 7 | nothing: IPv6 has no header checksum, and TCP's does not cover extension headers |

use super::{Field, OPTION_BYTES, decode_option, encode_option};

/// Type of the IPv4 option: copied into every fragment, class 0, number 30 (RFC 4727 §3.3).
const IPV4_TYPE: u8 = 0b1001_1110;
/// Type of the IPv6 option: skipped by nodes that do not know it, may change on the way, 11110 (RFC 4727 §3.4).
const IPV6_TYPE: u8 = 0b0011_1110;
/// Bytes of the hop-by-hop header: two leading bytes, the option, and padding to a multiple of eight.
const IPV6_BYTES: usize = 16;
/// Protocol number of TCP, the header behind the hop-by-hop header.
const TCP: u8 = 6;
/// PadN of six bytes: type, length, four zeros.
const PAD: [u8; 6] = [1, 4, 0, 0, 0, 0];

/// The part of a packet that carries the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carriage {
    /// A TCP option, as in both papers' implementations.
    Tcp,
    /// An option of the IPv4 header.
    Ipv4,
    /// A hop-by-hop options header of IPv6, with MaxNet's option alone.
    Ipv6,
}

impl Carriage {
    /// Returns the bytes that a packet grows by.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Tcp | Self::Ipv4 => OPTION_BYTES,
            Self::Ipv6 => IPV6_BYTES,
        }
    }

    /// Returns where the price's three bytes begin, the only ones that routers change.
    #[must_use]
    pub const fn price_offset(self) -> usize {
        match self {
            Self::Tcp | Self::Ipv4 => 5,
            Self::Ipv6 => 7,
        }
    }
}

/// `[maxnet-2007:fig4]` Echo and price of one packet; a duplex connection uses both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// What the other direction's data brought; no router changes it.
    pub echo: Field,
    /// The highest price, or the smallest start rate, so far.
    pub price: Field,
}

impl Fields {
    /// Encodes the fields into the first [`Carriage::bytes`] of `out`, which must be that long.
    pub fn encode(&self, carriage: Carriage, out: &mut [u8]) {
        match carriage {
            Carriage::Tcp => encode_option(self.echo, self.price, out),
            Carriage::Ipv4 => {
                encode_option(self.echo, self.price, out);
                out[0] = IPV4_TYPE;
            }
            Carriage::Ipv6 => {
                let mut option = [0; OPTION_BYTES];
                encode_option(self.echo, self.price, &mut option);
                // The header's length is in units of eight bytes, the first not counted.
                out[..4].copy_from_slice(&[TCP, (IPV6_BYTES / 8 - 1) as u8, IPV6_TYPE, 6]);
                out[4..10].copy_from_slice(&option[2..]);
                out[10..IPV6_BYTES].copy_from_slice(&PAD);
            }
        }
    }

    /// Decodes the fields; `None` if these bytes are too few, or not MaxNet's option.
    #[must_use]
    pub fn decode(carriage: Carriage, bytes: &[u8]) -> Option<Self> {
        let mut option = [0; OPTION_BYTES];
        match carriage {
            Carriage::Tcp => option.copy_from_slice(bytes.get(..OPTION_BYTES)?),
            Carriage::Ipv4 => {
                option.copy_from_slice(bytes.get(..OPTION_BYTES)?);
                option[0] = tcp_kind(option[0], IPV4_TYPE)?;
            }
            Carriage::Ipv6 => {
                let header: &[u8; IPV6_BYTES] = bytes.first_chunk()?;
                if header[1] != 1 || header[3] != 6 || header[10..] != PAD {
                    return None;
                }
                option[0] = tcp_kind(header[2], IPV6_TYPE)?;
                option[1] = OPTION_BYTES as u8;
                option[2..].copy_from_slice(&header[4..10]);
            }
        }
        decode_option(&option).map(|(echo, price)| Self { echo, price })
    }
}

/// Returns the kind of the TCP option if this is the type expected.
fn tcp_kind(found: u8, expected: u8) -> Option<u8> {
    (found == expected).then_some(super::OPTION_KIND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::numbers;

    const ALL: [Carriage; 3] = [Carriage::Tcp, Carriage::Ipv4, Carriage::Ipv6];
    /// The price of 1 Gbit/s with T = 0.05 s, and a start rate: 0x02c35b, and 0x800000 with the flag.
    const FIELDS: Fields = Fields { echo: Field::StartRate(1), price: Field::Price(181_083) };

    fn encoded(fields: Fields, carriage: Carriage) -> Vec<u8> {
        let mut out = vec![0xaa; carriage.bytes()];
        fields.encode(carriage, &mut out);
        out
    }

    #[test]
    fn the_bytes_by_hand() {
        assert_eq!(encoded(FIELDS, Carriage::Tcp), [42, 8, 0x80, 0, 1, 0x02, 0xc3, 0x5b]);
        assert_eq!(encoded(FIELDS, Carriage::Ipv4), [0x9e, 8, 0x80, 0, 1, 0x02, 0xc3, 0x5b]);
        let ipv6 = [6, 1, 0x3e, 6, 0x80, 0, 1, 0x02, 0xc3, 0x5b, 1, 4, 0, 0, 0, 0];
        assert_eq!(encoded(FIELDS, Carriage::Ipv6), ipv6);
    }

    #[test]
    fn options_fill_whole_units_of_their_headers() {
        assert_eq!(ALL.map(Carriage::bytes), [8, 8, 16]);
        assert!(ALL.iter().all(|carriage| carriage.bytes() % 4 == 0), "TCP and IPv4 count words of 4 bytes");
        assert_eq!(Carriage::Ipv6.bytes() % 8, 0, "IPv6 counts words of 8");
    }

    #[test]
    fn every_field_comes_back_and_a_router_changes_three_bytes() {
        let mut random = numbers(11);
        for _ in 0..10_000 {
            let mut field = || Field::from_bits(random(1 << 24) as u32);
            let (echo, price, other) = (field(), field(), field());
            for carriage in ALL {
                let mut bytes = encoded(Fields { echo, price }, carriage);
                assert_eq!(Fields::decode(carriage, &bytes), Some(Fields { echo, price }));
                let at = carriage.price_offset();
                bytes[at..at + 3].copy_from_slice(&other.bits().to_be_bytes()[1..]);
                assert_eq!(bytes, encoded(Fields { echo, price: other }, carriage));
            }
        }
    }

    #[test]
    fn other_options_are_refused() {
        for carriage in ALL {
            let good = encoded(FIELDS, carriage);
            assert_eq!(Fields::decode(carriage, &good[..good.len() - 1]), None, "too short");
            let fixed = match carriage {
                Carriage::Tcp | Carriage::Ipv4 => vec![0, 1],
                Carriage::Ipv6 => vec![1, 2, 3, 10, 11, 15],
            };
            for at in fixed {
                let mut bad = good.clone();
                bad[at] ^= 0x10;
                assert_eq!(Fields::decode(carriage, &bad), None, "{carriage:?}, byte {at}");
            }
            for other in ALL.into_iter().filter(|other| *other != carriage) {
                assert_eq!(Fields::decode(other, &good), None, "{carriage:?} read as {other:?}");
            }
        }
    }
}
