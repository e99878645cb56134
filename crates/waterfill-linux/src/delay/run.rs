//! The loop: take what has arrived, send what is due, sleep.

use std::io::{self, BufRead as _, Write as _};
use std::os::fd::AsRawFd as _;

use serde::Serialize;

use super::config::{Config, PortKind};
use super::lateness::Spread;
use super::line::{Counts, Line};
use super::packet::Port;
use super::sys::{self, Nanos, Punctuality};

/// Between two looks at an idle interface. Its ring holds the arrivals of this time, and a delay of
/// less than twice it is looked at oftener.
const LOOK_NS: u64 = 1_000_000;
/// Between two looks at standard input.
const CONTROL_NS: u64 = 2_000_000;
/// Frames of one call.
const BATCH: usize = 64;

/// Lines over their interfaces.
#[derive(Debug)]
pub struct DelayLine {
    names: Vec<String>,
    lines: Vec<Line>,
    ports: Vec<Port>,
    /// For each line, its interfaces' places in `ports`.
    from_to: Vec<(usize, usize)>,
    tick_ns: u64,
    look_ns: u64,
    punctuality: Option<Punctuality>,
    wakes: u64,
}

/// What the process answers to `stats`.
#[derive(Debug, Serialize)]
pub struct Stats {
    /// One entry a line.
    pub lines: Vec<LineStats>,
    /// Processor time so far, that of the receiving hosts' network stack included: it runs in `sendmmsg`.
    pub cpu_s: f64,
    /// How often the loop has run.
    pub wakes: u64,
    /// What the process got of the punctuality it asked for.
    pub punctuality: Option<Punctuality>,
}

/// What one line has done.
#[derive(Debug, Serialize)]
pub struct LineStats {
    /// Its name.
    pub name: String,
    /// Frames.
    #[serde(flatten)]
    pub counts: Counts,
    /// Frames that found the receive ring full: a fault of the testbed.
    pub ring_drops: u64,
    /// Frames that it holds.
    pub held: usize,
    /// Departures less due times.
    pub late_ns: Option<Spread>,
}

impl DelayLine {
    /// Opens the interfaces.
    ///
    /// # Errors
    /// When one cannot be opened; the error names it.
    pub fn open(config: &Config) -> io::Result<Self> {
        let mut interfaces: Vec<&str> = config.lines.iter().flat_map(|l| [l.from.as_str(), l.to.as_str()]).collect();
        interfaces.sort_unstable();
        interfaces.dedup();
        let place = |name: &str| interfaces.iter().position(|i| *i == name).unwrap_or_default();
        let from_to = config.lines.iter().map(|l| (place(&l.from), place(&l.to))).collect();
        let open = |name: &&str| {
            Port::open(name, config).map_err(|e| io::Error::new(e.kind(), format!("interface {name}: {e}")))
        };
        // A port without the kernel's stamps is as exact as it is looked at often.
        let stamped = config.port != PortKind::Tap;
        let least_ns = config.lines.iter().map(|l| l.delay_ns).min().unwrap_or(LOOK_NS);
        Ok(Self {
            names: config.lines.iter().map(|l| l.name.clone()).collect(),
            lines: config.lines.iter().enumerate().map(|(i, l)| Line::new(l, config.seed, i)).collect(),
            ports: interfaces.iter().map(open).collect::<io::Result<_>>()?,
            from_to,
            tick_ns: config.tick_ns,
            look_ns: if stamped { (least_ns / 2).clamp(config.tick_ns, LOOK_NS) } else { config.tick_ns },
            punctuality: config.realtime.then(sys::be_punctual),
            wakes: 0,
        })
    }

    /// One round: everything that has arrived is taken, everything due by half a tick from now is sent.
    /// When to call next.
    ///
    /// # Errors
    /// When an interface has failed.
    pub fn round(&mut self) -> io::Result<Nanos> {
        self.wakes += 1;
        for (line, &(from, _)) in self.lines.iter_mut().zip(&self.from_to) {
            self.ports[from].receive(|arrived, frame| line.accept(arrived, frame))?;
        }
        let began = Nanos::now();
        let mut next = began.after(self.look_ns);
        for (line, &(_, to)) in self.lines.iter_mut().zip(&self.from_to) {
            let by = began.after(self.tick_ns / 2);
            send_due(line, &mut self.ports[to], by)?;
            next = next.min(line.next_due().unwrap_or(next));
        }
        Ok(next.max(began.after(self.tick_ns)))
    }

    /// Serves until standard input closes. Answers each line `stats` there with one JSON line.
    ///
    /// # Errors
    /// When an interface has failed, or nobody reads the answers any more.
    pub fn serve(&mut self, input: &mut io::StdinLock<'_>) -> io::Result<()> {
        let fd = io::stdin().as_raw_fd();
        let mut look = Nanos::now();
        loop {
            let next = self.round()?;
            if next > look {
                look = next.after(CONTROL_NS);
                if sys::readable(fd) {
                    let mut command = String::new();
                    if input.read_line(&mut command)? == 0 {
                        return Ok(());
                    }
                    self.answer()?;
                }
            }
            next.sleep_until();
        }
    }

    /// What has been done so far.
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
                late_ns: line.lateness.spread(),
            })
            .collect();
        Stats { lines, cpu_s: sys::cpu_s(), wakes: self.wakes, punctuality: self.punctuality }
    }

    fn answer(&mut self) -> io::Result<()> {
        let mut output = io::stdout().lock();
        serde_json::to_writer(&mut output, &self.stats())?;
        output.write_all(b"\n")?;
        output.flush()
    }
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
