//! Objects with the kernel programs, compiled from `bpf/` for each law and role and embedded in the daemon.
//!
//! Maps and programs have the same names in each, so one loader serves every law.

use std::ffi::OsStr;
use std::ops::Range;

use anyhow::{Context as _, Result};
use libbpf_rs::btf::{Btf, types};
use libbpf_rs::{
    Map, MapCore as _, MapMut, Object, ObjectBuilder, OpenMapMut, OpenObject, ProgramMut, ReferencesType as _,
};

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

/// File with the kernel's type information.
pub(crate) const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Operation of a TCP congestion control for the first packet after a silence (Linux 7.1).
pub(crate) const TX_START: &str = "cwnd_event_tx_start";
/// Map of the host programs that contains the law's `struct tcp_congestion_ops`. [`LAW_TX_START`], [`LAW_NAME`] and
/// [`LAW_FLAGS`] are positions in the map's value (bpf/kernel_tcp.h).
pub(crate) const LAW_MAP: &str = "waterfill_law";
const LAW_TX_START: Range<usize> = 48..56;
#[cfg(test)]
const LAW_CONTROL: usize = 32;
pub(crate) const LAW_NAME: Range<usize> = 56..72;
pub(crate) const LAW_FLAGS: Range<usize> = 72..76;

/// Opens the host programs of a law, without an operation that the running kernel does not have: its program would be
/// refused.
pub(crate) fn open_host(bytes: &[u8]) -> Result<OpenObject> {
    let mut object = open(bytes)?;
    if !has_tx_start()? {
        let mut law = open_map(&mut object, LAW_MAP)?;
        let operation = law.initial_value_mut().and_then(|value| value.get_mut(LAW_TX_START));
        operation.context("no operations in the law")?.fill(0);
    }
    Ok(object)
}

/// Returns the type of an operation of TCP's congestion controls, or `None` if the kernel does not have it.
pub(crate) fn operation<'b>(btf: &'b Btf<'_>, name: &str) -> Option<types::FuncProto<'b>> {
    let operations = btf.type_by_name::<types::Struct<'_>>("tcp_congestion_ops")?;
    let field = operations.iter().find(|member| member.name.is_some_and(|found| found == name))?;
    let pointer = btf.type_by_id::<types::Ptr<'_>>(field.ty)?;
    types::FuncProto::try_from(pointer.referenced_type()).ok()
}

/// Returns true if the running kernel calls [`TX_START`].
fn has_tx_start() -> Result<bool> {
    let btf = Btf::from_path(BTF).with_context(|| format!("cannot read {BTF}"))?;
    Ok(operation(&btf, TX_START).is_some())
}

/// Opens host programs with which TCP runs another program in place of the law's `cong_control`, for a test.
#[cfg(test)]
pub(crate) fn open_without_control(bytes: &[u8]) -> Result<OpenObject> {
    let mut object = open(bytes)?;
    let mut law = open_map(&mut object, LAW_MAP)?;
    let value = law.initial_value_mut().context("no operations in the law")?;
    value.copy_within(LAW_TX_START, LAW_CONTROL);
    value[LAW_TX_START].fill(0);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::kernel::{laws, privileges};

    /// Position of the operation `release`, which has the same argument.
    const RELEASE: Range<usize> = 88..96;

    /// Kernels without the operation for the first packet after a silence check its program as another operation's.
    #[test]
    fn the_kernel_accepts_the_operation_of_later_kernels() {
        if let Err(why) = privileges::check() {
            eprintln!("skipped: {why}");
            return;
        }
        for law in laws::all() {
            let mut object = open(law.host).unwrap();
            let mut map = open_map(&mut object, LAW_MAP).unwrap();
            let value = map.initial_value_mut().unwrap();
            value.copy_within(LAW_TX_START, RELEASE.start);
            assert!(value[RELEASE].iter().any(|byte| *byte != 0));
            value[LAW_TX_START].fill(0);
            let loaded = object.load().unwrap_or_else(|e| panic!("{}: {e:#}", law.name));
            let names: Vec<_> = loaded.progs().map(|program| program.name().to_owned()).collect();
            assert!(names.iter().any(|name| name == "waterfill_law_tx_start"), "{names:?}");
        }
    }
}
