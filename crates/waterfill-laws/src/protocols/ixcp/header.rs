//! Headers of iXCP.

use crate::protocol::{LinkView, Wire};
use crate::protocols::xcp;

/// Identifier of the sender's own access link.
pub(super) const ACCESS: u32 = 0;

/// Returns a link's identifier on the wire.
pub(super) const fn identifier(link: &LinkView) -> u32 {
    // The last of 2³² links shares the identifier of the one before it, which is better than the access's.
    link.id.saturating_add(1)
}

/// XCP's header, extended by the identifiers of two links.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Header {
    /// XCP's header.
    pub congestion: xcp::Header,
    /// bottleneckId: identifier of the link that limits the flow, as far as the flow's sender knows.
    pub bottleneck: u32,
    /// nextBottleneckId: identifier of the link that gave this packet the smallest feedback.
    pub next_bottleneck: u32,
}

impl Wire for Header {
    const EXTENSIVE: bool = true;
    fn part(&self, share: f64) -> Self {
        Self { congestion: self.congestion.part(share), ..*self }
    }
    fn joined(&self, next: &Self) -> Self {
        Self { congestion: self.congestion.joined(&next.congestion), ..*next }
    }
    const BYTES: usize = xcp::Header::BYTES + 8;
    fn encode(&self, out: &mut [u8]) {
        self.congestion.write(out, Self::BYTES);
        out[Self::BYTES - 8..Self::BYTES - 4].copy_from_slice(&self.bottleneck.to_be_bytes());
        out[Self::BYTES - 4..Self::BYTES].copy_from_slice(&self.next_bottleneck.to_be_bytes());
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let congestion = xcp::Header::read(bytes, Self::BYTES)?;
        let (bottleneck, rest) = bytes[xcp::Header::BYTES..].split_first_chunk()?;
        let (next_bottleneck, _) = rest.split_first_chunk()?;
        Some(Self {
            congestion,
            bottleneck: u32::from_be_bytes(*bottleneck),
            next_bottleneck: u32::from_be_bytes(*next_bottleneck),
        })
    }
}

/// XCP's echo, extended by the identifier of the link that gave the smallest feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Echo {
    /// XCP's echo.
    pub congestion: xcp::Echo,
    /// nextBottleneckId of the last data packet.
    pub next_bottleneck: u32,
}

impl Wire for Echo {
    const BYTES: usize = xcp::Echo::BYTES + 4;
    fn encode(&self, out: &mut [u8]) {
        self.congestion.write(out, Self::BYTES);
        out[Self::BYTES - 4..Self::BYTES].copy_from_slice(&self.next_bottleneck.to_be_bytes());
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let congestion = xcp::Echo::read(bytes, Self::BYTES)?;
        let (next_bottleneck, _) = bytes[xcp::Echo::BYTES..].split_first_chunk()?;
        Some(Self { congestion, next_bottleneck: u32::from_be_bytes(*next_bottleneck) })
    }
}
