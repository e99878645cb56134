//! Parameters of iXCP.

use crate::params::ParamError;
use crate::protocols::xcp;

crate::choice! {
    /// Condition under which a router names its link as a flow's next bottleneck.
    pub enum Claim {
        /// The link gives the smallest feedback so far and has no spare bandwidth.
        FullLink = "full-link",
        /// The link gives the smallest feedback so far (the literal reading of ixcp-2007 §3).
        LeastFeedback = "least-feedback",
    }
}

crate::choice! {
    /// Division of the shuffled bandwidth among packets.
    pub enum Shuffle {
        /// Gains and losses from shuffling end together for a packet.
        Paired = "paired",
        /// Gains and losses from shuffling end separately, as in XCP's router.
        Draft = "draft",
    }
}

xcp::xcp_params! {
    /// Parameters of iXCP: those of XCP, and two more.
    {
        /// Condition under which a router names its link as a flow's next bottleneck.
        claim: Claim = Claim::FullLink, "reading of ixcp-2007 §1: a bottleneck is full; least-feedback: §3 to the letter",
            kernel word().member("claim_least");
        /// Division of the shuffled bandwidth among packets.
        shuffle: Shuffle = Shuffle::Paired,
            "reading of ixcp-2007 §2.1: \"simultaneously\"; draft: §3's \"original XCP algorithm\"",
            kernel word().member("shuffle_draft");
    }
}

impl Params {
    /// Returns the parameters that iXCP shares with XCP.
    pub(super) const fn xcp(&self) -> xcp::Params {
        xcp::Params {
            alpha: self.alpha,
            beta: self.beta,
            gamma: self.gamma,
            header: self.header,
            feedback_at: self.feedback_at,
            first_window: self.first_window,
            halve_on_loss: self.halve_on_loss,
            residues: self.residues,
            min_interval: self.min_interval,
            max_interval: self.max_interval,
            first_interval: self.first_interval,
            min_queue_interval: self.min_queue_interval,
            counts: xcp::Counts::All,
            arithmetic: self.arithmetic,
        }
    }

    fn check(&self) -> Result<(), ParamError> {
        self.xcp().check()
    }
}
