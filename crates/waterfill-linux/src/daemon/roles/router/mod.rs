//! Router role: the program at a device's egress, with its links and its shaper.
//!
//! The map of links and one link per device are pinned. A new process takes over the map with its prices, and replaces the
//! running program by its own without a gap. The map also records what was created on a device, so that unloading can
//! remove it.

mod cohabit;
mod leftovers;
mod paths;
mod separate;
mod setup;
mod shaper;
mod status;
#[cfg(test)]
mod tests;
mod unload;
mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, Map, MapCore as _, MapFlags, MapHandle, Object, OpenObject, ProgramInput};
use nix::net::if_::{if_indextoname, if_nametoindex};

use crate::daemon::kernel::device::{self, header_bytes, namespace};
use crate::daemon::kernel::hook::{self, Chain};
use crate::daemon::kernel::interface::{
    Attachment, Bytes as _, Command, CommandResult, Created, Layout, Request, read_name, write_name, write_params,
};
use crate::daemon::kernel::law::LoadableLaw;
use crate::daemon::kernel::object;
use crate::daemon::kernel::pins::{PinNames, Pins, Role};
use crate::daemon::kernel::steps::{StepLog, Target};
use crate::daemon::kernel::tc;
use crate::daemon::options::error::user_error;
use crate::daemon::roles::scone;
use unload::{attachments, ifindex, restore, unload_device};

pub(crate) use leftovers::remove_leftovers;
pub(crate) use separate::UPDATE;
pub(crate) use setup::LinkSetup;
pub(crate) use shaper::ShaperState;
pub(crate) use status::LinkStatus;
pub(crate) use unload::{unload, unload_devices};

// Bits of what was created on a device.
const FILTER: u32 = Created::WATERFILL_CREATED_FILTER.0;
const CLSACT: u32 = Created::WATERFILL_CREATED_CLSACT.0;
const SHAPER: u32 = Created::WATERFILL_CREATED_SHAPER.0;

/// Name of the packet program in the object. [`LINKS`] is the name of its map of links.
const PROGRAM: &str = "waterfill_router";
const LINKS: &str = "links";
/// Names of the maps with the state of links, which [`LINKS`] refers to.
const STATE: [&str; 2] = ["slots", "cpus"];
/// Names of the router's pins: maps, with those of modules last, and links of devices.
const PINS: PinNames = PinNames {
    role: Role::Router,
    names: &[LINKS, STATE[0], STATE[1], "cohabit", "scone"],
    by_device: &["device-", "cohabit-", "scone-"],
};

/// Loaded router programs of a law, with their devices.
pub(crate) struct Router {
    /// Log of the law's steps, which ends with the router.
    _steps: Option<StepLog>,
    object: Object,
    law: &'static LoadableLaw,
    pins: Pins,
    /// Links that this process has opened, by device index.
    links: BTreeMap<u32, Link>,
    /// Setup and index of each attached device by name. An index of 0 means that the device is gone.
    followed: BTreeMap<String, (LinkSetup, u32)>,
    /// Prices with which links start again, by device name. They come from a map of another layout, or from a device
    /// that is gone.
    prices: BTreeMap<String, u64>,
    cohabit: Option<cohabit::Cohabit>,
    scone: Option<scone::Scone>,
    /// Divisions of devices that have a queue per class, by device index.
    divisions: BTreeMap<u32, separate::Division>,
    /// Qdiscs of others in the place of a shaper, by device index.
    replaced: BTreeMap<u32, String>,
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("pins", &self.pins).finish_non_exhaustive() // libbpf-rs's objects have no Debug
    }
}

impl Router {
    /// Loads the programs. Pinned maps keep their state, and attached devices run the new program.
    pub(crate) fn load(law: &'static LoadableLaw, pins: &Pins) -> Result<Self> {
        Self::load_with(law, pins, None)
    }

    /// Loads the programs like [`Router::load`], with an optional log of the law's steps.
    pub(crate) fn load_with(law: &'static LoadableLaw, pins: &Pins, steps: Option<&Target>) -> Result<Self> {
        let mut router = Self::open(law, pins, true, steps)?;
        for key in router.map()?.keys().collect::<Vec<_>>() {
            let ifindex = ifindex(&key);
            // A layout of 0 is an older version's, whose program runs until the device is attached again.
            let attachment = router.show(ifindex)?.attachment;
            if attachment.namespace == namespace()? {
                if if_indextoname(ifindex).is_err() {
                    router.prices.insert(read_name(&attachment.device), attachment.price);
                    router.remove_link(ifindex)?; // the device was removed
                    continue;
                }
                if attachment.created & FILTER != 0 && attachment.layout != 0 {
                    let clsact = attachment.created & CLSACT != 0;
                    hook::attach_filter(&object::program(&router.object, PROGRAM)?, ifindex, clsact)?;
                }
            }
            if attachment.layout != 0 {
                router.replace_program(ifindex)?;
            }
        }
        Ok(router)
    }

