//! Time series of states that are sampled at a fixed interval into columns.

use waterfill_laws::protocol::Probe;
use waterfill_laws::registry::ProtocolId;

use crate::network::Network;

/// Fixed columns of the flow series, in front of the signals of the flows' laws.
pub const FLOW_COLUMNS: [&str; 7] =
    ["time_s", "flow", "rate_bps", "window_bytes", "pacing_bps", "rtt_s", "in_flight_bytes"];
/// Fixed columns of the link series, in front of the columns of the cohabitation module and the router laws' signals.
pub const LINK_COLUMNS: [&str; 8] =
    ["time_s", "link", "utilization", "queue_bytes", "queue_max_bytes", "drops", "marks", "lost"];
/// Column of a link's mean capacity since the last sample. The link series has it if any link changes over time.
pub const CAPACITY_COLUMN: &str = "capacity_bps";
/// Column of the share of the time since the last sample in which a pause kept a link from sending. The link series has it
/// if any link can be paused.
pub const PAUSED_COLUMN: &str = "paused";
/// Columns of the cohabitation module. The link series has them if any link runs the module.
pub const COHABIT_COLUMNS: [&str; 6] = [
    "cohabit_drop_probability",
    "cohabit_explicit_flows",
    "cohabit_tcp_flows",
    "cohabit_drops",
    "cohabit_inspected",
    "cohabit_operations",
];
/// Columns of the series of traffic sources.
pub const TRAFFIC_COLUMNS: [&str; 4] = ["time_s", "traffic", "rate_bps", "flows"];
/// Columns of the table of flows that traffic sources have started.
///
/// `index` counts the flows of one source, `route` its routes, and `completed_s` is the time at which the receiver had
/// the last byte.
pub const ARRIVAL_COLUMNS: [&str; 6] = ["traffic", "index", "route", "start_s", "size_bytes", "completed_s"];

/// Columns of the messages that applications have written: `flow` indexes the summary's flows, `index` counts the messages of
/// the flow from zero.
pub const MESSAGE_COLUMNS: [&str; 5] = ["flow", "index", "written_s", "size_bytes", "completed_s"];

/// Returns the name of the column of a law's signal.
pub(crate) fn signal_column(law: &str, signal: &str) -> String {
    format!("{law}_{signal}")
}

/// Type of the numbers in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Indexes of flows, links or traffic sources.
    U32,
    /// Counts.
    U64,
    /// Real numbers, in which NaN means "no value".
    F64,
}

impl ColumnType {
    /// Returns the type of the column with this name.
    #[must_use]
    pub fn of(column: &str) -> Self {
        match column {
            "flow" | "link" | "traffic" => Self::U32,
            "drops" | "marks" | "lost" | "index" | "size_bytes" => Self::U64,
            _ => Self::F64,
        }
    }

    /// Returns the name of the type: `u32`, `u64` or `f64`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F64 => "f64",
        }
    }
}

/// Table of columns of real numbers, in which NaN means "no value".
#[derive(Clone, Debug, Default)]
pub struct Series {
    names: Vec<String>,
    columns: Vec<Vec<f64>>,
    /// Column index of each law's signal, by protocol and signal.
    signals: Vec<(ProtocolId, String, usize)>,
}

impl Series {
    /// Creates an empty table with fixed columns.
    #[must_use]
    pub fn new(fixed: &[&str]) -> Self {
        let names: Vec<String> = fixed.iter().map(ToString::to_string).collect();
        Self { columns: vec![Vec::new(); names.len()], names, signals: Vec::new() }
    }

    /// Creates an empty table with fixed columns, followed by the signals of these protocols of a network.
    #[must_use]
    pub fn with_signals(fixed: &[&str], network: &Network, protocols: &[ProtocolId]) -> Self {
        let mut series = Self::new(fixed);
        for &id in protocols {
            for signal in network.signals_of(id) {
                series.signals.push((id, signal.to_owned(), series.names.len()));
                series.names.push(signal_column(network.name_of(id), signal));
                series.columns.push(Vec::new());
            }
        }
        series
    }

    /// Appends a row with values for the fixed columns. All other columns receive NaN.
    pub fn push(&mut self, fixed: &[f64]) {
        for (i, column) in self.columns.iter_mut().enumerate() {
            column.push(fixed.get(i).copied().unwrap_or(f64::NAN));
        }
    }

    /// Returns a probe that records a law's signals in the newest row.
    pub fn newest(&mut self, id: ProtocolId) -> Newest<'_> {
        Newest { series: self, id }
    }

    /// Returns the names of the columns, in order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the columns in the order of their names. All columns have the same length.
    #[must_use]
    pub fn columns(&self) -> &[Vec<f64>] {
        &self.columns
    }
}

/// Newest row of a series, in which one protocol's laws record their signals.
#[derive(Debug)]
pub struct Newest<'a> {
    series: &'a mut Series,
    id: ProtocolId,
}

impl Probe for Newest<'_> {
    #[allow(clippy::indexing_slicing, reason = "the column of a signal was counted by `Series::new`")]
    fn record(&mut self, signal: &str, value: f64) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use waterfill_laws::units::Duration;

    #[test]
    fn every_column_has_a_name_of_its_own_without_a_dot() {
        let network = Network::builder(Duration::from_secs(1.0)).unchecked();
        let of_links = [&LINK_COLUMNS[..], &COHABIT_COLUMNS, &[CAPACITY_COLUMN, PAUSED_COLUMN]].concat();
        for fixed in [&FLOW_COLUMNS[..], &of_links] {
            let series = Series::with_signals(fixed, &network, ProtocolId::ALL);
            let mut names = series.names().to_vec();
            assert!(names.len() > fixed.len());
            assert_eq!(names.iter().find(|name| name.contains('.')), None);
            names.sort();
            names.dedup();
            assert_eq!(names.len(), series.names().len());
        }
    }
}
