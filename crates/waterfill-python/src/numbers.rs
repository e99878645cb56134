//! Functions of numbers for values that enter a scenario: Python's own depend on the host's C library.

use pyo3::prelude::*;
use waterfill_laws::math;

macro_rules! functions {
    ($($(#[$meta:meta])* $name:ident($($argument:ident),+);)+) => {
        $(
            $(#[$meta])*
            #[pyfunction]
            pub(crate) fn $name($($argument: f64),+) -> f64 {
                math::$name($($argument),+)
            }
        )+
    };
}

functions! {
    /// Arc sine, in radians.
    asin(x);
    /// Cube root.
    cbrt(x);
    /// Cosine of an angle in radians.
    cos(x);
    /// Natural logarithm; NaN of a negative number.
    ln(x);
    /// ln(1 + x) without loss near 0.
    ln_1p(x);
    /// Logarithm to base 10.
    log10(x);
    /// x^y.
    pow(x, y);
    /// Sine of an angle in radians.
    sin(x);
}