    /// Loads the programs with the pinned map, or with a new one. Without `mark`, the packet program is not loaded and
    /// no pin is changed.
    fn open(law: &'static LoadableLaw, pins: &Pins, mark: bool, steps: Option<&Target>) -> Result<Self> {
        let mut open = object::open(law.router)?;
        if steps.is_some() {
            object::log_steps(&mut open)?;
        }
        for mut program in open.progs_mut().filter(|program| program.name() == PROGRAM) {
            program.set_autoload(mark);
        }
        let path = paths::links(pins);
        let state: Vec<_> = STATE.iter().filter_map(|name| Some((*name, paths::map(pins, name)?))).collect();
        let mut old = None;
        if let Some(path) = path.as_deref().filter(|path| path.exists()) {
            let map = MapHandle::from_pinned_path(path).with_context(|| format!("cannot open {}", path.display()))?;
            let reused: Vec<_> = [(LINKS, path.to_owned())].into_iter().chain(state.clone()).collect();
            if is_compatible(&map)? && have_the_sizes(&mut open, &reused)? {
                for (name, path) in &reused {
                    let mut map = object::open_map(&mut open, name)?;
                    map.reuse_pinned_map(path).context("cannot take over the pinned maps")?;
                }
            } else if mark {
                old = Some(attachments(&map)?);
            } else {
                bail!("{} is from another version: restart the daemon, or run waterfilld unload", path.display());
            }
        }
        let mut object = open.load().context("the kernel refused the router programs")?;
        let mut prices = BTreeMap::new();
        for (ifindex, attachment) in old.iter().flatten() {
            prices.insert(read_name(&attachment.device), attachment.price);
            // What was created on the device is known.
            unset(&object::map(&object, LINKS)?, *ifindex, attachment)?;
        }
        if let Some(path) = path.filter(|path| mark && (old.is_some() || !path.exists())) {
            // The map of links last, because the others are of use with it only.
            for (name, path) in state.into_iter().chain([(LINKS, path)]) {
                if path.exists() {
                    fs::remove_file(&path)?;
                }
                object::map_mut(&mut object, name)?
                    .pin(&path)
                    .with_context(|| format!("cannot pin {}", path.display()))?;
            }
        }
        let steps = steps.map(|target| StepLog::start(target, law, "router", &object)).transpose()?;
        Ok(Self {
            _steps: steps,
            object,
            law,
            pins: pins.clone(),
            links: BTreeMap::new(),
            followed: BTreeMap::new(),
            prices,
            cohabit: None,
            scone: None,
            divisions: BTreeMap::new(),
            replaced: BTreeMap::new(),
        })
    }

    /// Returns the maps with the state of links, in the order of [`pinned_maps`].
    pub(crate) fn maps(&self) -> Result<Vec<MapHandle>> {
        let handle = |name| Ok(MapHandle::try_from(&object::map(&self.object, name)?)?);
        [LINKS].into_iter().chain(STATE).map(handle).collect()
    }

