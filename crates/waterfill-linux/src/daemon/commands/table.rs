//! Text tables for `status` and `probe`, and line wrapping for the text below them.

use std::fmt::Write as _;

/// Alignment of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Align {
    /// Alignment to the left, for words.
    Left,
    /// Alignment to the right, for numbers.
    Right,
}

/// Formats rows below their headings. Each column is as wide as its longest cell, and each row has one cell per
/// heading.
pub(crate) fn table(head: impl AsRef<[(&'static str, Align)]>, rows: &[impl AsRef<[String]>]) -> String {
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

/// A column of a table with a limited width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) align: Align,
    /// Rank for dropping columns: the column with the highest rank is dropped first, and rank 0 is never dropped.
    pub(crate) rank: u8,
    /// Minimum width to which cells may be shortened; 0 forbids shortening.
    pub(crate) shortest: usize,
}

impl Column {
    /// Creates a column of numbers, which is never shortened.
    pub(crate) const fn right(name: &'static str, rank: u8) -> Self {
        Self { name, align: Align::Right, rank, shortest: 0 }
    }

    /// Creates a column of words, which is never shortened.
    pub(crate) const fn left(name: &'static str, rank: u8) -> Self {
        Self { name, align: Align::Left, rank, shortest: 0 }
    }

    /// Creates a column of words that may be shortened to `shortest`.
    pub(crate) const fn words(name: &'static str, rank: u8, shortest: usize) -> Self {
        Self { name, align: Align::Left, rank, shortest }
    }
}

/// Formats a table with at most `width` characters per line. Columns are dropped by rank, then cells are shortened in
/// the middle. `None` sets no limit.
pub(crate) fn fitted(columns: &[Column], rows: &[Vec<String>], width: Option<usize>) -> String {
    let widest = |c: usize| {
        let cells = rows.iter().map(|row| row[c].chars().count());
        cells.chain([columns[c].name.chars().count()]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..columns.len()).map(widest).collect();
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let limit = width.unwrap_or(usize::MAX);
    let total = |kept: &[usize], widths: &[usize]| {
        kept.iter().map(|c| widths[*c]).sum::<usize>() + 2 * kept.len().saturating_sub(1)
    };
    while total(&kept, &widths) > limit {
        let last = kept.iter().copied().filter(|c| columns[*c].rank > 0).max_by_key(|c| (columns[*c].rank, *c));
        let Some(last) = last else { break };
        kept.retain(|c| *c != last);
    }
    while total(&kept, &widths) > limit {
        let long = kept.iter().copied().filter(|c| columns[*c].shortest > 0 && widths[*c] > columns[*c].shortest);
        let Some(long) = long.max_by_key(|c| widths[*c]) else { break };
        widths[long] -= 1;
    }
    let head: Vec<_> = kept.iter().map(|c| (columns[*c].name, columns[*c].align)).collect();
    let cut = |row: &Vec<String>| kept.iter().map(|c| shortened(&row[*c], widths[*c])).collect::<Vec<_>>();
    table(head, &rows.iter().map(cut).collect::<Vec<_>>())
}

/// Formats a table as [`fitted`] does, but first tries to drop column `less` in place of the first column.
pub(crate) fn fitted_without(less: &str, columns: &[Column], rows: &[Vec<String>], width: Option<usize>) -> String {
    let (first, rank) = columns.first().map_or(("", 0), |column| (column.name, column.rank));
    let ranked = columns.iter().map(|column| if column.name == less { Column { rank, ..*column } } else { *column });
    let text = fitted(&ranked.collect::<Vec<_>>(), rows, width);
    if text.starts_with(first) { text } else { fitted(columns, rows, width) }
}

/// Replaces the middle of a text that is longer than `width` with an ellipsis.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= width {
        return text.into();
    }
    let before = width.saturating_sub(1) / 2;
    let after = width.saturating_sub(1) - before;
    chars[..before].iter().chain(&['\u{2026}']).chain(&chars[chars.len() - after..]).collect()
}

/// Wraps a line between words to at most `width` characters. Continuation lines are indented by two.
pub(crate) fn wrapped(line: &str, width: Option<usize>) -> String {
    let (mut out, mut length) = (String::new(), 0);
    for word in line.split(' ') {
        let more = word.chars().count();
        if length > 0 && length + 1 + more > width.unwrap_or(usize::MAX) {
            out.push_str("\n  ");
            length = 2;
        } else if length > 0 {
            out.push(' ');
            length += 1;
        }
        out.push_str(word);
        length += more;
    }
    out.push('\n');
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
    const COLUMNS: [Column; 4] =
        [Column::words("peer", 0, 7), Column::right("rate", 0), Column::right("rtt", 1), Column::right("flags", 2)];

    #[test]
    fn columns_are_dropped_by_rank_and_then_cells_are_shortened() {
        let rows = [["a.long.name:80", "5 M", "1 ms", "0xb3f"].map(String::from).to_vec()];
        let at = |width| fitted(&COLUMNS, &rows, width);
        assert_eq!(at(None), "peer            rate   rtt  flags\na.long.name:80   5 M  1 ms  0xb3f\n");
        assert_eq!(at(Some(33)), at(None));
        assert_eq!(at(Some(32)), "peer            rate   rtt\na.long.name:80   5 M  1 ms\n");
        assert_eq!(at(Some(25)), "peer            rate\na.long.name:80   5 M\n");
        assert_eq!(at(Some(15)), "peer       rate\na.lo\u{2026}e:80   5 M\n");
        assert_eq!(at(Some(3)), "peer     rate\na.l\u{2026}:80   5 M\n", "no shorter");
    }

    #[test]
    fn a_later_column_goes_first_only_where_that_keeps_the_first() {
        let columns = [Column::left("local", 1), Column::left("mode", 0), Column::right("RTT", 0)];
        let rows = [["10.0.0.1:80", "fallen back", "1 ms"].map(String::from).to_vec()];
        let at = |width| fitted_without("RTT", &columns, &rows, Some(width));
        assert_eq!(at(30), "local        mode          RTT\n10.0.0.1:80  fallen back  1 ms\n");
        assert_eq!(at(29), "local        mode\n10.0.0.1:80  fallen back\n");
        assert_eq!(at(23), "mode          RTT\nfallen back  1 ms\n", "nothing is gained");
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        assert_eq!(wrapped("one two three", Some(9)), "one two\n  three\n");
        assert_eq!(wrapped("one two three", None), "one two three\n");
    }
}
