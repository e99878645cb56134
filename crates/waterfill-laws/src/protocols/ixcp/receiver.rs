//! Receiver law of iXCP.

use crate::protocol::Received;
use crate::protocols::xcp;
use crate::state::StateFields;
use crate::units::Instant;

use super::header::ACCESS;
use super::{Echo, Header, IXcp, Params};

/// XCP's receiver, which also echoes the next bottleneck.
#[derive(Clone, Debug)]
pub struct Receiver {
    next_bottleneck: u32,
    inner: xcp::Receiver,
}

impl crate::protocol::Receiver<IXcp> for Receiver {
    fn new(params: &Params) -> Self {
        Self { next_bottleneck: ACCESS, inner: xcp::Receiver::new(&params.xcp()) }
    }

    fn on_data(&mut self, received: &Received<Header>) {
        self.next_bottleneck = received.header.next_bottleneck;
        self.inner.on_data(&received.with_header(received.header.congestion));
    }

    fn echo(&mut self, now: Instant) -> Echo {
        Echo { congestion: self.inner.echo(now), next_bottleneck: self.next_bottleneck }
    }

    fn state(&self, fields: &mut StateFields) {
        fields.put("next_bottleneck", &self.next_bottleneck);
        self.inner.list_state(fields);
    }
}
