//! Text tables for `status` and `probe`.

use std::fmt::Write as _;

/// The alignment of a column.
#[derive(Clone, Copy, Debug)]
pub(super) enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// Formats rows below their headings; each column is as wide as its widest cell. Rows have as many cells as headings.
pub(super) fn table(head: impl AsRef<[(&'static str, Align)]>, rows: &[impl AsRef<[String]>]) -> String {
    let head = head.as_ref();
    let names: Vec<String> = head.iter().map(|(name, _)| (*name).to_owned()).collect();
    let lines: Vec<&[String]> = std::iter::once(names.as_slice()).chain(rows.iter().map(AsRef::as_ref)).collect();
    let widest = |c: usize| lines.iter().map(|line| line[c].chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for line in &lines {
        let cells = line.iter().zip(head).enumerate().map(|(c, (cell, (_, align)))| {
            let width = widest(c);
            match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            }
        });
        let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["a".into(), "1 Gbit/s".into()], ["longer".into(), "5 Mbit/s".into()]];
        let text = table([("link", Align::Left), ("rate", Align::Right)], &rows);
        assert_eq!(text, "link        rate\na       1 Gbit/s\nlonger  5 Mbit/s\n");
    }
}
