//! Parameters of ABC.

use crate::params::{ParamError, require};
use crate::units::Duration;

crate::choice! {
    /// Answer to losses and ECN marks.
    pub enum Fallback {
        /// A second window, computed by CUBIC; the smaller window limits the source.
        Cubic = "cubic",
        /// No answer: only for paths whose bottlenecks all implement ABC.
        None = "none",
    }
}

crate::params! {
    /// Parameters of ABC.
    pub struct Params {
        /// Target utilization η of a link whose queue is short.
        eta: f64 = 0.98, "abc-2020; the authors' router";
        /// Time δ in which a queue drains to `delay_threshold`. ABC is stable if δ exceeds two thirds of the largest
        /// RTT.
        delta: Duration = Duration::from_millis(133), "abc-2020, for RTTs of 100 ms; the authors' router";
        /// Queueing delay d_t that does not count as congestion, because packets may be sent in batches.
        delay_threshold: Duration = Duration::from_millis(50), "the authors' runs on cellular traces";
        /// Time T over which the capacity and the departure rate are measured.
        window: Duration = Duration::from_millis(20), "the authors' router";
        /// Maximum number of tokens (tokenLimit). Each packet marked "accelerate" costs one token.
        token_limit: f64 = 5.0, "the authors' router";
        /// Answer to losses and ECN marks, for bottlenecks that do not implement ABC.
        fallback: Fallback = Fallback::Cubic, "abc-2020; none: the authors' simpler sender";
    }
}

impl Params {
    pub(super) fn check(&self) -> Result<(), ParamError> {
        require(self.eta > 0.0 && self.eta <= 1.0, "eta", "a number in (0, 1]")?;
        require(!self.delta.is_zero(), "delta", "a time above zero")?;
        require(self.window >= Duration::from_ps(20_000), "window", "a time of at least 20 ns")?;
        require(self.token_limit > 1.0 && self.token_limit <= 1e6, "token_limit", "a number above 1, up to 1e6")
    }
}
