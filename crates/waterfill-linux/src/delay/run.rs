//! Main loop of the delay line: receive arrivals, send due frames, sleep.

use std::io::{self, BufRead as _, Write as _};
use std::os::fd::AsRawFd as _;

use serde::Serialize;

use super::config::{Config, LineConfig, PortKind};
use super::lateness::Spread;
use super::line::{Counts, Line};
use super::packet::Port;
use super::sys::{self, Nanos, Scheduling};

/// Maximum time between two reads of an interface, whose ring holds arrivals until the next read. Interfaces are read
/// more often if a line's delay is less than twice this time.
const MAX_READ_INTERVAL_NS: u64 = 1_000_000;
/// Time between two reads of standard input, in nanoseconds.
const CONTROL_INTERVAL_NS: u64 = 2_000_000;
/// Maximum number of frames per system call.
const BATCH: usize = 64;

/// All lines of a run with their interfaces.
#[derive(Debug)]
pub struct DelayLine {
    names: Vec<String>,
    lines: Vec<Line>,
    ports: Vec<Port>,
    /// Indexes in `ports` of each line's two interfaces.
    from_to: Vec<(usize, usize)>,
    tick_ns: u64,
    read_interval_ns: u64,
    scheduling: Option<Scheduling>,
    wakes: u64,
}

/// Statistics of a run, sent as the answer to a control line.
#[derive(Debug, Serialize)]
pub struct Stats {
    /// Statistics of each line.
    pub lines: Vec<LineStats>,
    /// CPU time of the process in seconds. It includes the receiving hosts' network stack, which runs in `sendmmsg`.
    pub cpu_s: f64,
    /// Number of passes of the loop.
    pub wakes: u64,
    /// Scheduling that the kernel granted, if real-time scheduling was requested.
    pub punctuality: Option<Scheduling>,
}

/// Statistics of one line.
#[derive(Debug, Serialize)]
pub struct LineStats {
    /// Name of the line.
    pub name: String,
    /// Frame counts of the line.
    #[serde(flatten)]
    pub counts: Counts,
    /// Frames that found the receive ring full, which is a fault of the testbed.
    pub ring_drops: u64,
    /// Number of waiting frames.
    pub held: usize,
    /// Number of delay changes that have taken effect for arriving frames.
    pub changes: usize,
    /// Departure times minus due times, in nanoseconds; `None` if no frame was sent.
    pub late_ns: Option<Spread>,
}

impl DelayLine {
    /// Opens the interfaces of all lines.
    ///
    /// # Errors
    /// When one cannot be opened; the error names it.
    pub fn open(config: &Config) -> io::Result<Self> {
        let mut interfaces: Vec<&str> = config.lines.iter().flat_map(|l| [l.from.as_str(), l.to.as_str()]).collect();
        interfaces.sort_unstable();
        interfaces.dedup();
        reserve(&config.lines)?;
        let place = |name: &str| interfaces.iter().position(|i| *i == name).unwrap_or_default();
        let from_to = config.lines.iter().map(|l| (place(&l.from), place(&l.to))).collect();
        let open = |name: &&str| {
            Port::open(name, config).map_err(|e| io::Error::new(e.kind(), format!("interface {name}: {e}")))
        };
        // Without the kernel's timestamps, accuracy depends on the read interval.
        let has_timestamps = config.port != PortKind::Tap;
        let min_delay_ns = config.lines.iter().map(LineConfig::delay_min_ns).min().unwrap_or(MAX_READ_INTERVAL_NS);
        Ok(Self {
            names: config.lines.iter().map(|l| l.name.clone()).collect(),
            lines: config.lines.iter().enumerate().map(|(i, l)| Line::new(l, config.seed, i)).collect(),
            ports: interfaces.iter().map(open).collect::<io::Result<_>>()?,
            from_to,
            tick_ns: config.tick_ns,
            read_interval_ns: if has_timestamps {
                (min_delay_ns / 2).clamp(config.tick_ns, MAX_READ_INTERVAL_NS)
            } else {
                config.tick_ns
            },
            scheduling: config.realtime.then(sys::request_realtime),
            wakes: 0,
        })
    }

