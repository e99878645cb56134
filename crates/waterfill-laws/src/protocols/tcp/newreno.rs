//! TCP NewReno: a Reno that stays in recovery until all losses of a window are repaired.
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
//! [`NewReno`]: the host's `Retransmission::NewReno`. A partial acknowledgement means that the packet after it is lost
//! too, so a window with n losses takes n RTTs and one halving.
//!
//! # Parameters
//! Those of [`reno`].
//!
//! # Readings and deviations
//! The careful variant of RFC 6582 §4: after a time-out no fast retransmit until all that was outstanding has arrived.
//! The window does not deflate and inflate: what is in flight is counted less a packet for each duplicate, which is the same.
//!
//! # Validation
//! The simulator's recovery tests; side by side with ns-3's NewReno in bench/ns3.
//!
//! # References
//! RFC 6582, "The NewReno Modification to TCP's Fast Recovery Algorithm", 2012.

use crate::protocol::{Ack, Connection, Event, Host, Reduction, Retransmission};
use crate::protocols::tcp::reno::{self, Aimd};
use crate::protocols::tcp::{TcpLaw, Window};
use crate::units::Instant;

/// Law of TCP NewReno.
#[derive(Clone, Debug)]
pub struct NewReno(Aimd);

impl TcpLaw for NewReno {
    const NAME: &'static str = "newreno";
    const SUMMARY: &'static str = "NewReno: a partial acknowledgement means the next loss (RFC 6582)";
    const HOST: Host = Host { retransmission: Retransmission::NewReno, reduction: Reduction::Law, ..Host::TCP };
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
