//! Tests of the C codec against a second codec in Rust, over all codes, and against SAI's figure.

use super::*;

/// Returns the bytes of a tag from the figure's fields in order, each given as a value and a width in bits.
fn bytes_of(fields: &[(u64, u32)]) -> Vec<u8> {
    let mut bits = Vec::new();
    for &(value, width) in fields {
        bits.extend((0..width).rev().map(|bit| (value >> bit & 1) as u8));
    }
    assert_eq!(bits.len() % 8, 0);
    bits.chunks(8).map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | bit)).collect()
}

fn expected(format: Format, tpid: u16, tag: &Tag) -> Vec<u8> {
    let Tag { signal, code, locator, trimmed } = tag;
    let field = |value: &u32, width| (u64::from(*value), width);
    match format {
        Format::Compact => bytes_of(&[
            (tpid.into(), 16),
            field(signal, 3),
            (0, 1),
            field(code, 5),
            field(locator, 6),
            field(trimmed, 1),
        ]),
        Format::Wide => bytes_of(&[
            (tpid.into(), 16),
            field(locator, 15),
            field(trimmed, 1),
            field(signal, 4),
            field(code, 20),
            (0, 8),
        ]),
    }
}

/// Tags match SAI figure 2.
///
/// Each field alone with all its bits set shows where its box begins and ends. 0xccdd is the TPID of section 5.1.1's
/// example.
#[test]
fn the_bytes_of_sais_figure() {
    let compact =
        |signal, code, locator, trimmed| Tag { signal, code, locator, trimmed }.write(Format::Compact, 0xccdd);
    let wide = |signal, code, locator, trimmed| Tag { signal, code, locator, trimmed }.write(Format::Wide, 0xccdd);
    // Caption 1-2: byte 2 holds t, r and the four upper bits of s; byte 3 the lowest of s, then lm and d.
    assert_eq!(compact(7, 0, 0, 0)[..4], [0xcc, 0xdd, 0xe0, 0x00]);
    assert_eq!(compact(0, 31, 0, 0)[..4], [0xcc, 0xdd, 0x0f, 0x80]);
    assert_eq!(compact(0, 0, 63, 0)[..4], [0xcc, 0xdd, 0x00, 0x7e]);
    assert_eq!(compact(0, 0, 0, 1)[..4], [0xcc, 0xdd, 0x00, 0x01]);
    // Caption 1-3: lm and d fill bytes 2 and 3; t is half of byte 4, s the rest of it and bytes 5 and 6, r byte 7.
    assert_eq!(wide(0, 0, 0x7fff, 0), [0xcc, 0xdd, 0xff, 0xfe, 0, 0, 0, 0]);
    assert_eq!(wide(0, 0, 0, 1), [0xcc, 0xdd, 0x00, 0x01, 0, 0, 0, 0]);
    assert_eq!(wide(15, 0, 0, 0), [0xcc, 0xdd, 0, 0, 0xf0, 0, 0, 0]);
    assert_eq!(wide(0, 0xfffff, 0, 0), [0xcc, 0xdd, 0, 0, 0x0f, 0xff, 0xff, 0]);
    assert_eq!([Format::Compact, Format::Wide].map(Format::bits), [5, 20]);
    // Section 3.0's table: types 0 to 3, of which the first two want the smallest value.
    for (signal, first) in [(0, 31), (1, 31), (2, 0), (3, 0), (PRICE, 0)] {
        assert_eq!(Format::Compact.first(signal), first);
        assert_eq!(Format::Wide.first(signal), if first == 0 { 0 } else { 0xfffff });
    }
}

#[test]
fn every_compact_tag_comes_back() {
    for word in 0..=u16::MAX {
        let tag = Tag {
            signal: (word >> 13).into(),
            code: (word >> 7 & 31).into(),
            locator: (word >> 1 & 63).into(),
            trimmed: (word & 1).into(),
        };
        let bytes = tag.write(Format::Compact, 0x88b5);
        assert_eq!(bytes[..4], expected(Format::Compact, 0x88b5, &tag));
        assert_eq!(Tag::read(Format::Compact, &bytes), tag);
        // The reserved bit is written as 0 and not read.
        assert_eq!(u16::from_be_bytes([bytes[2], bytes[3]]), word & !0x1000);
    }
}

#[test]
fn every_wide_code_and_every_locator_comes_back() {
    let check = |tag: Tag| {
        let bytes = tag.write(Format::Wide, 0x88b6);
        assert_eq!(bytes.to_vec(), expected(Format::Wide, 0x88b6, &tag));
        assert_eq!(Tag::read(Format::Wide, &bytes), tag);
    };
    for code in 0..1 << 20 {
        let tag = Tag { signal: code & 15, code, locator: code & 0x7fff, trimmed: code >> 7 & 1 };
        let bytes = tag.write(Format::Wide, 0x88b6);
        let word = u64::from(tag.locator) << 33
            | u64::from(tag.trimmed) << 32
            | u64::from(tag.signal) << 28
            | u64::from(code) << 8;
        assert_eq!(u64::from_be_bytes(bytes) & 0xffff_ffff_ffff, word);
        assert_eq!(Tag::read(Format::Wide, &bytes), tag);
    }
    for locator in 0..0x8000 {
        check(Tag { signal: PRICE, code: locator * 31, locator, trimmed: locator & 1 });
    }
}

