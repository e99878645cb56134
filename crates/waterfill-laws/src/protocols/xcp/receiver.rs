//! Receiver law of XCP.

use super::header::{FEEDBACK_MAX, quantise};
use super::{Echo, FeedbackAt, Form, Header, Params};
use crate::protocol::{Protocol, Received};
use crate::state::StateFields;
use crate::units::Instant;

/// Receiver that returns the feedback, summed over the packets of one acknowledgement.
#[derive(Clone, Debug)]
pub struct Receiver {
    form: Form,
    apply: FeedbackAt,
    /// Feedback since the last acknowledgement, in bytes (in byte/s with draft-falk's header).
    fresh: f64,
    /// Sum of all changes of the window in bytes (XCP-r).
    total: f64,
}

impl Receiver {
    pub(in crate::protocols) const fn new(params: &Params) -> Self {
        Self { form: params.header, apply: params.feedback_at, fresh: 0.0, total: 0.0 }
    }

    pub(in crate::protocols) fn on_data(&mut self, received: &Received<Header>) {
        let header = &received.header;
        let Some(rtt) = header.rtt() else { return };
        if header.feedback(rtt).is_none() {
            return; // no router on the path
        }
        let (change, bytes) = match *header {
            Header::Katabi { feedback, .. } => (f64::from(feedback), f64::from(feedback)),
            Header::Falk { delta_throughput, .. } => (f64::from(delta_throughput), f64::from(delta_throughput) * rtt),
        };
        self.fresh = (self.fresh + change).clamp(-FEEDBACK_MAX, FEEDBACK_MAX);
        self.total = (self.total + bytes).clamp(-FEEDBACK_MAX, FEEDBACK_MAX);
    }

    pub(in crate::protocols) fn list_state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: fresh, total);
    }

    pub(in crate::protocols) fn echo(&mut self, _now: Instant) -> Echo {
        let fresh = std::mem::take(&mut self.fresh);
        match (self.apply, self.form) {
            (FeedbackAt::Receiver, _) => Echo::Total(quantise(self.total)),
            (FeedbackAt::Source, Form::Katabi) => Echo::Window(quantise(fresh)),
            (FeedbackAt::Source, Form::Falk) => Echo::Throughput(fresh.round() as i32),
        }
    }
}

impl<P: Protocol<Params = Params, Header = Header, Echo = Echo>> crate::protocol::Receiver<P> for Receiver {
    fn new(params: &Params) -> Self {
        Self::new(params)
    }

    fn on_data(&mut self, received: &Received<Header>) {
        self.on_data(received);
    }

    fn echo(&mut self, now: Instant) -> Echo {
        self.echo(now)
    }

    fn state(&self, fields: &mut StateFields) {
        self.list_state(fields);
    }
}
