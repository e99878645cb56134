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

/// Formats rows below their headings; each column is as wide as its widest cell.
pub(super) fn table<const N: usize>(head: [(&str, Align); N], rows: &[[String; N]]) -> String {
    let mut lines = vec![head.map(|(name, _)| name.to_owned())];
    lines.extend_from_slice(rows);
    let widest = |c: usize| lines.iter().map(|line| line[c].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(widest);
    let mut out = String::new();
    for line in &lines {
        let cells = line.iter().zip(widths).zip(head).map(|((cell, width), (_, align))| match align {
            Align::Left => format!("{cell:<width$}"),
            Align::Right => format!("{cell:>width$}"),
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
