//! Codes of prices and start rates in packets: those of the option's 24-bit field, or of a CSIG tag.

use super::{CODE_MAX, Field, Params, PriceUnit, quantise, real, start_rate, start_rate_code};
use crate::carriage::{Carriage, SignalCode};
use crate::csig::{Format, PRICE, START_RATE, Tag};
use crate::math;
use crate::units::Rate;

crate::choice! {
    /// Place of prices and start rates in data packets.
    pub enum Carrier {
        /// The 24-bit field of MaxNet's TCP option.
        Option = "option",
        /// A CSIG tag in front of the IP header.
        Csig = "csig",
    }
}

impl Params {
    /// Returns the format of the tag, or `None` if prices are in the option.
    pub(crate) const fn tag(&self) -> Option<Format> {
        match (self.carriage, self.code_bits) {
            (Carrier::Option, _) => None,
            (Carrier::Csig, 5) => Some(Format::Compact),
            (Carrier::Csig, _) => Some(Format::Wide),
        }
    }
}

/// Codes of a router's, a source's or a receiver's signals.
#[derive(Clone, Debug)]
pub(super) enum Scale {
    /// Codes of the option's field, with the unit of prices.
    Option(PriceUnit),
    /// Codes of a tag.
    Tag(Box<TagScale>),
}

/// Codes of a tag, which divide the rates from `code_max` to `code_min` into bands of one width in ln(rate).
///
/// A price q stands for the rate x_max·exp(−q/T), so the unit of prices is T times a band's width. A depth is ln(x_max/rate).
/// Code 0 means that no router has written the tag.
#[derive(Clone, Debug)]
pub(super) struct TagScale {
    format: Format,
    code: SignalCode,
    t: f64,
    /// Depth of `code_max`.
    first: f64,
}

impl TagScale {
    /// Returns the code of a depth for packets.
    fn written(&mut self, depth: f64) -> u32 {
        self.code.code((depth - self.first) / self.code.width).max(1)
    }

    /// Returns the depth of the middle of a band, for a code that may be an average.
    fn depth(&self, code: f64) -> f64 {
        self.first + self.code.width * (code + 0.5)
    }
}

impl Scale {
    pub(super) fn new(params: &Params) -> Self {
        match params.tag() {
            None => Self::Option(PriceUnit::of(params.price_unit)),
            Some(format) => Self::Tag(Box::new(TagScale {
                format,
                code: SignalCode::new(format.bits(), params.code_min, params.code_max, params.code_rounding),
                t: params.t.as_secs(),
                first: math::ln(params.x_max / params.code_max),
            })),
        }
    }

    /// Returns the format of the tag, if prices are in one.
    pub(super) fn tag(&self) -> Option<Format> {
        match self {
            Self::Option(_) => None,
            Self::Tag(tag) => Some(tag.format),
        }
    }

    /// Returns the code of a router's price for packets.
    pub(super) fn carried(&mut self, price: f64, params: &Params, carriage: &mut Carriage) -> u32 {
        match self {
            Self::Option(unit) => unit.carried(price, params.x_max, params.t.as_secs(), carriage),
            Self::Tag(tag) => tag.written(price / tag.t),
        }
    }

    /// Returns the code of a router's start rate for packets.
    pub(super) fn start_code(&mut self, rate: Rate, x_max: Rate) -> u32 {
        let depth = start_rate_code(rate, x_max);
        match self {
            Self::Option(_) => quantise(depth),
            Self::Tag(tag) => tag.written(depth),
        }
    }

    /// Returns the start rate of a code.
    pub(super) fn start_rate(&self, code: u32, x_max: Rate) -> Rate {
        let depth = match self {
            Self::Option(_) => real(code),
            Self::Tag(tag) => tag.depth(code.into()),
        };
        start_rate(depth, x_max)
    }

    /// Returns the averaged price of a code in an acknowledgement (s).
    pub(super) fn price(&self, code: u32) -> f64 {
        match self {
            Self::Option(unit) => unit.price(code),
            Self::Tag(tag) => tag.t * tag.depth(f64::from(code) / f64::from(1_u32 << fraction_bits(tag.format))),
        }
    }
}

/// Number of fractional bits that an acknowledgement's 23 bits add to the code of a tag.
pub(super) const fn fraction_bits(format: Format) -> u8 {
    (CODE_MAX.count_ones() - format.bits()) as u8
}

/// EtherType of a tag: IEEE's for local experiments, as in `waterfilld csig`.
const fn tpid(format: Format) -> u16 {
    match format {
        Format::Compact => 0x88b5,
        Format::Wide => 0x88b6,
    }
}

/// Encodes a tag.
pub(super) fn encode_tag(format: Format, field: Field, out: &mut [u8]) {
    let (signal, code) = match field {
        Field::Price(code) => (PRICE, code),
        Field::StartRate(code) => (START_RATE, code),
    };
    let tag = Tag { signal, code, locator: 0, trimmed: 0 };
    out[..format.bytes()].copy_from_slice(&tag.write(format, tpid(format))[..format.bytes()]);
}

