//! Parameters of XCP, and the macro with which iXCP extends them.

use crate::kernel::Arithmetic;
use crate::params::{ParamError, require};

crate::choice! {
    /// Form of the congestion header.
    pub enum Form {
        /// Form of katabi-2002: window, RTT and feedback in bytes.
        Katabi = "katabi",
        /// Form of draft-falk: RTT, time between packets and change of throughput.
        Falk = "falk",
    }
}

crate::choice! {
    /// Endpoint of the connection that adds up the feedback.
    pub enum FeedbackAt {
        /// The sender adds up the feedback of each acknowledgement.
        Source = "source",
        /// The receiver adds up the feedback, and acknowledgements carry the sum (XCP-r).
        Receiver = "receiver",
    }
}

crate::choice! {
    /// Packets that count as load.
    pub enum Counts {
        /// Every packet that arrives.
        All = "all",
        /// Only packets with a congestion header.
        Own = "own",
    }
}

/// Declares the parameters of XCP, followed by those of a protocol that is based on XCP.
macro_rules! xcp_params {
    ($(#[$meta:meta])* { $($more:tt)* }) => {
        $crate::params! {
            $(#[$meta])*
            pub struct Params {
                /// Gain α on unused capacity.
                alpha: f64 = 0.4, "ixcp-2007 §2.1",
                    kernel scaled(1e6, 1e-6..=1.0);
                /// Gain β on the persistent queue.
                beta: f64 = 0.226, "ixcp-2007 §2.1",
                    kernel scaled(1e6, 0.0..=1.0);
                /// Fraction γ of the traffic that is shuffled.
                gamma: f64 = 0.1, "ixcp-2007 §2.1",
                    kernel scaled(1e6, 0.0..=1.0);
                /// Form of the congestion header.
                header: $crate::protocols::xcp::Form = $crate::protocols::xcp::Form::Katabi,
                    "katabi-2002; falk: draft-falk-xcp-spec-03",
                    kernel default_only();
                /// Endpoint of the connection that adds up the feedback (`receiver` is XCP-r).
                feedback_at: $crate::protocols::xcp::FeedbackAt = $crate::protocols::xcp::FeedbackAt::Source,
                    "katabi-2002; receiver: López Pacheco and Pham 2005";
                /// Initial window before any feedback, in packets. In kernel arithmetic, 0 means the host's own window.
                first_window: f64 = 1.0, "reading: the smallest window",
                    kernel scaled(1e3, 0.0..=1e6);
                /// Halve the window at a loss, and reduce it to one packet at a timeout.
                halve_on_loss: bool = true, "katabi-2002: as TCP",
                    kernel word();
                /// Limit what an interval allocates to the gains and losses left (`residue`).
                residues: bool = true, "draft-falk and ns-2; false: katabi-2002 and ixcp-2007 §2.1 have no such limit",
                    kernel default_only();
                /// Minimum control interval.
                min_interval: $crate::units::Duration = $crate::units::Duration::from_millis(1), "the authors' ns-2 module",
                    kernel micros(1e-6..=4.0);
                /// Maximum control interval.
                max_interval: $crate::units::Duration = $crate::units::Duration::from_millis(1000), "the authors' ns-2 module",
                    kernel micros(1e-6..=4.0);
                /// Control interval before any RTT is known.
                first_interval: $crate::units::Duration = $crate::units::Duration::from_millis(50), "the authors' ns-2 module",
                    kernel micros(1e-6..=4.0);
                /// Minimum time over which a router measures its smallest queue.
                min_queue_interval: $crate::units::Duration = $crate::units::Duration::from_millis(2), "the authors' ns-2 module",
                    kernel default_only();
                /// Arithmetic of the law: real numbers, or the fixed-point version that the kernel runs.
                arithmetic: $crate::kernel::Arithmetic = $crate::kernel::Arithmetic::Real, "none; `kernel` is kernel/xcp.h";
                $($more)*
            }
        }
    };
}
pub(in crate::protocols) use xcp_params;

xcp_params! {
    /// Parameters of XCP and P-XCP.
    {
        /// Packets that a router counts as load.
        counts: Counts = Counts::All, "katabi-2002; own: ns-2's module queues other protocols apart",
            kernel word().member("count_own");
    }
}

impl Params {
    pub(in crate::protocols) fn check(&self) -> Result<(), ParamError> {
        let unit = |x: f64| x > 0.0 && x < 1.0;
        require(unit(self.alpha), "alpha", "a number in (0, 1)")?;
        require((0.0..1.0).contains(&self.beta), "beta", "a number in [0, 1)")?;
        require((0.0..1.0).contains(&self.gamma), "gamma", "a number in [0, 1)")?;
        let hosts_own = self.arithmetic != Arithmetic::Real && self.first_window == 0.0;
        require(hosts_own || (1.0..=1e6).contains(&self.first_window), "first_window", "1 to 1e6 packets")?;
        require(!self.min_interval.is_zero(), "min_interval", "a time above zero")?;
        require(!self.min_queue_interval.is_zero(), "min_queue_interval", "a time above zero")?;
        require(self.max_interval >= self.min_interval, "max_interval", "at least min_interval")?;
        let bounds = self.min_interval..=self.max_interval;
        require(bounds.contains(&self.first_interval), "first_interval", "a time from min_interval to max_interval")
    }
}