    /// Returns the map of links.
    fn map(&self) -> Result<Map<'_>> {
        object::map(&self.object, LINKS)
    }

    /// Attaches the program to a device's egress, or reconfigures an attached link. The link keeps its price.
    pub(crate) fn attach(&mut self, setup: &LinkSetup) -> Result<()> {
        self.attach_by(setup, Hook::Newest)?;
        self.apply_modules(setup, None)
    }

    /// Attaches the modules that a link's setup asks for, and detaches all others. A module that the setup `before` had
    /// in the same form stays.
    fn apply_modules(&mut self, setup: &LinkSetup, before: Option<&LinkSetup>) -> Result<()> {
        let ifindex = if_nametoindex(setup.device())?;
        let header = header_bytes(setup.device())?;
        // The module's measurements start again when it is attached.
        if !before.is_some_and(|before| before.same_cohabit(setup)) {
            cohabit::apply(&mut self.cohabit, &self.pins, setup, ifindex, header)?;
        }
        if let (Some(scone), true) =
            (&self.scone, setup.options.scone && before.is_some_and(|before| before.options.scone))
        {
            return scone.change(self.law, &setup.parameters, ifindex);
        }
        let links = object::map(&self.object, LINKS)?;
        let parameters = setup.options.scone.then_some(&setup.parameters[..]);
        scone::apply(&mut self.scone, &links, &self.pins, self.law, parameters, ifindex, header)
    }

    /// Attaches the program to a device, or applies changes of its setup. Returns false if the device does not exist;
    /// [`Router::follow`] attaches the program later.
    pub(crate) fn set_device(&mut self, setup: &LinkSetup) -> Result<bool> {
        let device = setup.device();
        let before = self.followed.get(device).filter(|(_, ifindex)| *ifindex != 0).map(|(before, _)| before.clone());
        if if_nametoindex(device).is_err() {
            let index = self.followed.get(device).map_or(0, |(_, ifindex)| *ifindex);
            self.followed.insert(device.into(), (setup.clone(), index));
            return Ok(false);
        }
        self.attach_by(setup, Hook::Newest)?;
        self.apply_modules(setup, before.as_ref())?;
        Ok(true)
    }

    /// Changes the rate of an attached device's link. The link keeps its signal. No program is attached again unless
    /// the link has a shaper or a module.
    pub(crate) fn set_rate(&mut self, setup: &LinkSetup) -> Result<()> {
        let device = setup.device();
        let ifindex = self.followed.get(device).map_or(0, |(_, ifindex)| *ifindex);
        if ifindex == 0 || setup.options.shape || setup.cohabit.is_some() || setup.options.scone {
            return self.set_device(setup).map(drop);
        }
        let created = self.show(ifindex)?.attachment.created;
        self.set(setup, ifindex, header_bytes(device)?, created)?;
        self.followed.insert(device.into(), (setup.clone(), ifindex));
        Ok(())
    }

    /// Resets an attached device's link as a restart of its router would. The link loses its signal, state and
    /// counters. The program, the queue and everything else at the device stay.
    pub(crate) fn restart(&mut self, device: &str) -> Result<()> {
        let known = self.followed.get(device).filter(|(_, ifindex)| *ifindex != 0).cloned();
        let missing = || user_error(format!("device {device}: not attached by this router"));
        let (setup, ifindex) = known.ok_or_else(missing)?;
        self.prices.remove(device);
        let attachment = self.show(ifindex)?.attachment;
        unset(&self.map()?, ifindex, &attachment)?;
        self.set(&setup, ifindex, header_bytes(device)?, attachment.created)
    }

    /// Detaches the program from a device, and removes everything that was created there.
    pub(crate) fn detach(&mut self, device: &str) -> Result<()> {
        let followed = self.followed.remove(device);
        self.prices.remove(device);
        if let Some((_, ifindex)) = followed.filter(|(_, ifindex)| *ifindex != 0) {
            self.divisions.remove(&ifindex);
            self.replaced.remove(&ifindex);
            self.links.remove(&ifindex);
            if let Some(cohabit) = &mut self.cohabit {
                cohabit.forget(ifindex);
            }
            if let Some(scone) = &mut self.scone {
                scone.forget(ifindex);
            }
        }
        unload_device(&self.pins, device)
    }

    /// Detaches the program from devices of an earlier start that this process does not follow. Returns the names of
    /// these devices.
    pub(crate) fn forget_others(&mut self) -> Result<Vec<String>> {
        let here = namespace()?;
        let found = attachments(&MapHandle::try_from(&self.map()?)?)?;
        let others = found.into_iter().filter(|(_, attachment)| attachment.namespace == here);
        let others = others.map(|(ifindex, attachment)| (ifindex, device::name(ifindex, &attachment)));
        let followed = |ifindex| self.followed.values().any(|(_, index)| *index == ifindex);
        let others: Vec<_> = others.filter(|(ifindex, _)| !followed(*ifindex)).collect();
        for (ifindex, name) in &others {
            self.links.remove(ifindex);
            unload_device(&self.pins, name)?;
        }
        Ok(others.into_iter().map(|(_, name)| name).collect())
    }

    /// Returns the names of followed devices that do not exist now.
    pub(crate) fn missing(&self) -> Vec<String> {
        let missing = self.followed.iter().filter(|(_, (_, ifindex))| *ifindex == 0);
        missing.map(|(device, _)| device.clone()).collect()
    }

    /// Attaches the program to devices that reappeared under their name, such as an adapter that was plugged in again.
    /// Links keep their prices. An error is logged, and the next call tries again.
    pub(crate) fn follow(&mut self) {
        for (setup, then) in self.followed.clone().into_values() {
            if let Err(e) = self.follow_device(&setup, then) {
                tracing::warn!("device {}: {e:#}", setup.device());
            }
        }
    }

    fn follow_device(&mut self, setup: &LinkSetup, then: u32) -> Result<()> {
        let device = setup.device();
        let now = if_nametoindex(device).unwrap_or(0);
        // The link knows that its device went, also if another one has its index.
        let info = self.links.get(&then).and_then(|link| link.info().ok());
        let lost = info.is_some_and(|info| !matches!(info.info, LinkTypeInfo::Tcx(tcx) if tcx.ifindex == then));
        if now == then && !lost {
            return Ok(());
        }
        if then != 0 {
            let attachment = self.show(then)?.attachment;
            self.prices.insert(device.into(), attachment.price);
            if now != then {
                // It may also be there by another name.
                restore(&MapHandle::try_from(&self.map()?)?, then, &attachment)?;
            }
            self.remove_link(then)?;
            self.followed.insert(device.into(), (setup.clone(), 0));
            tracing::warn!(event = "device_went", device, law = self.law.name, "device {device} went");
        }
        if now != 0 {
            self.attach(setup)?;
            tracing::info!(event = "device_came", device, law = self.law.name, "device {device} came: attached");
        }
        Ok(())
    }

    fn attach_by(&mut self, setup: &LinkSetup, wanted: Hook) -> Result<()> {
        let ifindex = self.attach_to(setup, wanted)?;
        self.followed.insert(setup.device().to_owned(), (setup.clone(), ifindex));
        let before = self.chain(ifindex, true)?.before;
        if !before.is_empty() {
            tracing::warn!(
                "device {}: {} runs before this router and may keep packets from it",
                setup.device(),
                before.join(", ")
            );
        }
        Ok(())
    }

    /// Attaches the program to a device. Returns the device's index.
    fn attach_to(&mut self, setup: &LinkSetup, wanted: Hook) -> Result<u32> {
        let device = setup.device();
        let ifindex =
            if_nametoindex(device).map_err(|_| user_error(format!("--dev {device}: not in this network namespace")))?;
        let header_bytes = header_bytes(device)?;
        let key = ifindex.to_ne_bytes();
        if self.map()?.lookup(&key, MapFlags::ANY)?.is_none() {
            let empty = vec![0; self.map()?.value_size() as usize];
            self.map()?.update(&key, &empty, MapFlags::NO_EXIST)?;
        }
        let attachment = self.show(ifindex)?.attachment;
        ensure!(
            attachment.namespace == 0 || attachment.namespace == namespace()?,
            "the pins belong to another network namespace: give this one its own (--pins DIR)"
        );
        let mut created = attachment.created;
        // Recorded before it is done, so that it is undone in any case.
        if setup.options.shape {
            created |= SHAPER;
        }
        self.set(setup, ifindex, header_bytes, created)?;
        if setup.options.shape {
            self.divisions.remove(&ifindex);
            if let Err(e) = shaper::install(device, &setup.shaping(header_bytes)) {
                self.set(setup, ifindex, header_bytes, attachment.created)?;
                return Err(e);
            }
            self.replaced.remove(&ifindex);
        } else if created & SHAPER != 0 {
            shaper::remove(device)?;
            created &= !SHAPER;
            self.set(setup, ifindex, header_bytes, created)?;
        }
        if self.replace_program(ifindex)? {
            if self.chain(ifindex, false)?.before.is_empty() {
                return Ok(ifindex);
            }
            // A link cannot be moved to the head of the chain: a new one takes its place there.
            let link = self.links.remove(&ifindex);
            if let Some(path) = paths::device(&self.pins, ifindex).filter(|path| path.exists()) {
                fs::remove_file(path)?;
            }
            drop(link);
        }
        if created & FILTER == 0 && wanted == Hook::Newest {
            if let Some(mut link) = hook::attach(&object::program(&self.object, PROGRAM)?, ifindex)? {
                if let Some(path) = paths::device(&self.pins, ifindex) {
                    link.pin(&path).with_context(|| format!("cannot pin {}", path.display()))?;
                }
                self.links.insert(ifindex, link);
                return Ok(ifindex);
            }
        }
        if created & FILTER == 0 {
            // A router that was killed may have left its filter, and clsact that it had made.
            let ours = !tc::has_clsact(device)? || hook::made_clsact(device)?;
            created |= FILTER | if ours { CLSACT } else { 0 };
            self.set(setup, ifindex, header_bytes, created)?;
        }
        hook::attach_filter(&object::program(&self.object, PROGRAM)?, ifindex, created & CLSACT != 0)?;
        Ok(ifindex)
    }

    /// Returns the programs around the router's at a device. Without `filters`, the filters of clsact are left out
    /// because listing them runs `tc`.
    fn chain(&self, ifindex: u32, filters: bool) -> Result<Chain> {
        let attachment = self.show(ifindex)?.attachment;
        if attachment.namespace != namespace()? {
            return Ok(Chain::default());
        }
        if attachment.created & FILTER != 0 {
            let Ok(device) = if_indextoname(ifindex) else { return Ok(Chain::default()) };
            let chain = if filters { hook::filter_chain(&device.to_string_lossy())? } else { None };
            return Ok(chain.unwrap_or_default());
        }
        let pinned = || Link::open(paths::device(&self.pins, ifindex).filter(|path| path.exists())?).ok()?.info().ok();
        let info = self.links.get(&ifindex).map_or_else(pinned, |link| link.info().ok());
        // The device may be removed meanwhile.
        let chain = info.and_then(|info| hook::chain(ifindex, info.prog_id).ok().flatten());
        let mut chain = chain.unwrap_or_default();
        chain.before.retain(|name| name != cohabit::PROGRAM);
        chain.after.retain(|name| ![scone::PROGRAM, hook::CSIG_PROGRAM].contains(&name.as_str()));
        Ok(chain)
    }

    /// Replaces the program of a device's link. Returns true if there is a link.
    fn replace_program(&mut self, ifindex: u32) -> Result<bool> {
        if let Some(path) =
            paths::device(&self.pins, ifindex).filter(|path| !self.links.contains_key(&ifindex) && path.exists())
        {
            let link = Link::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
            // A link outlives its device, and is useless then.
            if matches!(link.info()?.info, LinkTypeInfo::Tcx(tcx) if tcx.ifindex == ifindex) {
                self.links.insert(ifindex, link);
            } else {
                fs::remove_file(&path)?;
            }
        }
        let Some(link) = self.links.get_mut(&ifindex) else { return Ok(false) };
        let program = object::program(&self.object, PROGRAM)?;
        link.update_prog(&program).context("cannot replace a link's program")?;
        Ok(true)
    }

    fn set(&self, setup: &LinkSetup, ifindex: u32, header_bytes: u32, created: u32) -> Result<()> {
        let mut attachment = Attachment {
            created,
            namespace: namespace()?,
            price: self.prices.get(setup.device()).copied().unwrap_or(0),
            ..Attachment::default()
        };
        write_name(&mut attachment.device, setup.device());
        let mut request = Request {
            command: Command::WATERFILL_SET,
            ifindex,
            attachment,
            rate: setup.rate_bps(),
            target: setup.target.map_or(0, |target| (target * 1e6).round() as u32),
            virtual_only: setup.options.virtual_queue.into(),
            overhead_bytes: setup.options.overhead.0,
            header_bytes,
            ..Request::default()
        };
        write_params(&mut request.params, &setup.parameters);
        self.execute(&mut request)
    }

    fn show(&self, ifindex: u32) -> Result<Request> {
        let mut request = Request { command: Command::WATERFILL_SHOW, ifindex, ..Request::default() };
        self.execute(&mut request)?;
        Ok(request)
    }

    /// Executes a request in the kernel, which writes its answers into the request.
    fn execute(&self, request: &mut Request) -> Result<()> {
        // Another CPU holds the lock for less than a microsecond, unless it is interrupted; a timer may be late.
        for attempt in 0..1000 {
            let input = ProgramInput { context_in: Some(request.as_bytes_mut()), ..ProgramInput::default() };
            let output = object::program(&self.object, "waterfill_ask")?
                .test_run(input)
                .context("cannot run the router program")?;
            match CommandResult(output.return_value) {
                CommandResult::WATERFILL_OK => return Ok(()),
                CommandResult::WATERFILL_BUSY if attempt < 100 => std::thread::yield_now(),
                CommandResult::WATERFILL_BUSY => std::thread::sleep(Duration::from_micros(100)),
                _ => bail!("no link on device {}", request.ifindex),
            }
        }
        bail!("the link on device {} stays locked", request.ifindex)
    }

    /// Returns the state of all links, sorted by device name. With `look`, the shaper and the clsact filters around the
    /// router's are looked at, which runs `tc`.
    fn list(&self, look: bool) -> Result<Vec<LinkStatus>> {
        let mut links = Vec::new();
        for key in self.map()?.keys() {
            let answer = self.show(ifindex(&key))?;
            if answer.attachment.layout != 0 {
                let mut link = LinkStatus::of(self.law, &answer, self.chain(ifindex(&key), look)?);
                link.shaper = self.shaper_state(ifindex(&key), &answer.attachment, look)?;
                link.cohabit = cohabit::status(self.cohabit.as_ref(), &self.pins, ifindex(&key))?;
                link.scone = scone::status(self.scone.as_ref(), &self.pins, ifindex(&key), answer.attachment.price)?;
                links.push(link);
            }
        }
        links.sort_by(|a, b| a.device.cmp(&b.device));
        Ok(links)
    }

    /// Returns the state of all links, sorted by device name, without the filters of clsact. It does not run `tc`.
    pub(crate) fn links(&self) -> Result<Vec<LinkStatus>> {
        self.list(false)
    }

    /// Removes the link of a device that is gone.
    fn remove_link(&mut self, ifindex: u32) -> Result<()> {
        if let Some(path) = paths::device(&self.pins, ifindex).filter(|path| path.exists()) {
            fs::remove_file(path)?;
        }
        self.links.remove(&ifindex);
        self.replaced.remove(&ifindex);
        scone::detach(&self.pins, ifindex)?;
        self.map()?.delete(&ifindex.to_ne_bytes())?;
        Ok(())
    }
}

