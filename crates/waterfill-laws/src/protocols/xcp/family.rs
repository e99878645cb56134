//! Protocols that use XCP's router, and their changes to this router.

use super::{Header, Params};
use crate::protocol::{LinkView, Protocol};
use crate::state::StateFields;
use crate::units::Rate;

/// XCP, or a protocol that uses XCP's router with a rule of its own.
pub trait Family: Protocol {
    /// Changes to XCP's router.
    type Rule: Rule<Header = Self::Header, Params = Self::Params>;
}

/// Changes that a protocol based on XCP makes to XCP's router. By default there are none.
pub trait Rule: Clone + std::fmt::Debug {
    /// Data header of the protocol, which contains the header of XCP.
    type Header;
    /// Parameters of the protocol.
    type Params;

    /// Creates the rule of one link direction.
    fn new(params: &Self::Params, link: &LinkView) -> Self;
    /// Returns the XCP parameters inside the protocol's parameters.
    fn xcp(params: &Self::Params) -> Params;
    /// Returns the XCP header inside the protocol's header.
    fn congestion(header: &Self::Header) -> &Header;
    /// Returns the XCP header inside the protocol's header, as a mutable reference.
    fn congestion_mut(header: &mut Self::Header) -> &mut Header;
    /// Returns true if a packet with this header takes part in shuffling.
    fn is_local(&self, _header: &Self::Header) -> bool {
        true
    }
    /// Returns a packet's degree of participation in shuffling, from 0 to 1. Each pair holds the amount still available
    /// and the amount due.
    fn part(&self, _gain: (Rate, Rate), _loss: (Rate, Rate)) -> f64 {
        1.0
    }
    /// Writes the protocol's own fields into the header of a packet whose feedback this router lowered. `full` means
    /// that all capacity is in use.
    fn mark_lowered(&self, _header: &mut Self::Header, _full: bool) {}
    /// Counts a departing packet with its X; `lowered` is true if this router lowered the packet's feedback.
    fn count_departure(&mut self, _x: f64, _lowered: bool) {}
    /// Ends an interval that lasted `lasted` seconds; returns the factor for positive spare bandwidth.
    fn end_interval(&mut self, _lasted: f64) -> f64 {
        1.0
    }
    /// Lists the rule's state for step logs.
    fn list_state(&self, _fields: &mut StateFields) {}
}

/// Implements the first items of [`Rule`] for a protocol with XCP's header and parameters.
macro_rules! as_xcp {
    () => {
        type Header = $crate::protocols::xcp::Header;
        type Params = $crate::protocols::xcp::Params;

        fn new(_params: &Self::Params, _link: &$crate::protocol::LinkView) -> Self {
            Self::default()
        }
        fn xcp(params: &Self::Params) -> Self::Params {
            params.clone()
        }
        fn congestion(header: &Self::Header) -> &Self::Header {
            header
        }
        fn congestion_mut(header: &mut Self::Header) -> &mut Self::Header {
            header
        }
    };
}
pub(in crate::protocols) use as_xcp;

/// Rule of XCP, which changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Draft;

impl Rule for Draft {
    as_xcp!();
}
