//! Which frames are lost, as scenarios name it.

use rand_core::Rng as _;
use rand_pcg::Pcg64;
use serde::Deserialize;

/// A probability as a threshold on a 64-bit draw. Zero draws nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chance(u128);

impl Chance {
    pub(super) fn new(p: f64) -> Self {
        Self((p * 2f64.powi(64)) as u128)
    }

    pub(super) fn strikes(self, rng: &mut Pcg64) -> bool {
        self.0 > 0 && u128::from(rng.next_u64()) < self.0
    }
}

/// Loss on a wire.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossModel {
    /// Each frame by itself.
    Independent {
        /// Probability.
        p: f64,
    },
    /// In bursts: a chain of two states, good at first, that takes a step after each frame.
    GilbertElliott {
        /// Probability of a step from good to bad.
        p: f64,
        /// Probability of a step from bad to good.
        r: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
    /// Of so many frames with data exactly one, the last of them. Handshakes, acknowledgements, and what is neither TCP
    /// nor UDP are neither counted nor lost.
    Periodic {
        /// Frames with data for each loss.
        every: u64,
    },
}

impl LossModel {
    /// Whether every value is in its range; the error is one sentence without its subject.
    pub(super) fn check(&self) -> Result<(), String> {
        let probabilities: &[(&str, f64)] = match self {
            Self::Independent { p } => &[("p", *p)],
            Self::GilbertElliott { p, r, loss_good, loss_bad } => {
                &[("p", *p), ("r", *r), ("loss_good", *loss_good), ("loss_bad", *loss_bad)]
            }
            Self::Periodic { every: 0 } => return Err("every: expected a number above zero, got 0".into()),
            Self::Periodic { .. } => &[],
        };
        match probabilities.iter().find(|(_, p)| !(0.0..=1.0).contains(p)) {
            Some((key, p)) => Err(format!("{key}: expected a probability, got {p}")),
            None => Ok(()),
        }
    }
}

/// A model at work.
#[derive(Debug)]
pub(super) enum Loss {
    Independent(Chance),
    GilbertElliott { steps: [Chance; 2], loss: [Chance; 2], bad: bool },
    Periodic { every: u64, left: u64 },
}

impl Loss {
    pub(super) fn new(model: LossModel) -> Self {
        match model {
            LossModel::Independent { p } => Self::Independent(Chance::new(p)),
            LossModel::GilbertElliott { p, r, loss_good, loss_bad } => Self::GilbertElliott {
                steps: [p, r].map(Chance::new),
                loss: [loss_good, loss_bad].map(Chance::new),
                bad: false,
            },
            LossModel::Periodic { every } => Self::Periodic { every, left: every },
        }
    }

    /// Whether it takes this frame, Ethernet header first.
    pub(super) fn takes(&mut self, frame: &[u8], rng: &mut Pcg64) -> bool {
        match self {
            Self::Independent(chance) => chance.strikes(rng),
            Self::GilbertElliott { steps, loss, bad } => {
                let state = usize::from(*bad);
                let lost = loss[state].strikes(rng);
                *bad ^= steps[state].strikes(rng);
                lost
            }
            Self::Periodic { every, left } => {
                if !carries_data(frame) {
                    return false;
                }
                *left -= 1;
                let lost = *left == 0;
                if lost {
                    *left = *every;
                }
                lost
            }
        }
    }
}

const ETHERNET: usize = 14;
const IPV6_HEADER: usize = 40;
const TCP: u8 = 6;
const UDP: u8 = 17;
const SYN: u8 = 0x02;

