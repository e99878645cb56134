//! `waterfill-delay`: the testbed's delay line as a process.
//!
//! The first line of standard input is the configuration, a JSON document (`waterfill_linux::delay::config`). The answer is
//! `{"ready":true}`, and then one JSON line of statistics per line of input; the process ends when standard input closes.
//! `waterfill-delay probe` reads a measurement instead (`waterfill_linux::delay::probe`) and prints its report. Exit 2: wrong
//! input; 1: an interface failed.

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::process::ExitCode;

use waterfill_linux::delay::config::{Config, MAX_DOCUMENT_BYTES};
use waterfill_linux::delay::probe::Probe;
use waterfill_linux::delay::run::DelayLine;
use waterfill_linux::delay::sys;

fn main() -> ExitCode {
    let mut input = io::stdin().lock();
    let mut text = String::new();
    if let Err(e) = input.by_ref().take(MAX_DOCUMENT_BYTES + 1).read_line(&mut text) {
        return failed(2, &format!("no configuration on standard input: {e}"));
    }
    if text.len() as u64 > MAX_DOCUMENT_BYTES {
        return failed(2, &format!("the configuration has more than {MAX_DOCUMENT_BYTES} bytes"));
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => match Config::parse(&text) {
            Ok(config) => serve(&config, &mut input),
            Err(why) => return failed(2, &why),
        },
        ["probe"] => match Probe::parse(&text) {
            Ok(probe) => measure(&probe),
            Err(why) => return failed(2, &why),
        },
        _ => return failed(2, "unknown argument; type probe, or no argument"),
    };
    done.map_or_else(|why| failed(1, &why.to_string()), |()| ExitCode::SUCCESS)
}

fn failed(code: u8, why: &str) -> ExitCode {
    let line = why.split_whitespace().collect::<Vec<_>>().join(" "); // names may have anything in them
    eprintln!("waterfill-delay: {line}");
    ExitCode::from(code)
}

fn measure(probe: &Probe) -> io::Result<()> {
    sys::die_with_parent()?;
    if probe.rate_per_s > 0 {
        let _ = sys::request_realtime(); // at full speed it would block the CPU for everything else
    }
    println!("{}", serde_json::to_string(&probe.run()?)?);
    Ok(())
}

fn serve(config: &Config, input: &mut io::StdinLock<'_>) -> io::Result<()> {
    sys::die_with_parent()?;
    let mut line = DelayLine::open(config)?;
    println!("{{\"ready\":true}}");
    io::stdout().flush()?;
    line.serve(input)
}