impl Drop for Router {
    /// Removes filters and shapers, which would outlive a process without pins.
    fn drop(&mut self) {
        if paths::links(&self.pins).is_some() {
            return;
        }
        let restore_all = || -> Result<()> {
            let map = MapHandle::try_from(&self.map()?)?;
            for (ifindex, attachment) in attachments(&map)? {
                restore(&map, ifindex, &attachment)?;
            }
            Ok(())
        };
        if let Err(e) = restore_all() {
            tracing::warn!("{e:#}");
        }
    }
}

/// Kind of kernel hook to attach to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hook {
    Newest,
    #[cfg_attr(not(test), expect(dead_code, reason = "outside tests, only where the kernel has no other"))]
    Filter,
}

/// Opens the pinned maps with the state of links. Returns no maps if any of them is missing.
pub(crate) fn pinned_maps(pins: &Pins) -> Result<Vec<MapHandle>> {
    let paths: Option<Vec<_>> = [LINKS].into_iter().chain(STATE).map(|name| paths::map(pins, name)).collect();
    let paths = paths.filter(|paths| paths.iter().all(|path| path.exists())).unwrap_or_default();
    let open =
        |path: &PathBuf| MapHandle::from_pinned_path(path).with_context(|| format!("cannot open {}", path.display()));
    paths.iter().map(open).collect()
}