    /// Runs one round: receives all arrivals, and sends all frames that are due within half a tick. Returns the time of
    /// the next round.
    ///
    /// # Errors
    /// When an interface has failed.
    pub fn round(&mut self) -> io::Result<Nanos> {
        self.wakes += 1;
        for (line, &(from, _)) in self.lines.iter_mut().zip(&self.from_to) {
            self.ports[from].receive(|arrived, frame| line.accept(arrived, frame))?;
        }
        let began = Nanos::now();
        let mut next = began.after(self.read_interval_ns);
        for (line, &(_, to)) in self.lines.iter_mut().zip(&self.from_to) {
            let by = began.after(self.tick_ns / 2);
            send_due(line, &mut self.ports[to], by)?;
            next = next.min(line.next_due().unwrap_or(next));
        }
        Ok(next.max(began.after(self.tick_ns)))
    }

    /// Runs until standard input closes, and answers each input line with one JSON line of statistics. A line `start
    /// NS` first sets the start of the run, on the clock of the frames' timestamps.
    ///
    /// # Errors
    /// When an interface has failed, or standard output has closed.
    pub fn serve(&mut self, input: &mut io::StdinLock<'_>) -> io::Result<()> {
        let fd = io::stdin().as_raw_fd();
        let mut next_control = Nanos::now();
        loop {
            let next = self.round()?;
            if next > next_control {
                next_control = next.after(CONTROL_INTERVAL_NS);
                if sys::readable(fd) {
                    let mut command = String::new();
                    if input.read_line(&mut command)? == 0 {
                        return Ok(());
                    }
                    if let Some(at) = command.trim().strip_prefix("start ").and_then(|ns| ns.parse().ok()) {
                        self.lines.iter_mut().for_each(|line| line.start(Nanos::new(at)));
                    }
                    self.answer()?;
                }
            }
            next.sleep_until();
        }
    }

    /// Returns the statistics so far.
    pub fn stats(&mut self) -> Stats {
        let from_to = &self.from_to;
        let ports = &mut self.ports;
        let drops: Vec<u64> = from_to.iter().map(|&(from, _)| ports[from].drops()).collect();
        let each = self.names.iter().zip(&self.lines).zip(drops);
        let lines = each
            .map(|((name, line), ring_drops)| LineStats {
                name: name.clone(),
                counts: line.counts,
                ring_drops,
                held: line.held(),
                changes: line.changes(),
                late_ns: line.lateness.spread(),
            })
            .collect();
        Stats { lines, cpu_s: sys::cpu_s(), wakes: self.wakes, punctuality: self.scheduling }
    }

    fn answer(&mut self) -> io::Result<()> {
        let mut output = io::stdout().lock();
        serde_json::to_writer(&mut output, &self.stats())?;
        output.write_all(b"\n")?;
        output.flush()
    }
}

/// Checks that there is memory for all frames that the lines may hold. The lines allocate it at once.
fn reserve(lines: &[LineConfig]) -> io::Result<()> {
    let bytes = lines.iter().fold(0_usize, |sum, line| sum.saturating_add(line.hold_bytes));
    let mut memory = Vec::<u8>::new();
    let reserved = std::hint::black_box(&mut memory).try_reserve_exact(bytes); // or the compiler leaves it out
    reserved
        .map_err(|_| io::Error::new(io::ErrorKind::OutOfMemory, format!("no memory for hold_bytes, {bytes} in all")))
}

fn send_due(line: &mut Line, port: &mut Port, by: Nanos) -> io::Result<()> {
    loop {
        let began = Nanos::now();
        let mut frames = Vec::with_capacity(BATCH);
        line.due(by, BATCH, &mut frames);
        let wanted = frames.len();
        if wanted == 0 {
            return Ok(());
        }
        let count = port.send(&frames)?;
        line.sent(count, by, began, Nanos::now());
        if count < wanted {
            return Ok(()); // the kernel's buffer is full: next round
        }
    }
}
