//! A fixed window without a law.
//!
//! # Law
//! None. The window stays what the scenario says. It is the reference for the cost of the simulator itself, and for queues
//! that no law empties.
//!
//! # Symbols
//! | RFC 6928 | here | unit |
//! |---|---|---|
//! | IW | `packets` | packets |
//! | IW × packet size | `window` | bytes |
//!
//! # Header
//! None.
//!
//! # Router
//! None.
//!
//! # Source
//! [`FixedWindow`]: no arithmetic after the start; not paced.
//!
//! # Parameters
//! [`Params`]: the first window of RFC 6928 by default.
//!
//! # Readings and deviations
//! Losses do not change the window: that reaction is the law which is left out here. After a timeout the host sends one
//! packet until it is acknowledged, as under any law.
//!
//! # Validation
//! One flow alone gets `window / RTT` up to the link's rate, and the rest of its window is queued:
//! `packets_in_flight_fill_the_pipe_and_then_the_queue` of the simulator.
//!
//! # References
//! RFC 6928, "Increasing TCP's Initial Window", 2013, for the default.

use crate::params::{ParamError, require};
use crate::protocol::{Ack, Connection, EchoLast, Host, Info, Protocol, ProtocolKind, SendLimit, Sending, Source};
use crate::units::Volume;

crate::params! {
    /// Parameters of a fixed window.
    pub struct Params {
        /// Window in packets of the scenario's packet size.
        packets: f64 = 10.0, "RFC 6928 for the default";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require((1.0..=1e9).contains(&self.packets), "packets", "a number from 1 to 1e9")
    }
}

/// The protocol `window`.
#[derive(Debug)]
pub struct Window;

impl Protocol for Window {
    const INFO: Info = Info {
        name: "window",
        summary: "a fixed window and no law: the reference for the engine",
        kind: ProtocolKind::EndToEnd,
        needs_packets: false,
        paced: false,
        host: Host::EXPLICIT,
        signals: &[],
    };
    type Params = Params;
    type Header = ();
    type Echo = ();
    type Router = ();
    type Receiver = EchoLast<()>;
    type Source = FixedWindow;

    fn target(_: &Params) -> f64 {
        1.0
    }
}

/// Source whose window never changes.
#[derive(Clone, Debug)]
pub struct FixedWindow {
    window: Volume,
}

impl Source<Window> for FixedWindow {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self { window: params.packets * connection.packet }
    }
    fn stamp(&mut self, _: &Sending) {}
    fn on_ack(&mut self, _: &Ack<()>) {}
    fn limit(&self) -> SendLimit {
        SendLimit { window: Some(self.window), pacing: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::connection;

    /// The window is the parameter's number of packets, before and after an acknowledgement.
    #[test]
    fn the_window_never_changes() {
        let mut source = FixedWindow::new(&Params { packets: 7.0 }, &connection());
        let expected = SendLimit { window: Some(7.0 * connection().packet), pacing: None };
        assert_eq!(source.limit(), expected);
        source.on_ack(&Ack::new(crate::units::Instant::ZERO, (), crate::units::Duration::ZERO));
        assert_eq!(source.limit(), expected);
    }
}
