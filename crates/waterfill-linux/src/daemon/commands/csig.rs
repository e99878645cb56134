//! `waterfilld csig`: loads the programs that add CSIG tags at devices, or detaches them.

use std::io::{self, BufRead as _};

use anyhow::{Context as _, Result};
use nix::net::if_::if_nametoindex;

use super::cli::CsigCommand;
use super::output::print_line;
use super::signals;
use crate::daemon::kernel::claim;
use crate::daemon::kernel::pins::{Pins, Role};
use crate::daemon::kernel::privileges;
use crate::daemon::kernel::probe::System;
use crate::daemon::options::error::user_error;
use crate::daemon::roles::csig::{self, Csig, TagSetup};
use crate::daemon::roles::router;

/// Runs `waterfilld csig`.
pub(crate) fn run(command: &CsigCommand) -> Result<()> {
    privileges::check()?;
    if command.off {
        let pins = Pins::find(command.pins.pins.clone())?.unwrap_or_else(Pins::none);
        if !pins.has(Role::Csig) {
            tracing::info!("csig is not loaded; {}", pins.describe());
            return Ok(());
        }
        let _lock = pins.lock(Role::Csig)?;
        return csig::unload(&pins);
    }
    let setups = command.setups()?;
    for one in &setups {
        let device = one.device();
        if_nametoindex(device).map_err(|_| user_error(format!("device {device}: not in this network namespace")))?;
    }
    let system = System::find()?;
    for one in &setups {
        one.check_kernel(&system)?;
    }
    let signals = signals::block()?;
    let claims = setups.iter().map(|one| claim::tags(one.device()));
    let _claims = claims.collect::<Result<Vec<_>>>()?;
    let pins = if command.life.no_pin { Pins::none() } else { Pins::open(command.pins.pins.clone())? };
    let first = !pins.has(Role::Csig);
    let _lock = pins.lock(Role::Csig)?;
    let loaded = load(&pins, &setups).inspect_err(|_| {
        // A first start that failed leaves nothing; a restart that failed leaves what ran before.
        if first {
            if let Err(e) = csig::unload(&pins) {
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

fn load(pins: &Pins, setups: &[TagSetup]) -> Result<Csig> {
    let maps = router::pinned_maps(pins)?;
    if maps.is_empty() {
        tracing::warn!(
            "MaxNet's router is not loaded, or not pinned here: tags carry only what other hops write; \
             start waterfilld router first, then csig again"
        );
    }
    let mut csig = Csig::load(pins, &maps)?;
    for one in setups {
        csig.set_device(one).with_context(|| format!("device {}", one.device()))?;
    }
    csig.forget_others()?;
    csig.keep_last()?;
    Ok(csig)
}

fn answer_lines(csig: &Csig) -> Result<()> {
    print_line(r#"{"ready":true}"#)?;
    for line in io::stdin().lock().lines() {
        line.context("standard input")?;
        print_line(&serde_json::json!({ "csig": csig.tags()? }).to_string())?;
    }
    Ok(())
}