/// Values fall into the bands of SAI's section 3.2: 32 configurable bands, or 2^20 bands of equal width.
#[test]
fn a_value_gets_the_band_that_it_lies_in() {
    // Section 5.1.1's example: 8 bands; the first and last are 1 to 100 and 3101 to 3200.
    let mut bands = Bands { count: 8, end: 3200, ..Bands::default() };
    bands.lower = [1, 101, 301, 701, 1201, 1801, 2401, 3101].iter().chain(&[3200; 24]).copied().collect::<Vec<_>>()[..]
        .try_into()
        .unwrap();
    for value in 0..4000 {
        let wanted = bands.lower[..8].iter().rposition(|lower| *lower <= value).unwrap_or(0) as u32;
        assert_eq!(bands.code(Format::Compact, value), wanted, "{value}");
    }
    assert_eq!(bands.value(Format::Compact, 0), 51);
    assert_eq!(bands.value(Format::Compact, 7), 3150);
    assert_eq!(bands.value(Format::Compact, 31), 3150, "a code without a band");
    for count in 1..=32 {
        let few = Bands { count, ..Bands::compact(1000, 33_000) };
        for value in (0..40_000).step_by(37) {
            let wanted = few.lower[..count as usize].iter().rposition(|lower| *lower <= value).unwrap_or(0) as u32;
            assert_eq!(few.code(Format::Compact, value), wanted, "{count} bands, {value}");
        }
    }
    // Section 5.1.2's example: base 1024, step 32.
    let wide = Bands::wide(1024, 5);
    for code in 0..1 << 20 {
        let lower = 1024 + u64::from(code) * 32;
        assert_eq!(wide.code(Format::Wide, lower), code);
        assert_eq!(wide.code(Format::Wide, lower + 31), code);
        assert_eq!(wide.value(Format::Wide, code), lower + 16);
    }
    assert_eq!(wide.code(Format::Wide, 0), 0);
    assert_eq!(wide.code(Format::Wide, u64::MAX), (1 << 20) - 1);
    assert_eq!(Bands::wide(0, 0).value(Format::Wide, 5), 5, "bands of one value");
}

/// A path of five hops ends with the code of its worst hop. By type of signal, this is the fifth (20 Gbit/s), the first
/// (12.5 %) or the third hop (18 us).
#[test]
fn a_path_ends_with_its_worst_hop() {
    for format in [Format::Compact, Format::Wide] {
        let path = |signal: u32, values: [u64; 5], bands: &Bands| {
            let mut tag = Tag { signal, code: format.first(signal), ..Tag::default() };
            for (hop, value) in values.into_iter().enumerate() {
                tag.update(signal, bands.code(format, value), hop as u32 + 1);
            }
            (tag.locator, tag.code)
        };
        let bands = |to| match format {
            Format::Compact => Bands::compact(0, to),
            Format::Wide => Bands::wide(0, 0),
        };
        let code = |to, value| bands(to).code(format, value);
        assert_eq!(path(0, [100_000, 95_000, 70_000, 90_000, 20_000], &bands(128_000)), (5, code(128_000, 20_000)));
        assert_eq!(path(1, [125, 950, 700, 900, 500], &bands(1000)), (1, code(1000, 125)));
        assert_eq!(path(2, [10, 3, 18, 5, 8], &bands(32)), (3, code(32, 18)));
        assert_eq!(path(PRICE, [10, 3, 18, 5, 8], &bands(32)), (3, code(32, 18)));
    }
    // Section 3.1: trimmed packets keep their tag; and a hop configured for another type does not touch it.
    let mut tag = Tag { signal: 2, code: 4, locator: 9, trimmed: 1 };
    assert!(!tag.update(2, 30, 1));
    tag.trimmed = 0;
    assert!(!tag.update(3, 30, 1));
    assert!(!tag.update(2, 4, 1), "an equal code keeps the first hop's locator");
    assert!(tag.update(2, 30, 1) && tag.locator == 1);
}

/// Codes keep the order of values: max Q(v) = Q(max v). A path's code therefore belongs to its worst value, for any
/// number of hops.
#[test]
fn codes_keep_the_order_of_values() {
    let (compact, wide) = (Bands::compact(77, 1_000_003), Bands::wide(4096, 3));
    for value in (0..1_100_000).step_by(53) {
        for (format, bands) in [(Format::Compact, compact), (Format::Wide, wide)] {
            assert!(bands.code(format, value) <= bands.code(format, value + 53));
        }
    }
}
