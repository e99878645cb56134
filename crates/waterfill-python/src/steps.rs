//! Conversion of step logs to columns for Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::json;
use waterfill_laws::registry::ProtocolId;
use waterfill_laws::state::Names;
use waterfill_laws::steps::{CALLS, LISTS, ON_EVENT, ON_LOST, Rows, StepLog};

use crate::convert::to_python;

/// Returns the protocol with this name; `None` without a name.
pub(crate) fn law(name: Option<&str>) -> PyResult<Option<ProtocolId>> {
    let find = |name| ProtocolId::by_name(name).ok_or_else(|| PyValueError::new_err("must be a law's name"));
    name.map(find).transpose()
}

/// Converts a log to columns of little-endian bytes, with the names of its laws, calls and words.
///
/// Columns are `u32`, except for the words and the time, which are `u64`. The result includes the types of the words by
/// law, part and call, and the number of steps that were not logged.
pub(crate) fn log<'py>(py: Python<'py>, log: &StepLog) -> PyResult<Bound<'py, PyDict>> {
    let dict = log.with_rows(|rows| columns(py, rows))?;
    let names = |names: &Names| names.iter().map(|(name, kind)| json!([name, kind.name()])).collect::<Vec<_>>();
    let fields: Vec<_> = log
        .fields()
        .iter()
        .map(|((id, part, call), lists)| {
            let of = LISTS.iter().zip(lists).map(|(list, fields)| (list.to_string(), names(fields).into()));
            let lists: serde_json::Map<String, serde_json::Value> = of.collect();
            json!({"law": id.info().name, "part": part.name(), "call": call_name(*call), "lists": lists})
        })
        .collect();
    dict.set_item("fields", to_python(py, &fields)?)?;
    let laws: Vec<_> = ProtocolId::ALL.iter().map(|id| id.info().name).collect();
    dict.set_item("laws", laws)?;
    dict.set_item("calls", CALLS.iter().chain([&ON_EVENT, &ON_LOST]).copied().collect::<Vec<_>>())?;
    dict.set_item("dropped", log.dropped())?;
    Ok(dict)
}

fn call_name(call: u32) -> &'static str {
    CALLS.get(call as usize).copied().unwrap_or(ON_EVENT)
}

fn columns<'py>(py: Python<'py>, rows: &Rows) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, column) in [("law", &rows.law), ("part", &rows.part), ("entity", &rows.entity), ("call", &rows.call)] {
        dict.set_item(name, bytes(py, column, u32::to_le_bytes)?)?;
    }
    dict.set_item("time", bytes(py, &rows.time, u64::to_le_bytes)?)?;
    for (name, list) in LISTS.iter().zip(&rows.lists) {
        let ends = bytes(py, &list.ends, u32::to_le_bytes)?;
        dict.set_item(name, (ends, bytes(py, &list.words, u64::to_le_bytes)?))?;
    }
    Ok(dict)
}

fn bytes<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    column: &[T],
    to: impl Fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, column.len() * N, |out| {
        for (place, &x) in out.chunks_exact_mut(N).zip(column) {
            place.copy_from_slice(&to(x));
        }
        Ok(())
    })
}
