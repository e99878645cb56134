//! JSON text sequences (RFC 7464): each record begins with a record separator and ends with a line feed.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use waterfill_laws::units::{Duration, Instant};

const RECORD_SEPARATOR: char = '\u{1e}';
const PS_PER_MS: u64 = 1_000_000_000;

/// A file of events.
#[derive(Debug)]
pub(super) struct Log {
    out: BufWriter<File>,
    record: Record,
    pub(super) events: u64,
    pub(super) bytes: u64,
}

/// Text of a record.
#[derive(Debug, Default)]
pub(super) struct Record(String);

impl Record {
    pub(super) fn push(&mut self, text: fmt::Arguments<'_>) {
        let _ = self.0.write_fmt(text); // to a string, which cannot fail
    }
}

impl Log {
    pub(super) fn new(file: File) -> Self {
        Self { out: BufWriter::with_capacity(1 << 16, file), record: Record::default(), events: 0, bytes: 0 }
    }

    /// Writes the first record: the version, and the sender as the vantage point.
    pub(super) fn header(&mut self, title: &str) -> io::Result<()> {
        let (title, version) = (Quoted(title), env!("CARGO_PKG_VERSION"));
        self.record.0.clear();
        self.record.push(format_args!(
            r#"{RECORD_SEPARATOR}{{"qlog_version":"0.3","qlog_format":"JSON-SEQ","title":{title},"trace":{{"title":{title},"#
        ));
        self.record.push(format_args!(
            r#""vantage_point":{{"name":"waterfill {version}, sender","type":"client"}},"common_fields":{{"#
        ));
        self.record.push(format_args!(
            r#""group_id":{title},"protocol_type":["QUIC"],"reference_time":0,"time_format":"relative"}}}}}}"#
        ));
        self.write()
    }

    /// Writes an event whose data `fields` adds.
    pub(super) fn event(&mut self, now: Instant, name: &str, fields: impl FnOnce(&mut Record)) -> io::Result<()> {
        let time = Decimal(ms(now.since(Instant::ZERO)));
        self.record.0.clear();
        self.record.push(format_args!(r#"{RECORD_SEPARATOR}{{"time":{time},"name":"{name}","data":{{"#));
        fields(&mut self.record);
        self.record.push(format_args!("}}}}"));
        self.events += 1;
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        self.record.0.push('\n');
        self.bytes += self.record.0.len() as u64;
        self.out.write_all(self.record.0.as_bytes())
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns a time as whole milliseconds and the picoseconds beyond them.
pub(super) const fn ms(time: Duration) -> (u64, u64) {
    let ps = time.as_ps();
    (ps / PS_PER_MS, ps % PS_PER_MS)
}

/// Milliseconds in decimal, exact to the picosecond.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decimal(pub(super) (u64, u64));

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, ps) = self.0;
        if ps == 0 {
            return write!(f, "{whole}");
        }
        let (mut digits, mut width) = (ps, 9);
        while digits % 10 == 0 {
            (digits, width) = (digits / 10, width - 1);
        }
        write!(f, "{whole}.{digits:0width$}")
    }
}

/// A JSON string.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// Adds ranges of packet numbers `from..to`.
pub(super) fn ranges(out: &mut Record, ranges: &[(u64, u64)]) {
    for (i, &(from, to)) in ranges.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        if from + 1 == to {
            out.push(format_args!("{comma}[{from}]"));
        } else {
            out.push(format_args!("{comma}[{from},{}]", to - 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_exact() {
        let text = |ps| Decimal(ms(Duration::from_ps(ps))).to_string();
        assert_eq!(text(0), "0");
        assert_eq!(text(12_000_000_000), "12");
        assert_eq!(text(12_030_000_000), "12.03");
        assert_eq!(text(1), "0.000000001");
    }

    #[test]
    fn strings_and_ranges_are_json() {
        assert_eq!(Quoted("a \"b\"\\\n").to_string(), r#""a \"b\"\\\u000a""#);
        let mut record = Record::default();
        ranges(&mut record, &[(7, 9), (3, 4)]);
        assert_eq!(record.0, "[7,8],[3]");
    }
}
