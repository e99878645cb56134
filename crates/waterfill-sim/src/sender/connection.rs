//! Connections that several flows use one after the other, as messages between two hosts do.

use waterfill_laws::base_rtt::WindowedMin;
use waterfill_laws::registry::AnySource;
use waterfill_laws::units::{Duration, Instant};

use super::{Phase, Sender};
use crate::limits::Limit;

/// State of a connection that outlasts a flow: the law and the measured RTTs.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    law: AnySource,
    smoothed: Option<(Duration, Duration)>,
    base_rtt: Duration,
    recent_rtts: Option<Box<WindowedMin>>,
    latest_rtt: Duration,
    echoed: Instant,
    next_send: Instant,
    /// Time at which the last packet left, if all data has been acknowledged.
    quiet_since: Option<Instant>,
}

impl Sender {
    /// Returns the connection's state. Acknowledgements that are still under way are not in it.
    #[cold]
    pub(crate) fn connection(&mut self) -> Connection {
        let quiet = self.recovery.unacknowledged() == 0;
        Connection {
            law: self.law.clone(),
            smoothed: self.smoothed,
            base_rtt: self.base_rtt,
            recent_rtts: self.recent_rtts.clone(),
            latest_rtt: self.latest_rtt,
            echoed: self.echoed,
            next_send: self.next_send,
            quiet_since: quiet.then(|| self.limits.end_pause()).filter(|&since| since != Instant::NEVER),
        }
    }

    /// Makes this flow, at its start, the next user of the connection of another sender.
    #[cold]
    pub(crate) fn continue_on(&mut self, before: u32) {
        self.rare.get_or_insert_default().continues = Some(before);
    }

    /// Returns, once at the flow's start, the sender whose connection it goes on to use.
    #[inline]
    pub(crate) fn take_connection_due(&mut self, now: Instant) -> Option<u32> {
        let due = self.phase == Phase::Closed && self.spec.start <= now && now < self.spec.stop;
        self.rare.as_mut().filter(|_| due).and_then(|rare| rare.continues.take())
    }

    /// Opens the flow on a connection, without a handshake and without a first flight. A connection on which no answer has
    /// arrived has nothing to pass on.
    ///
    /// The law learns of a pause that is longer than the timeout, as after a pause of an application.
    #[cold]
    pub(crate) fn resume(&mut self, now: Instant, connection: Connection) {
        let Connection { law, smoothed, base_rtt, recent_rtts, latest_rtt, echoed, next_send, quiet_since } =
            connection;
        if smoothed.is_none() {
            return;
        }
        (self.law, self.smoothed, self.base_rtt) = (law, smoothed, base_rtt);
        (self.recent_rtts, self.latest_rtt, self.echoed) = (recent_rtts, latest_rtt, echoed);
        (self.phase, self.opened, self.next_send) = (Phase::Open, now, next_send.max(now));
        self.rto_deadline = Instant::NEVER;
        self.window_packets = self.law_window();
        if let Some(since) = quiet_since {
            self.limits.start_pause(since);
        }
        self.limit_by(now, Limit::Window);
        self.forget_first_flight();
    }
}
