//! Range checks, which return an error of one sentence, for example `delay: must be above zero, got 0`.

/// Shortest time that the simulated clock can represent, in seconds.
pub(crate) const MIN_TIME_S: f64 = 1e-12;

/// Checks that a time fits the simulated clock.
pub(crate) fn time(key: &str, s: f64) -> Result<(), String> {
    // 10⁶ s are 10¹⁸ ps: far from where the clock saturates.
    if (0.0..=1e6).contains(&s) { Ok(()) } else { Err(format!("{key}: must be 0 to 1e6 s, got {s}")) }
}

/// Checks that a number is finite and above zero.
pub(crate) fn positive(key: &str, x: f64) -> Result<(), String> {
    if x.is_finite() && x > 0.0 { Ok(()) } else { Err(format!("{key}: must be above zero, got {x}")) }
}

/// Checks that a number is a probability from 0 to 1.
pub(crate) fn probability(key: &str, x: f64) -> Result<(), String> {
    if (0.0..=1.0).contains(&x) { Ok(()) } else { Err(format!("{key}: must be in [0, 1], got {x}")) }
}
