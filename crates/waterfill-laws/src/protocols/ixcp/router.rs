//! Router law of iXCP: XCP's, with shuffling only among the packets that name this link.

use crate::protocol::LinkView;
use crate::protocols::xcp;
use crate::state::StateFields;
use crate::units::Rate;

use super::header::{ACCESS, identifier};
use super::params::{Claim, Shuffle};
use super::{Header, IXcp, Params};

/// The router of one link direction.
pub type Router = xcp::Router<Names>;

impl xcp::Family for IXcp {
    type Rule = Names;
}

/// iXCP's changes to XCP's router: packets name the link that limits their flow.
#[derive(Clone, Debug)]
pub struct Names {
    id: u32,
    claim: Claim,
    shuffle: Shuffle,
}

impl xcp::Rule for Names {
    type Header = Header;
    type Params = Params;

    fn new(params: &Params, link: &LinkView) -> Self {
        Self { id: identifier(link), claim: params.claim, shuffle: params.shuffle }
    }

    fn xcp(params: &Params) -> xcp::Params {
        params.xcp()
    }

    fn congestion(header: &Header) -> &xcp::Header {
        &header.congestion
    }

    fn congestion_mut(header: &mut Header) -> &mut xcp::Header {
        &mut header.congestion
    }

    fn is_local(&self, header: &Header) -> bool {
        header.bottleneck == self.id
    }

    fn part(&self, gain: (Rate, Rate), loss: (Rate, Rate)) -> f64 {
        self.shuffle.part(gain, loss)
    }

    /// `[ixcp-2007:3]` Writes this link, or the sender's access link, as next bottleneck into a packet whose feedback
    /// this router has lowered.
    fn mark_lowered(&self, header: &mut Header, full: bool) {
        header.next_bottleneck = if self.claim == Claim::LeastFeedback || full { self.id } else { ACCESS };
    }

    fn list_state(&self, fields: &mut StateFields) {
        crate::state_of!(fields, self: id);
    }
}

impl Shuffle {
    /// `[ixcp-2007:2.1]` Returns a packet's degree of participation in shuffling, from 0 to 1. Paired shuffling takes
    /// the smaller of the remaining fractions of gains and losses.
    pub(super) fn part(self, gain: (Rate, Rate), loss: (Rate, Rate)) -> f64 {
        match self {
            Self::Paired => part_left(gain).min(part_left(loss)),
            Self::Draft => 1.0,
        }
    }
}

/// Returns the fraction of a sum that is still left to allocate; 1 if the sum is zero.
fn part_left((given, due): (Rate, Rate)) -> f64 {
    if due > Rate::ZERO { given / due } else { 1.0 }
}
