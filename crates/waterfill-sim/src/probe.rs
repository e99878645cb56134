//! Time series: states sampled at a fixed interval into columns.

use waterfill_laws::protocol::Probe;
use waterfill_laws::registry::ProtocolId;

/// A table of real columns; NaN is "no value".
#[derive(Clone, Debug, Default)]
pub struct Series {
    names: Vec<String>,
    columns: Vec<Vec<f64>>,
    /// Where each law's signals stand: protocol, signal, column.
    signals: Vec<(ProtocolId, &'static str, usize)>,
}

impl Series {
    /// A table with these columns, followed by the signals of these protocols.
    #[must_use]
    pub fn new(fixed: &[&str], protocols: &[ProtocolId]) -> Self {
        let mut names: Vec<String> = fixed.iter().map(ToString::to_string).collect();
        let mut signals = Vec::new();
        for &id in protocols {
            for signal in id.info().signals {
                signals.push((id, signal.name, names.len()));
                names.push(format!("{}.{}", id.info().name, signal.name));
            }
        }
        Self { columns: vec![Vec::new(); names.len()], names, signals }
    }

    /// Appends a row: the fixed columns' values, the rest NaN.
    pub fn push(&mut self, fixed: &[f64]) {
        for (i, column) in self.columns.iter_mut().enumerate() {
            column.push(fixed.get(i).copied().unwrap_or(f64::NAN));
        }
    }

    /// Where a law of this protocol fills in its signals of the newest row.
    pub fn newest(&mut self, id: ProtocolId) -> Newest<'_> {
        Newest { series: self, id }
    }

    /// Column names, in order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Columns, in the names' order, all of one length.
    #[must_use]
    pub fn columns(&self) -> &[Vec<f64>] {
        &self.columns
    }
}

/// The newest row of a series, for one protocol.
#[derive(Debug)]
pub struct Newest<'a> {
    series: &'a mut Series,
    id: ProtocolId,
}

impl Probe for Newest<'_> {
    fn record(&mut self, signal: &'static str, value: f64) {
        let Newest { series, id } = self;
        let found = series.signals.iter().find(|(p, s, _)| p == id && *s == signal);
        debug_assert!(found.is_some(), "{signal} is not among the signals of {id:?}");
        if let Some(&(_, _, column)) = found {
            if let Some(cell) = series.columns[column].last_mut() {
                *cell = value;
            }
        }
    }
}
