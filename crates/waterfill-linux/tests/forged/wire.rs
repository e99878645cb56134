//! The path between the two ends: a TAP device at each, and a thread that hands frames from one to the other. It writes
//! an honest price into options, and then does to them what it is told.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand_core::SeedableRng as _;
use rand_pcg::Pcg64Mcg;
use waterfill_linux::delay::tap::Tap;

use crate::lie::{Dice, LIES, Lie, NOTHING, SLOW, Segment, VALID};
use crate::packet::{FLAG, Found, find, is_sealed, seal};

/// Which packets something is done to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    /// To every packet of the handshake.
    pub(crate) handshake: Option<Lie>,
    /// To every later packet.
    pub(crate) always: Option<Lie>,
    /// At random: so many of 1024 packets get one of the lies of each list.
    pub(crate) slow: usize,
    pub(crate) valid: usize,
    pub(crate) nothing: usize,
    pub(crate) handshakes: usize,
}

/// Packets with the option, by what they are.
pub(crate) const SYN: usize = 0;
pub(crate) const DATA: usize = 1;
pub(crate) const ACK: usize = 2;

/// What the thread is told, and what it has counted.
#[derive(Debug)]
pub(crate) struct Shared {
    stop: AtomicBool,
    pub(crate) plan: Mutex<Plan>,
    /// What an honest router writes: a price's code, and a start rate's; 0: there is none.
    pub(crate) price: AtomicU32,
    pub(crate) start: AtomicU32,
    /// For so long frames wait that go from a to b, and from b to a, us.
    pub(crate) hold_us: [AtomicU64; 2],
    /// Packets with the option, by class.
    pub(crate) seen: [AtomicU64; 3],
    /// Lies told, by class.
    pub(crate) told: [[AtomicU64; LIES.len()]; 3],
    /// Packets whose checksum was wrong when they came.
    pub(crate) unsealed: AtomicU64,
}

impl Shared {
    pub(crate) fn set(&self, plan: Plan) {
        *self.plan.lock().unwrap() = plan;
    }

    pub(crate) fn told_in_all(&self) -> u64 {
        self.told.iter().flatten().map(|n| n.load(Relaxed)).sum()
    }
}

/// The thread. It ends with this.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Wire {
    pub(crate) fn new(taps: [Tap; 2], kind: u8, seed: u64) -> Self {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            plan: Mutex::default(),
            price: AtomicU32::new(0),
            start: AtomicU32::new(0),
            hold_us: Default::default(),
            seen: Default::default(),
            told: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
            unsealed: AtomicU64::new(0),
        });
        let mut path = Path {
            shared: Arc::clone(&shared),
            kind,
            dice: Dice(Pcg64Mcg::seed_from_u64(seed)),
            waiting: Default::default(),
        };
        let thread = std::thread::spawn(move || path.run(taps));
        Self { shared, thread: Some(thread) }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        drop(self.thread.take().map(JoinHandle::join));
    }
}

struct Path {
    shared: Arc<Shared>,
    kind: u8,
    dice: Dice,
    waiting: [VecDeque<(Instant, Vec<u8>)>; 2],
}

impl Path {
    fn run(&mut self, mut taps: [Tap; 2]) {
        while !self.shared.stop.load(Relaxed) {
            let mut idle = true;
            for side in 0..2 {
                let hold = Duration::from_micros(self.shared.hold_us[side].load(Relaxed));
                let mut queue = std::mem::take(&mut self.waiting[side]);
                let received = taps[side].receive(|_, frame| {
                    idle = false;
                    queue.push_back((Instant::now() + hold, self.passed(frame)));
                });
                let now = Instant::now();
                while queue.front().is_some_and(|(due, _)| *due <= now) {
                    idle = false;
                    let (_, frame) = queue.pop_front().unwrap();
                    // A device that is not up yet takes nothing.
                    drop(taps[1 - side].send(&[&frame]));
                }
                self.waiting[side] = queue;
                if received.is_err() {
                    return; // the namespace has gone, and the device with it
                }
            }
            if idle {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }

    /// A frame as it goes on.
    fn passed(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut frame = frame.to_vec();
        let Some(segment) = Segment::find(&frame) else { return frame };
        let addresses = if segment.tcp == 34 { 26..34 } else { 22..54 };
        if !is_sealed(&frame, segment.tcp, addresses.clone()) {
            self.shared.unsealed.fetch_add(1, Relaxed);
        }
        let found = find(&frame);
        if let Found::Value { value, syn, .. } = found {
            let before = u32::from_be_bytes([0, frame[value], frame[value + 1], frame[value + 2]]);
            let own = if before & FLAG == 0 { &self.shared.price } else { &self.shared.start }.load(Relaxed);
            if before < own && (syn || own & FLAG == 0) {
                frame[value..value + 3].copy_from_slice(&own.to_be_bytes()[1..]);
                seal(&mut frame, segment.tcp, addresses);
            }
        } else if found != Found::Seen {
            return frame;
        }
        let class = match (segment.syn, segment.data < frame.len()) {
            (true, _) => SYN,
            (_, true) => DATA,
            _ => ACK,
        };
        self.shared.seen[class].fetch_add(1, Relaxed);
        let plan = *self.shared.plan.lock().unwrap();
        let lie = if segment.syn { plan.handshake } else { plan.always }.or_else(|| self.chosen(&plan, class));
        let lied = lie.and_then(|lie| Some((lie, self.dice.tell(lie, &frame, &segment, self.kind)?)));
        if let Some((lie, lied)) = lied {
            self.shared.told[class][LIES.iter().position(|l| *l == lie).unwrap()].fetch_add(1, Relaxed);
            return lied;
        }
        frame
    }

    fn chosen(&mut self, plan: &Plan, class: usize) -> Option<Lie> {
        let number = self.dice.below(1024);
        if class == SYN {
            return (number < plan.handshakes).then(|| self.dice.one_of(&LIES));
        }
        if number < plan.slow {
            return Some(self.dice.one_of(&SLOW));
        }
        if number < plan.slow + plan.valid {
            return Some(self.dice.one_of(&VALID));
        }
        (number < plan.slow + plan.valid + plan.nothing).then(|| self.dice.one_of(&NOTHING))
    }
}
