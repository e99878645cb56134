//! TCP SACK: Reno's window with selective acknowledgements (RFC 6675), as used in the papers' comparisons.
//!
//! # Law
//! Reno's window: `[rfc5681:eq3]`, `[rfc5681:eq4]` in [`reno`].
//!
//! # Symbols
//! Those of [`reno`].
//!
//! # Header
//! None.
//!
//! # Router
//! None.
//!
//! # Source
//! [`Sack`]: the host's `Host::TCP_TODAY`, that is selective acknowledgements with RACK-TLP (RFC 8985) and the proportional
//! rate reduction of RFC 9937.
//!
//! # Parameters
//! Those of [`reno`].
//!
//! # Readings and deviations
//! RFC 6675 halves at once and then waits for the pipe to drain; RFC 9937, which replaced that, spreads the same halving
//! over the recovery.
//!
//! # Validation
//! The simulator's recovery tests and response tables.
//!
//! # References
//! RFC 6675, "A Conservative Loss Recovery Algorithm Based on SACK for TCP", 2012. RFC 9937, "Proportional Rate Reduction
//! for TCP", 2025.

use crate::protocol::{Ack, Connection, Event, Host};
use crate::protocols::tcp::reno::{self, Aimd};
use crate::protocols::tcp::{TcpLaw, Window};
use crate::units::Instant;

/// Law of TCP SACK.
#[derive(Clone, Debug)]
pub struct Sack(Aimd);

impl TcpLaw for Sack {
    const NAME: &'static str = "sack";
    const SUMMARY: &'static str = "SACK: Reno's window over selective acknowledgements (RFC 6675, RFC 9937)";
    const HOST: Host = Host::TCP_TODAY;
    type Params = reno::Params;

    fn new(params: &reno::Params, _: &Connection) -> Self {
        Self(Aimd::new(params))
    }
    fn avoid(&mut self, window: &mut Window, _: &Ack<()>, acked: f64) {
        self.0.avoid(window, acked);
    }
    fn reduced(&mut self, window: &Window, _: Instant, _: Event) -> f64 {
        self.0.reduced(window)
    }
}
