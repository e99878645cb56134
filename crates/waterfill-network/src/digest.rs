//! Hash of a run's results, which is the same on every target if and only if the results are.

use std::io::{self, Write};

use crate::series::{ColumnType, Series};
use crate::summary::Summary;

/// FNV-1a with 128 bits, over bytes. It finds differences; it is no protection against intent.
struct Fnv(u128);

impl Fnv {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(Self::PRIME);
        }
    }

    /// Adds a text and its length, so that two texts never run into one another.
    fn add_text(&mut self, text: &str) {
        self.add_number(text.len() as u64);
        self.add(text.as_bytes());
    }

    fn add_number(&mut self, number: u64) {
        self.add(&number.to_le_bytes());
    }
}

impl Write for Fnv {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a hash of a summary and of tables as 32 hexadecimal digits.
///
/// It covers every key of the summary, and each column's name, type and bits, in order. All NaN are equal, because they mean
/// "no value" and targets differ in their bits. The summary's wall time is expected to be absent.
///
/// # Errors
/// One sentence: the summary cannot be written as JSON.
pub fn digest(summary: &Summary, tables: &[&Series]) -> Result<String, String> {
    let mut hash = Fnv(Fnv::BASIS);
    serde_json::to_writer(&mut hash, summary).map_err(|e| format!("the summary cannot be written as JSON: {e}"))?;
    for table in tables {
        hash.add_number(table.names().len() as u64);
        for (name, column) in table.names().iter().zip(table.columns()) {
            hash.add_text(name);
            hash.add_text(ColumnType::of(name).name());
            hash.add_number(column.len() as u64);
            for &x in column {
                hash.add_number(if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() });
            }
        }
    }
    Ok(format!("{:032x}", hash.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::EngineSummary;

    fn summary(events: u64) -> Summary {
        let engine = EngineSummary { events, ..EngineSummary::default() };
        Summary { flows: vec![], links: vec![], traffic: vec![], switches: vec![], deadlock: None, engine }
    }

    fn table(name: &str, values: &[f64]) -> Series {
        let mut series = Series::new(&[name]);
        for &x in values {
            series.push(&[x]);
        }
        series
    }

    #[test]
    fn fnv_has_its_published_values() {
        let hash = |text: &str| {
            let mut hash = Fnv(Fnv::BASIS);
            hash.add(text.as_bytes());
            hash.0
        };
        assert_eq!(hash(""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(hash("a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(hash("foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }

    #[test]
    fn every_part_counts() {
        let base = digest(&summary(1), &[&table("x", &[0.0, 1.0])]);
        let others = [
            digest(&summary(2), &[&table("x", &[0.0, 1.0])]),
            digest(&summary(1), &[&table("y", &[0.0, 1.0])]),
            digest(&summary(1), &[&table("drops", &[0.0, 1.0])]),
            digest(&summary(1), &[&table("x", &[-0.0, 1.0])]),
            digest(&summary(1), &[&table("x", &[0.0, 1.0 + f64::EPSILON])]),
            digest(&summary(1), &[&table("x", &[0.0, f64::NAN])]),
            digest(&summary(1), &[&table("x", &[0.0])]),
            digest(&summary(1), &[&table("x", &[0.0, 1.0]), &Series::default()]),
        ];
        for (i, other) in others.iter().enumerate() {
            assert_ne!(other, &base, "{i}");
            assert!(others.iter().skip(i + 1).all(|one| one != other), "{i}");
        }
    }

    #[test]
    fn all_nan_are_equal() {
        let quiet = digest(&summary(1), &[&table("x", &[f64::NAN])]);
        assert_eq!(digest(&summary(1), &[&table("x", &[-f64::NAN])]), quiet);
    }
}