/// Whether a frame is a TCP segment with payload, its handshake apart, or a UDP datagram. Testbeds send neither
/// extension headers nor fragments.
fn carries_data(frame: &[u8]) -> bool {
    let Some((head, packet)) = frame.split_at_checked(ETHERNET) else { return false };
    let word = |at: usize| Some(usize::from(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?])));
    let (protocol, header, length) = match (head[12], head[13]) {
        (0x08, 0x00) => (packet.get(9), packet.first().map(|b| usize::from(b & 15) * 4), word(2)),
        (0x86, 0xdd) => (packet.get(6), Some(IPV6_HEADER), word(4).map(|payload| payload + IPV6_HEADER)),
        _ => return false,
    };
    let (Some(&protocol), Some(header), Some(length)) = (protocol, header, length) else { return false };
    match (protocol, packet.get(header + 12), packet.get(header + 13)) {
        (UDP, ..) => true,
        (TCP, Some(offset), Some(flags)) => flags & SYN == 0 && length > header + usize::from(offset >> 4) * 4,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rng() -> Pcg64 {
        Pcg64::new(3, 0)
    }

    /// A TCP segment in IPv4, 12 bytes of options, so much payload.
    fn segment(flags: u8, payload: u16) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET + 20 + 32 + usize::from(payload)];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(52 + payload).to_be_bytes());
        frame[23] = TCP;
        frame[46] = 8 << 4;
        frame[47] = flags;
        frame
    }

    #[test]
    fn bursts_of_the_gilbert_elliott_model_come_and_last_as_its_chain_says() {
        let (p, r, n) = (0.01, 0.25, 1_000_000);
        let mut loss = Loss::new(LossModel::GilbertElliott { p, r, loss_good: 0.0, loss_bad: 1.0 });
        let mut rng = rng();
        let lost: Vec<bool> = (0..n).map(|_| loss.takes(&[], &mut rng)).collect();
        let total = lost.iter().filter(|&&l| l).count() as f64;
        let bursts = lost.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        // Time in the bad state is p/(p + r) of all, a burst lasts 1/r frames. Of about 9600 bursts the standard deviation
        // is below 1 %, that of the frames lost 1.4 %; four of each.
        let n = f64::from(n);
        assert!((bursts / (n * p * r / (p + r)) - 1.0).abs() < 0.04, "{bursts}");
        assert!((total / (n * p / (p + r)) - 1.0).abs() < 0.056, "{total}");
    }

    #[test]
    fn periodic_loss_takes_the_last_of_so_many_frames_with_data_and_counts_no_other() {
        let mut loss = Loss::new(LossModel::Periodic { every: 3 });
        let mut rng = rng();
        let frames = [
            segment(SYN, 0),
            segment(0x10, 100),
            segment(0x10, 0),
            segment(0x10, 100),
            segment(SYN, 100),
            segment(0x18, 1),
            segment(0x10, 0),
            segment(0x10, 100),
        ];
        let lost: Vec<bool> = frames.iter().map(|frame| loss.takes(frame, &mut rng)).collect();
        assert_eq!(lost, [false, false, false, false, false, true, false, false]);
    }

    #[test]
    fn data_are_told_from_acknowledgements_in_ipv6_too_and_short_frames_are_none() {
        let mut udp = vec![0; ETHERNET + IPV6_HEADER + 8];
        udp[12..14].copy_from_slice(&[0x86, 0xdd]);
        udp[20] = UDP;
        // What follows is looked at for TCP alone, but must be there.
        udp.extend([0; 8]);
        assert!(carries_data(&udp));
        let mut tcp = vec![0; ETHERNET + IPV6_HEADER + 20 + 4];
        tcp[12..14].copy_from_slice(&[0x86, 0xdd]);
        tcp[20] = TCP;
        tcp[66] = 5 << 4;
        tcp[19] = 24;
        assert!(carries_data(&tcp));
        tcp[19] = 20;
        assert!(!carries_data(&tcp));
        let whole = segment(0x10, 100);
        assert!((0..48).all(|length| !carries_data(&whole[..length])));
        assert!(!carries_data(&[0; 60]));
    }

    #[test]
    fn values_out_of_range_are_named() {
        let wrong = LossModel::GilbertElliott { p: 0.1, r: 1.5, loss_good: 0.0, loss_bad: 1.0 };
        assert_eq!(wrong.check().unwrap_err(), "r: expected a probability, got 1.5");
        assert!(LossModel::Periodic { every: 0 }.check().is_err());
        assert!(LossModel::Periodic { every: 1 }.check().is_ok());
    }
}
