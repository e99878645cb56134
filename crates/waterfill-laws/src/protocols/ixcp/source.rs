//! Source law of iXCP.

use crate::protocol::{Ack, Connection, Event, SendLimit, Sending};
use crate::protocols::xcp;
use crate::state::StateFields;
use crate::units::Instant;

use super::header::ACCESS;
use super::{Echo, Header, IXcp, Params};

/// XCP's source, which also names the flow's bottleneck in packets.
#[derive(Clone, Debug)]
pub struct Source {
    bottleneck: u32,
    inner: xcp::Source,
}

impl crate::protocol::Source<IXcp> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        Self { bottleneck: ACCESS, inner: xcp::Source::new(&params.xcp(), connection) }
    }

    fn stamp(&mut self, sending: &Sending) -> Header {
        Header { congestion: self.inner.stamp(sending), bottleneck: self.bottleneck, next_bottleneck: ACCESS }
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        if ack.echo.next_bottleneck != ACCESS {
            self.bottleneck = ack.echo.next_bottleneck;
        }
        self.inner.on_ack(&ack.with_echo(ack.echo.congestion));
    }

    fn on_event(&mut self, _now: Instant, event: Event) {
        self.inner.on_event(event);
    }

    fn limit(&self) -> SendLimit {
        self.inner.limit()
    }

    fn state(&self, fields: &mut StateFields) {
        fields.put("bottleneck", &self.bottleneck);
        self.inner.list_state(fields);
    }
}
