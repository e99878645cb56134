//! The protocol that a group of flows uses.

use waterfill_laws::registry::{AnyParams, ProtocolId};

/// A protocol with its parameters.
#[derive(Clone, Debug)]
pub(crate) struct FlowProtocol {
    pub(crate) protocol: ProtocolId,
    pub(crate) params: AnyParams,
}
