//! Handling of Python's signals and checks within a run that has released the GIL.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use waterfill_network::Watch;

use crate::memory;

/// Exception that stopped a run, kept until it is raised.
#[derive(Default)]
pub(crate) struct Interruption(Mutex<Option<PyErr>>);

impl Interruption {
    /// Returns a watch that runs signal handlers, checks the free memory and calls `check`. An exception from any of
    /// them stops the run.
    pub(crate) fn watch(check: Option<Py<PyAny>>) -> (Arc<Self>, Watch) {
        let interruption = Arc::<Self>::default();
        let kept = Arc::clone(&interruption);
        let watch = Watch::new(move || {
            let asked = Python::attach(|py| {
                py.check_signals()?;
                memory::leaves_reserve().map_err(PyValueError::new_err)?;
                check.as_ref().map_or(Ok(()), |check| check.call0(py).map(drop))
            });
            asked.is_err_and(|error| {
                *kept.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                true
            })
        });
        (interruption, watch)
    }

    /// Raises the exception that stopped the run, once.
    pub(crate) fn check(&self) -> PyResult<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}
