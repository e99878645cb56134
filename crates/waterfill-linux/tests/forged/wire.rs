//! The path between two ends: a TAP device at each end, and a thread that forwards frames between them. The thread
//! writes true prices into options, and then forges options as planned.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand_core::SeedableRng as _;
use rand_pcg::Pcg64Mcg;
use waterfill_linux::delay::tap::Tap;

use crate::forgery::{FORGERIES, Forger, Forgery, RAISED, Segment, UNREADABLE, WELL_FORMED};
use crate::packet::{Found, START_RATE, find, has_valid_checksum, set_checksum};

/// Choice of the packets to forge.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    /// Forgery for every packet of a handshake.
    pub(crate) handshake: Option<Forgery>,
    /// Forgery for every packet after the handshake.
    pub(crate) later: Option<Forgery>,
    /// Number of packets out of 1024 with a random forgery from [`RAISED`]. The next two fields are for [`WELL_FORMED`]
    /// and [`UNREADABLE`].
    pub(crate) raised: usize,
    pub(crate) well_formed: usize,
    pub(crate) unreadable: usize,
    /// Number of handshake packets out of 1024 with a random forgery of any kind.
    pub(crate) handshakes: usize,
}

/// Class of SYN packets with the option. [`DATA`] and [`ACK`] are the other classes.
pub(crate) const SYN: usize = 0;
pub(crate) const DATA: usize = 1;
pub(crate) const ACK: usize = 2;

/// Instructions for the forwarding thread, and its counters.
#[derive(Debug)]
pub(crate) struct Shared {
    stop: AtomicBool,
    pub(crate) plan: Mutex<Plan>,
    /// Code of the true price, or 0 for none. `start` is the code of the start rate.
    pub(crate) price: AtomicU32,
    pub(crate) start: AtomicU32,
    /// Delay of frames from `a` to `b` and from `b` to `a`, in microseconds.
    pub(crate) hold_us: [AtomicU64; 2],
    /// Minimum time between two frames from `a` to `b` and from `b` to `a`, in microseconds: a bottleneck.
    pub(crate) spacing_us: [AtomicU64; 2],
    /// Number of packets with the option, by class.
    pub(crate) seen: [AtomicU64; 3],
    /// Number of forgeries made, by class and index in [`FORGERIES`].
    pub(crate) forged: [[AtomicU64; FORGERIES.len()]; 3],
    /// Number of packets that arrived with an invalid checksum.
    pub(crate) bad_checksums: AtomicU64,
}

impl Shared {
    pub(crate) fn set(&self, plan: Plan) {
        *self.plan.lock().unwrap() = plan;
    }

    /// Returns the number of forgeries of one kind in packets of one class.
    pub(crate) fn forged(&self, class: usize, forgery: Forgery) -> u64 {
        self.forged[class][forgery.index()].load(Relaxed)
    }

    pub(crate) fn all_forged(&self) -> u64 {
        self.forged.iter().flatten().map(|n| n.load(Relaxed)).sum()
    }
}

/// The forwarding thread, which ends when it is dropped.
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
            spacing_us: Default::default(),
            seen: Default::default(),
            forged: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
            bad_checksums: AtomicU64::new(0),
        });
        let mut path = Path {
            shared: Arc::clone(&shared),
            kind,
            forger: Forger(Pcg64Mcg::seed_from_u64(seed)),
            waiting: Default::default(),
            last: [Instant::now(); 2],
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
    forger: Forger,
    waiting: [VecDeque<(Instant, Vec<u8>)>; 2],
    /// Time at which the newest frame leaves.
    last: [Instant; 2],
}

impl Path {
    fn run(&mut self, mut taps: [Tap; 2]) {
        while !self.shared.stop.load(Relaxed) {
            let mut idle = true;
            for side in 0..2 {
                let [hold, spacing] = [&self.shared.hold_us, &self.shared.spacing_us]
                    .map(|times| Duration::from_micros(times[side].load(Relaxed)));
                let mut queue = std::mem::take(&mut self.waiting[side]);
                let received = taps[side].receive(|_, frame| {
                    idle = false;
                    self.last[side] = (self.last[side] + spacing).max(Instant::now() + hold);
                    queue.push_back((self.last[side], self.forward(frame)));
                });
                let now = Instant::now();
                while queue.front().is_some_and(|(due, _)| *due <= now) {
                    idle = false;
                    let (_, frame) = queue.pop_front().unwrap();
                    // A device that is not up yet accepts nothing.
                    drop(taps[1 - side].send(&[&frame]));
                }
                self.waiting[side] = queue;
                if received.is_err() {
                    return; // the namespace was removed, with the device
                }
            }
            if idle {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }

    /// Returns a frame as the path forwards it.
    fn forward(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut frame = frame.to_vec();
        let Some(segment) = Segment::find(&frame) else { return frame };
        let addresses = if segment.tcp == 34 { 26..34 } else { 22..54 };
        if !has_valid_checksum(&frame, segment.tcp, addresses.clone()) {
            self.shared.bad_checksums.fetch_add(1, Relaxed);
        }
        let found = find(&frame);
        if let Found::Value { value, syn, .. } = found {
            let before = u32::from_be_bytes([0, frame[value], frame[value + 1], frame[value + 2]]);
            let own = if before & START_RATE == 0 { &self.shared.price } else { &self.shared.start }.load(Relaxed);
            if before < own && (syn || own & START_RATE == 0) {
                frame[value..value + 3].copy_from_slice(&own.to_be_bytes()[1..]);
                set_checksum(&mut frame, segment.tcp, addresses);
            }
        } else if found != Found::OtherOption {
            return frame;
        }
        let class = match (segment.syn, segment.data < frame.len()) {
            (true, _) => SYN,
            (_, true) => DATA,
            _ => ACK,
        };
        self.shared.seen[class].fetch_add(1, Relaxed);
        let plan = *self.shared.plan.lock().unwrap();
        let forgery = if segment.syn { plan.handshake } else { plan.later }.or_else(|| self.choose(&plan, class));
        let forged = forgery.and_then(|f| Some((f, self.forger.forge(f, &frame, &segment, self.kind)?)));
        if let Some((forgery, forged)) = forged {
            self.shared.forged[class][forgery.index()].fetch_add(1, Relaxed);
            return forged;
        }
        frame
    }

    /// Chooses a forgery at random according to the plan, or returns `None` to forge nothing.
    fn choose(&mut self, plan: &Plan, class: usize) -> Option<Forgery> {
        let number = self.forger.below(1024);
        if class == SYN {
            return (number < plan.handshakes).then(|| self.forger.one_of(&FORGERIES));
        }
        if number < plan.raised {
            return Some(self.forger.one_of(&RAISED));
        }
        if number < plan.raised + plan.well_formed {
            return Some(self.forger.one_of(&WELL_FORMED));
        }
        (number < plan.raised + plan.well_formed + plan.unreadable).then(|| self.forger.one_of(&UNREADABLE))
    }
}
