//! `waterfilld csig`.

use std::io::{self, BufRead as _, Write as _};

use anyhow::{Context as _, Result};
use nix::net::if_::if_nametoindex;
use nix::sys::signal::{SigSet, Signal};

use super::{Csig, Options, unload};
use crate::daemon::claim;
use crate::daemon::cli::CsigCommand;
use crate::daemon::error::user_error;
use crate::daemon::pins::{Pins, Role};
use crate::daemon::privileges;
use crate::daemon::probe::System;
use crate::daemon::router;

/// Runs the command.
pub(in crate::daemon) fn run(command: &CsigCommand) -> Result<()> {
    privileges::check()?;
    if command.off {
        let pins = Pins::find(command.pins.pins.clone())?.unwrap_or_else(Pins::none);
        if !pins.has(Role::Csig) {
            tracing::info!("csig is not loaded; {}", pins.describe());
            return Ok(());
        }
        let _lock = pins.lock(Role::Csig)?;
        return remove(&pins);
    }
    let options = command.options()?;
    for one in &options {
        let device = one.device.as_str();
        if_nametoindex(device)
            .map_err(|_| user_error(format!("device {device}: expected a network device of this namespace")))?;
    }
    let system = System::find()?;
    for one in &options {
        system.check_csig(&one.device)?;
    }
    // Threads inherit the mask, so it is set before the first one: then only the waiting thread gets these signals.
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        signals.add(signal);
    }
    signals.thread_block().context("cannot block signals")?;
    let claims = options.iter().map(|one| claim::tags(&one.device));
    let _claims = claims.collect::<Result<Vec<_>>>()?;
    let pins = if command.life.no_pin { Pins::none() } else { Pins::open(command.pins.pins.clone())? };
    let first = !pins.has(Role::Csig);
    let _lock = pins.lock(Role::Csig)?;
    let loaded = load(&pins, &options).inspect_err(|_| {
        // A first start that failed leaves nothing; a restart that failed leaves what ran before.
        if first {
            if let Err(e) = remove(&pins) {
                tracing::warn!("{e:#}");
            }
        }
    })?;
    tracing::info!("csig loaded; {}", pins.describe());
    if command.life.once {
        return Ok(());
    }
    if command.life.line {
        std::thread::spawn(move || {
            if let Ok(signal) = signals.wait() {
                tracing::info!("stopped by {signal}");
                std::process::exit(0);
            }
        });
        return answer_lines(&loaded);
    }
    let signal = signals.wait().context("cannot wait for a signal")?;
    tracing::info!("stopped by {signal}");
    Ok(())
}

/// Takes the programs off their devices, with their pins.
fn remove(pins: &Pins) -> Result<()> {
    unload(pins)?;
    pins.remove(Role::Csig)
}

fn load(pins: &Pins, options: &[Options]) -> Result<Csig> {
    let maps = router::pinned_maps(pins)?;
    if maps.is_empty() {
        tracing::warn!(
            "MaxNet's router is not loaded, or not pinned here: tags carry only what other hops write; \
             start waterfilld router first, then csig again"
        );
    }
    let mut csig = Csig::load(pins, &maps)?;
    for one in options {
        csig.set_device(one).with_context(|| format!("device {}", one.device))?;
    }
    csig.forget_others()?;
    csig.keep_last()?;
    Ok(csig)
}

fn answer_lines(csig: &Csig) -> Result<()> {
    let print = |text: &str| {
        let mut out = io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).context("standard output")
    };
    print(r#"{"ready":true}"#)?;
    for line in io::stdin().lock().lines() {
        line.context("standard input")?;
        print(&serde_json::json!({ "csig": csig.tags()? }).to_string())?;
    }
    Ok(())
}
