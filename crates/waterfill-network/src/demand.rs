//! Demand of a flow that changes with time.

use serde::Deserialize;
use waterfill_laws::units::{Duration, Instant, Rate, Volume};

use crate::check::time;

/// Demand from a given time on.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct DemandSpec {
    /// Time of the change, in seconds from the start of the run.
    pub at_s: f64,
    /// Rate in bit/s at which the application writes data from then on; may be zero.
    pub rate_bps: f64,
}

/// Checks a flow's demands: rates must be in range, and times in order from zero on.
pub(crate) fn check(demands: &[DemandSpec]) -> Result<(), String> {
    if let Some(first) = demands.first().filter(|first| first.at_s != 0.0) {
        return Err(format!("the first time must be 0 s, got {} s", first.at_s));
    }
    for (i, demand) in demands.iter().enumerate() {
        time("time", demand.at_s)?;
        if !(demand.rate_bps.is_finite() && demand.rate_bps >= 0.0) {
            return Err(format!("rate: must not be negative, got {}", demand.rate_bps));
        }
        let before = i.checked_sub(1).and_then(|before| demands.get(before));
        if let Some(before) = before.filter(|before| demand.at_s <= before.at_s) {
            return Err(format!("times must increase, got {} s after {} s", demand.at_s, before.at_s));
        }
    }
    Ok(())
}

/// Constant demand from a given time on.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: Instant,
    rate: Rate,
    /// Volume that the application has written before this piece begins.
    before: Volume,
}

/// Volume that an application writes over time.
#[derive(Debug)]
pub struct DemandCourse(Box<[Piece]>);

impl DemandCourse {
    /// Returns the course of a flow's demand, or `None` if the demand is constant or unlimited.
    #[must_use]
    pub fn of(demands: &[DemandSpec]) -> Option<Self> {
        let first = demands.first()?;
        let mut now = Piece { from: Instant::ZERO, rate: Rate::from_bps(first.rate_bps), before: Volume::ZERO };
        let mut pieces = vec![now];
        for demand in demands.iter().skip(1) {
            let from = Instant::from_secs(demand.at_s);
            let before = now.before + now.rate * from.since(now.from);
            now = Piece { from, rate: Rate::from_bps(demand.rate_bps), before };
            pieces.push(now);
        }
        Some(Self(pieces.into()))
    }

    /// Returns the last piece for which `begun` is true, or the first piece.
    fn last(&self, begun: impl Fn(&Piece) -> bool) -> Piece {
        let i = self.0.partition_point(begun).saturating_sub(1);
        self.0.get(i).copied().unwrap_or(Piece { from: Instant::ZERO, rate: Rate::ZERO, before: Volume::ZERO })
    }

    /// Returns the volume that the application writes up to a time.
    #[must_use]
    pub fn written(&self, time: Instant) -> Volume {
        let piece = self.last(|piece| piece.from <= time);
        piece.before + piece.rate * time.since(piece.from)
    }

    /// Returns the time at which an application that starts at `opened` begins to write what follows `volume`. This is
    /// never if the application writes nothing more.
    #[must_use]
    pub fn written_at(&self, opened: Instant, volume: Volume) -> Instant {
        let total = self.written(opened) + volume;
        // Of several pieces that begin at this volume, all but the last have a rate of zero.
        let piece = self.last(|piece| piece.before <= total);
        if piece.rate <= Rate::ZERO {
            return Instant::NEVER; // only the last piece has no end
        }
        opened.max(piece.from + Duration::from_secs((total - piece.before) / piece.rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a course of 8 Mbit/s for 1 s, none for 1 s, then 4 Mbit/s for 1 s, and then none.
    fn course() -> DemandCourse {
        let demand = |at_s, rate_bps| DemandSpec { at_s, rate_bps };
        DemandCourse::of(&[demand(0.0, 8e6), demand(1.0, 0.0), demand(2.0, 4e6), demand(3.0, 0.0)]).unwrap()
    }

    fn secs(s: f64) -> Instant {
        Instant::from_secs(s)
    }

    #[test]
    fn volumes_are_the_integral_of_the_demand() {
        let written = |s| course().written(secs(s)).as_bytes();
        let volumes = [0.0, 0.5, 1.0, 1.7, 2.5, 4.0].map(written);
        assert_eq!(volumes, [0.0, 500e3, 1e6, 1e6, 1.25e6, 1.5e6]);
    }

    #[test]
    fn times_are_those_at_which_the_rest_begins() {
        let at = |opened, bytes| course().written_at(secs(opened), Volume::from_bytes(bytes));
        assert_eq!((at(0.0, 0.0), at(0.5, 0.0), at(0.5, 250e3)), (secs(0.0), secs(0.5), secs(0.75)));
        // In a pause, and exactly at its start, nothing is written.
        assert_eq!((at(0.0, 1e6), at(1.4, 0.0), at(1.4, 250e3)), (secs(2.0), secs(2.0), secs(2.5)));
        assert_eq!((at(0.0, 1.5e6), at(5.0, 0.0)), (Instant::NEVER, Instant::NEVER));
    }

    #[test]
    fn wrong_demands_are_refused() {
        let of = |demands: &[(f64, f64)]| {
            let demands: Vec<_> = demands.iter().map(|&(at_s, rate_bps)| DemandSpec { at_s, rate_bps }).collect();
            check(&demands).unwrap_err()
        };
        assert_eq!(of(&[(1.0, 1e6)]), "the first time must be 0 s, got 1 s");
        assert_eq!(of(&[(0.0, 1e6), (0.0, 2e6)]), "times must increase, got 0 s after 0 s");
        assert_eq!(of(&[(0.0, -1.0)]), "rate: must not be negative, got -1");
        assert_eq!(of(&[(0.0, f64::NAN)]), "rate: must not be negative, got NaN");
    }
}
