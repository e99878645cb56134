//! Text of a configuration file, and the positions of its keys and values.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::daemon::options::Wrong;
use crate::daemon::options::names::unknown;

/// Text of a configuration file, with the file's name.
#[derive(Debug)]
pub(super) struct Document<'t> {
    pub(super) name: String,
    pub(super) text: &'t str,
}

/// Serde's words for types, each with a phrase that users of the file know.
const SERDE_WORDS: [(&str, &str); 4] = [
    ("path string", "a path in quotes"),
    ("a boolean", "true or false"),
    ("a sequence", "an array"),
    ("a map", "a table"),
];

/// A key or value of the file, with its position.
struct FilePlace {
    /// Keys from the top level down, without the indices of tables in arrays.
    path: String,
    /// Keys from the top level down, with indices, such as `router.1.rate`.
    exact: String,
    key: Range<usize>,
    value: Range<usize>,
    is_date: bool,
}

impl Document<'_> {
    /// Refuses dates. No key takes a date, but the parser would accept a date as a table.
    pub(super) fn check_dates(&self) -> Result<(), String> {
        let Some(date) = self.places().into_iter().find(|place| place.is_date) else { return Ok(()) };
        let what = format!("{} {}: must not be a date", date.path, self.shown(&date.value));
        Err(self.at_line(date.value.start, &what))
    }

    /// Converts a parser's error into one sentence with file, line, key, problem and advice.
    pub(super) fn explain(&self, error: &toml::de::Error) -> String {
        let message = error.message().trim();
        let Some(span) = error.span() else { return format!("{}: {message}", self.name) };
        let places = self.places();
        let of_key = places.iter().find(|place| place.key == span);
        let of_value = places.iter().find(|place| place.value == span);
        let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        let what = if let (true, Some((word, known))) = (message.starts_with("unknown field"), words.split_first()) {
            let path = of_key.map_or(*word, |place| &place.path);
            format!("{path}: {}", unknown("key", word, known.iter().copied()))
        } else if let (true, Some((word, known))) = (message.starts_with("unknown variant"), words.split_first()) {
            let path = of_value.map_or("", |place| &place.path);
            format!("{path} \"{word}\": {}", unknown("value", word, known.iter().copied()))
        } else if let (true, Some(missing)) = (message.starts_with("missing field"), words.first()) {
            let path = of_value.map_or_else(String::new, |place| format!("{}: ", place.path));
            let example = if *missing == "rate" { "; add rate = \"940 Mbit/s\"" } else { "" };
            format!("{path}`{missing}` is missing{example}")
        } else if let (Some(place), true) = (of_value, message.contains("literal string")) {
            let shown = self.shown(&span);
            format!("{} {shown}: put the value in quotes, such as \"{shown}\"", place.path)
        } else if let Some(place) = of_value {
            // "invalid type: integer `5`, expected a boolean"
            let why = message.rsplit_once(", expected").map_or_else(
                || message.to_owned(),
                |(_, wanted)| {
                    let wanted = wanted.trim();
                    let plain = SERDE_WORDS.iter().find(|(word, _)| *word == wanted);
                    format!("must be {}", plain.map_or(wanted, |(_, plain)| *plain))
                },
            );
            format!("{} {}: {why}", place.path, self.shown(&span))
        } else if message == "duplicate key" {
            let key = self.text.get(span.clone()).unwrap_or_default().trim();
            let named = |place: &&FilePlace| place.key.start < span.start && place.path.rsplit('.').next() == Some(key);
            let first = places.iter().filter(named).max_by_key(|place| place.key.start);
            format!("{}: duplicate key", first.map_or(key, |place| &place.path))
        } else {
            message.to_owned()
        };
        self.at_line(span.start, &what)
    }

    /// Returns the error sentence about a setting, with file and line. `table` is a path such as `router.1`.
    pub(super) fn at(&self, table: &str, wrong: &Wrong) -> String {
        let name = table.split('.').next().unwrap_or_default();
        let text = format!("{name}.{wrong}");
        let places = self.places();
        let mut key = wrong.key.as_str();
        loop {
            // A table that is not in an array has no position in its path.
            for exact in [format!("{table}.{key}"), format!("{name}.{key}")] {
                if let Some(place) = places.iter().find(|place| place.exact == exact) {
                    return self.at_line(place.key.start, &text);
                }
            }
            // The table, where a default is wrong with the rest.
            match key.rsplit_once('.') {
                Some((parent, _)) => key = parent,
                None => break,
            }
        }
        let place = [table, name].iter().find_map(|exact| places.iter().find(|place| place.exact == *exact));
        place.map_or_else(|| format!("{}: {text}", self.name), |place| self.at_line(place.key.start, &text))
    }

    fn at_line(&self, offset: usize, text: &str) -> String {
        let line = self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1;
        format!("{}:{line}: {text}", self.name)
    }

    /// Returns the text of a value, shortened to 40 characters.
    fn shown(&self, span: &Range<usize>) -> String {
        let text = self.text.get(span.clone()).unwrap_or_default();
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.chars().count() <= 40 { line } else { line.chars().take(37).chain("...".chars()).collect() }
    }

    fn places(&self) -> Vec<FilePlace> {
        let mut places = Vec::new();
        let (table, _) = DeTable::parse_recoverable(self.text);
        add_table(&mut places, table.get_ref(), "", "");
        places
    }
}

fn add_table(places: &mut Vec<FilePlace>, table: &DeTable<'_>, path: &str, exact: &str) {
    let join = |before: &str, key: &str| if before.is_empty() { key.to_owned() } else { format!("{before}.{key}") };
    for (key, value) in table {
        let (path, exact) = (join(path, key.get_ref()), join(exact, key.get_ref()));
        add_value(places, value, &path, &exact, &key.span());
    }
}

fn add_value(places: &mut Vec<FilePlace>, value: &Spanned<DeValue<'_>>, path: &str, exact: &str, key: &Range<usize>) {
    let is_date = matches!(value.get_ref(), DeValue::Datetime(_));
    places.push(FilePlace { path: path.into(), exact: exact.into(), key: key.clone(), value: value.span(), is_date });
    match value.get_ref() {
        DeValue::Table(table) => add_table(places, table, path, exact),
        DeValue::Array(array) => {
            for (i, one) in array.iter().enumerate() {
                add_value(places, one, path, &format!("{exact}.{i}"), &one.span());
            }
        }
        _ => {}
    }
}
