//! Range checks. Every error is one sentence, such as `delay: must be above zero, got 0`.

/// The shortest time that the simulated clock distinguishes from none, in seconds.
pub(crate) const MIN_TIME_S: f64 = 1e-12;

/// A time that the simulated clock can hold.
pub(crate) fn time(key: &str, s: f64) -> Result<(), String> {
    // 10⁶ s are 10¹⁸ ps: far from where the clock saturates.
    if (0.0..=1e6).contains(&s) { Ok(()) } else { Err(format!("{key}: must be 0 to 1e6 s, got {s}")) }
}

/// A finite number above zero.
pub(crate) fn positive(key: &str, x: f64) -> Result<(), String> {
    if x.is_finite() && x > 0.0 { Ok(()) } else { Err(format!("{key}: must be above zero, got {x}")) }
}

/// A number from 0 to 1.
pub(crate) fn probability(key: &str, x: f64) -> Result<(), String> {
    if (0.0..=1.0).contains(&x) { Ok(()) } else { Err(format!("{key}: must be in [0, 1], got {x}")) }
}