/// Returns the links of a pinned router, whether or not its daemon runs. Returns `None` if nothing is pinned.
pub(crate) fn pinned_links(law: &'static LoadableLaw, pins: &Pins) -> Result<Option<Vec<LinkStatus>>> {
    if !paths::links(pins).is_some_and(|path| path.exists()) {
        return Ok(None);
    }
    Router::open(law, pins, false, None)?.list(true).map(Some)
}

/// Writes a device's map entry without a layout. The link then counts as not set, and starts anew.
fn unset(links: &Map<'_>, ifindex: u32, attachment: &Attachment) -> Result<()> {
    let mut value = vec![0; links.value_size() as usize];
    let attachment = Attachment { layout: 0, ..*attachment };
    value[..size_of::<Attachment>()].copy_from_slice(attachment.as_bytes());
    Ok(links.update(&ifindex.to_ne_bytes(), &value, MapFlags::ANY)?)
}

/// Returns true if all links in a pinned map have this version's layout.
fn is_compatible(map: &MapHandle) -> Result<bool> {
    let mut set = attachments(map)?.into_values().filter(|attachment| attachment.layout != 0);
    Ok(set.all(|attachment| attachment.layout == Layout::WATERFILL_LAYOUT.0))
}

/// Returns true if pinned maps have the same value sizes as the maps of an object.
fn have_the_sizes(open: &mut OpenObject, pinned: &[(&str, PathBuf)]) -> Result<bool> {
    for (name, path) in pinned {
        let Ok(map) = MapHandle::from_pinned_path(path) else { return Ok(false) };
        if map.value_size() != object::open_map(open, name)?.value_size() {
            return Ok(false);
        }
    }
    Ok(true)
}
