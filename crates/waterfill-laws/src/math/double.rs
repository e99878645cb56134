//! Numbers of twice a double's precision, for tables that the compiler computes.

/// The sum of two doubles that do not overlap: about 106 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Double {
    pub(super) high: f64,
    pub(super) low: f64,
}

impl Double {
    pub(super) const fn new(x: f64) -> Self {
        Self { high: x, low: 0.0 }
    }

    /// Renormalises a sum whose first part is the larger.
    const fn of(high: f64, low: f64) -> Self {
        let sum = high + low;
        Self { high: sum, low: low - (sum - high) }
    }

    /// The exact sum of two doubles of any order (Knuth).
    const fn sum(a: f64, b: f64) -> Self {
        let high = a + b;
        let b_part = high - a;
        Self { high, low: (a - (high - b_part)) + (b - b_part) }
    }

    /// The exact product of two doubles (Dekker, Veltkamp).
    const fn product(a: f64, b: f64) -> Self {
        let high = a * b;
        let ((a_1, a_2), (b_1, b_2)) = (halves(a), halves(b));
        Self { high, low: ((a_1 * b_1 - high) + a_1 * b_2 + a_2 * b_1) + a_2 * b_2 }
    }

    pub(super) const fn plus(self, other: Self) -> Self {
        let high = Self::sum(self.high, other.high);
        let low = Self::sum(self.low, other.low);
        let sum = Self::of(high.high, high.low + low.high);
        Self::of(sum.high, sum.low + low.low)
    }

    pub(super) const fn times(self, other: Self) -> Self {
        let product = Self::product(self.high, other.high);
        Self::of(product.high, product.low + (self.high * other.low + self.low * other.high))
    }

    pub(super) const fn over(self, divisor: Self) -> Self {
        let first = self.high / divisor.high;
        let rest = self.plus(divisor.times(Self::new(-first)));
        let second = rest.high / divisor.high;
        let rest = rest.plus(divisor.times(Self::new(-second)));
        Self::of(first, second).plus(Self::new(rest.high / divisor.high))
    }

    pub(super) const fn negated(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

/// A double as the sum of two of 26 bits (Veltkamp).
const fn halves(x: f64) -> (f64, f64) {
    let scaled = x * 134_217_729.0; // 2²⁷ + 1
    let high = scaled - (scaled - x);
    (high, x - high)
}

/// ln(x) = 2·artanh((x − 1)/(x + 1)) for x of 1/2 to 3.
pub(super) const fn ln(x: f64) -> Double {
    let t = Double::new(x - 1.0).over(Double::sum(x, 1.0));
    let square = t.times(t);
    let mut sum = Double::new(0.0);
    let mut n = 101; // (1/2)¹⁰² is below a double's double precision
    while n > 1 {
        n -= 2;
        sum = sum.times(square).plus(Double::new(1.0).over(Double::new(n as f64)));
    }
    sum.times(t).times(Double::new(2.0))
}

/// e^x for x of 0 to 1.
pub(super) const fn exp(x: Double) -> Double {
    let mut sum = Double::new(1.0);
    let mut n = 30; // 1/30! is below a double's double precision
    while n > 0 {
        sum = sum.times(x).over(Double::new(n as f64)).plus(Double::new(1.0));
        n -= 1;
    }
    sum
}
