//! Objects with the kernel programs, compiled from `bpf/` for each law and role and embedded in the daemon.
//!
//! Maps and programs have the same names in each, so one loader serves every law.

use std::ffi::OsStr;

use anyhow::{Context as _, Result};
use libbpf_rs::{Map, MapCore as _, MapMut, Object, ObjectBuilder, OpenMapMut, OpenObject, ProgramMut};

/// Bytes aligned for the structures of an ELF file.
#[derive(Debug)]
#[repr(C, align(8))]
pub(crate) struct Aligned<B: ?Sized>(pub(crate) B);

/// Embeds an object file that build.rs has compiled.
macro_rules! embedded {
    ($name:literal) => {{
        static OBJECT: &$crate::daemon::kernel::object::Aligned<[u8]> =
            &$crate::daemon::kernel::object::Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")));
        &OBJECT.0
    }};
}
pub(crate) use embedded;

/// Names of the maps for the step log, which are created only if the log is on (`bpf/steps.h`).
pub(crate) const STEPS: [&str; 2] = ["steps", "steps_lost"];
const STEPS_SWITCH: &str = ".rodata.steps";
/// Size of the step log's ring buffer in bytes, enough for at least 20,000 steps.
const STEPS_BYTES: u32 = 1 << 24;

/// Opens an object for changes before it is loaded. The object's step log is off.
pub(crate) fn open(bytes: &[u8]) -> Result<OpenObject> {
    let mut object = ObjectBuilder::default().open_memory(bytes).context("cannot read the kernel programs")?;
    for mut map in object.maps_mut().filter(|map| STEPS.iter().any(|name| map.name() == OsStr::new(name))) {
        map.set_autocreate(false)?;
    }
    Ok(object)
}

/// Turns on the step log of an object that is not loaded yet.
pub(crate) fn log_steps(object: &mut OpenObject) -> Result<()> {
    for name in STEPS {
        open_map(object, name)?.set_autocreate(true)?;
    }
    open_map(object, STEPS[0])?.set_max_entries(STEPS_BYTES)?;
    open_map(object, STEPS_SWITCH)?.set_initial_value(&1u32.to_ne_bytes()).context("cannot turn the log of steps on")
}

/// Returns a map of an object that is not loaded yet.
pub(crate) fn open_map<'o>(object: &'o mut OpenObject, name: &str) -> Result<OpenMapMut<'o>> {
    object.maps_mut().find(|map| map.name() == OsStr::new(name)).with_context(|| format!("no map {name}"))
}

/// Returns a map of a loaded object.
pub(crate) fn map<'o>(object: &'o Object, name: &str) -> Result<Map<'o>> {
    object.maps().find(|map| map.name() == OsStr::new(name)).with_context(|| format!("no map {name}"))
}

/// Returns a map of a loaded object for pinning or attaching.
pub(crate) fn map_mut<'o>(object: &'o mut Object, name: &str) -> Result<MapMut<'o>> {
    object.maps_mut().find(|map| map.name() == OsStr::new(name)).with_context(|| format!("no map {name}"))
}

/// Returns a program of a loaded object.
pub(crate) fn program<'o>(object: &'o Object, name: &str) -> Result<ProgramMut<'o>> {
    object.progs_mut().find(|program| program.name() == OsStr::new(name)).with_context(|| format!("no program {name}"))
}
