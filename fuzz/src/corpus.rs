//! Corpora as text: one input per line, its bytes escaped as in a Rust byte string.

use std::path::PathBuf;

/// Returns the file of a target's corpus.
#[must_use]
pub fn path(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target).with_extension("txt")
}

/// Reads the inputs of a corpus.
///
/// # Errors
/// Names the line that has an unknown escape.
pub fn parse(text: &str) -> Result<Vec<Vec<u8>>, String> {
    let lines = text.lines().enumerate();
    lines.map(|(i, line)| unescape(line).ok_or_else(|| format!("line {}: unknown escape", i + 1))).collect()
}

/// Returns the line of an input.
#[must_use]
pub fn escape(input: &[u8]) -> String {
    input.escape_ascii().to_string()
}

/// The inverse of [`escape`].
fn unescape(line: &str) -> Option<Vec<u8>> {
    let mut bytes = line.bytes();
    let mut input = Vec::new();
    while let Some(byte) = bytes.next() {
        input.push(match byte {
            b'\\' => match bytes.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'x' => {
                    let digits = [bytes.next()?, bytes.next()?];
                    u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
                }
                same @ (b'\\' | b'\'' | b'"') => same,
                _ => return None,
            },
            other => other,
        });
    }
    Some(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_survive() {
        let input: Vec<u8> = (0..=255).collect();
        let text = format!("{}\n{}\n", escape(&input), escape(b""));
        assert_eq!(parse(&text), Ok(vec![input, vec![]]));
        assert_eq!(parse("a\\q").unwrap_err(), "line 1: unknown escape");
    }
}