/// Decodes a tag. Returns `None` for too few bytes, another EtherType or another signal.
pub(super) fn decode_tag(format: Format, bytes: &[u8]) -> Option<Field> {
    let mut tag = [0; 8];
    tag[..format.bytes()].copy_from_slice(bytes.get(..format.bytes())?);
    let Tag { signal, code, .. } = Tag::read(format, &tag);
    match signal {
        _ if tag[..2] != tpid(format).to_be_bytes() => None,
        PRICE => Some(Field::Price(code)),
        START_RATE => Some(Field::StartRate(code)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Echo, Header, MaxNet, Receiver, Router};
    use super::*;
    use crate::protocol::{Protocol as _, Received, Receiver as _, Router as _, Wire as _};
    use crate::testing::{close, link, pass};
    use crate::units::{Duration, Instant};

    /// Rates from 1 to 200 Gbit/s: with 20 bits a band is ln(200)/2²⁰ = 5.05·10⁻⁶ wide, and with 5 bits 0.1656.
    fn params(bits: u32) -> Params {
        Params {
            carriage: Carrier::Csig,
            code_bits: bits,
            code_min: Rate::from_bps(1e9),
            code_max: Rate::from_bps(200e9),
            t: Duration::from_micros(28),
            ..Params::default()
        }
    }

    /// A tag has 8 bytes, or 4 with 5 bits: EtherType, then the fields of SAI's figure with type 7 for a price and 6 for a
    /// start rate. Acknowledgements have the option.
    #[test]
    fn bytes_of_a_tag() {
        assert_eq!([0, 20, 5].map(|bits| MaxNet::wire_bytes(&params(bits))), [(8, 8), (8, 8), (4, 8)]);
        let bytes_of = |format, price: Field| {
            let header = Header { price, tag: Some(format) };
            let mut bytes = [0; 8];
            header.encode(&mut bytes);
            assert_eq!(header.decode_alike(&bytes[..header.bytes()]), Some(header));
            assert_eq!(header.decode_alike(&bytes[..header.bytes() - 1]), None);
            bytes
        };
        let wide = bytes_of(Format::Wide, Field::Price(0xa_bcde));
        assert_eq!(wide, [0x88, 0xb6, 0, 0, 0x7a, 0xbc, 0xde, 0]);
        assert_eq!(bytes_of(Format::Wide, Field::StartRate(1)), [0x88, 0xb6, 0, 0, 0x60, 0, 1, 0]);
        assert_eq!(bytes_of(Format::Compact, Field::Price(31)), [0x88, 0xb5, 0xef, 0x80, 0, 0, 0, 0]);
        let header = Header { price: Field::Price(1), tag: Some(Format::Wide) };
        assert_eq!(header.decode_alike(&[0x88, 0xb6, 0, 0, 0x10, 0, 1, 0]), None, "another type");
        assert_eq!(header.decode_alike(&[0x88, 0xb5, 0, 0, 0x70, 0, 1, 0]), None, "another EtherType");
    }

    /// A link of 100 Gbit/s writes p_min, whose rate is half of code_max: band 0.6931/5.05·10⁻⁶ = 137,178 of 2²⁰, or 4 of 32.
    /// The source reads the middle of the band. An empty link grants 0.925 of its rate, in the same bands.
    #[test]
    fn prices_and_start_rates_share_the_bands() {
        for (bits, code, start) in [(20, 137_178, 152_608), (5, 4, 4)] {
            let params = params(bits);
            let view = link(100e9, 0.0);
            let mut router = Router::new(&params, &view);
            let tag = params.tag();
            let of = |price| Header { price, tag };
            let passed = pass::<MaxNet>(&mut router, &view, of(Field::Price(0)), 1500.0);
            assert_eq!(passed, of(Field::Price(code)));
            let granted = pass::<MaxNet>(&mut router, &view, of(Field::StartRate(0)), 1500.0);
            assert_eq!(granted, of(Field::StartRate(start)));
            let higher = of(Field::Price(code + 1));
            assert_eq!(pass::<MaxNet>(&mut router, &view, higher, 1500.0), higher);

            let (scale, width) = (Scale::new(&params), 200_f64.ln() / 2_f64.powi(bits as i32));
            let read = scale.price(code << fraction_bits(tag.expect("a tag")));
            let p_min = 28e-6 * (1e15_f64 / 100e9).ln();
            assert!((read - p_min).abs() <= 28e-6 * width / 2.0, "{bits} bits: {read} for {p_min}");
            let rate = scale.start_rate(start, params.x_max);
            assert!((rate.as_bps() / 92.5e9).ln().abs() <= width / 2.0, "{bits} bits: {rate:?}");
        }
    }

    /// A receiver averages codes and returns the average with fractional bits: 8 for each code of 20 bits, 2¹⁸ of 5.
    #[test]
    fn averages_keep_fractions_of_a_code() {
        for (bits, fraction) in [(20, 8), (5, 1 << 18)] {
            let mut receiver = Receiver::new(&params(bits));
            let mut echo = |us, code, rtt| {
                receiver.on_data(&Received {
                    now: Instant::ZERO + Duration::from_micros(us),
                    kind: crate::protocol::PacketKind::Data,
                    header: Header { price: Field::Price(code), tag: params(bits).tag() },
                    rtt,
                });
                receiver.echo(Instant::ZERO)
            };
            assert_eq!(echo(100, 10, Some(Duration::from_micros(12))), Echo { echo: Field::Price(10 * fraction) });
            assert_eq!(echo(103, 11, None), Echo { echo: Field::Price(10 * fraction + fraction / 4) });
        }
        let scale = Scale::new(&params(20));
        let between = |code| scale.price(code);
        close(between(84) - between(80), 28e-6 * 200_f64.ln() / 2_f64.powi(21), 1e-6);
    }

    /// A tag whose code cannot reach a link is refused.
    #[test]
    fn links_beyond_the_bands_are_refused() {
        let refused = |bps| MaxNet::check_link(&params(20), &link(bps, 0.0)).err().map(|error| error.to_string());
        assert_eq!(refused(200e9), None);
        let error = refused(400e9).expect("an error");
        assert!(error.contains("code_max") && error.contains("400 Gbit/s"), "{error}");
        assert!(refused(1e9).expect("an error").contains("code_min"));
    }
}
