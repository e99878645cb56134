//! The layout of the host's pinned maps. A version whose structures differ, also by the order of two fields, starts with new
//! maps, so that no program reads a state or a parameter as another one.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result};
use libbpf_rs::btf::types::{Array, Composite, Enum, Int, MemberAttr, Struct};
use libbpf_rs::btf::{Btf, BtfType, HasSize as _};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapType, libbpf_sys};

use super::{LAYOUT, MAPS};
use crate::daemon::kernel::law::LoadableLaw;
use crate::daemon::kernel::pins::Pins;

/// Version of what the fields mean. Raise it when a meaning or a unit changes and its name stays.
const MEANING: u32 = 1;
/// Structures in the maps (bpf/conn.h).
const STRUCTURES: [&str; 7] = [
    "host_params",
    "host_connection",
    "host_counters",
    "host_destination",
    "host_backoff",
    "host_prefix",
    "host_event",
];

/// Returns the digest of the layout of a law's maps: names, places and types of all fields, and of the law's parameters.
pub(super) fn digest(law: &LoadableLaw) -> Result<u64> {
    let btf = Btf::from_raw("host", law.host)?.context("the kernel programs have no types")?;
    let mut text = format!("{MEANING}");
    for name in STRUCTURES {
        let structure: Struct<'_> = btf.type_by_name(name).with_context(|| format!("no structure {name}"))?;
        text += name;
        add_members(&btf, &Composite::from(structure), &mut text);
    }
    for (name, offset, size) in law.kernel().params_fields() {
        let _ = write!(text, ",{name}@{offset}:{size}"); // a String takes all
    }
    Ok(fnv1a(text.as_bytes()))
}

fn add_members(btf: &Btf<'_>, of: &Composite<'_>, text: &mut String) {
    for member in of.iter() {
        let name = member.name.unwrap_or_default().to_string_lossy();
        let (offset, bits) = match member.attr {
            MemberAttr::Normal { offset } => (offset, 0),
            MemberAttr::BitField { size, offset } => (offset, size),
        };
        let _ = write!(text, ",{name}@{offset}/{bits}:");
        if let Some(of) = btf.type_by_id(member.ty) {
            add_type(btf, of, text);
        }
    }
}

fn add_type(btf: &Btf<'_>, of: BtfType<'_>, text: &mut String) {
    let of = of.skip_mods_and_typedefs();
    let _ = write!(text, "{:?}", of.kind());
    if let Ok(members) = Composite::try_from(of) {
        text.push('{');
        add_members(btf, &members, text);
        text.push('}');
    } else if let Ok(array) = Array::try_from(of) {
        let _ = write!(text, "[{}]", array.capacity());
        add_type(btf, array.contained_type(), text);
    } else if let Some(bytes) = size(of) {
        let _ = write!(text, "{bytes}");
    }
}

/// Returns the size of a number in bytes, or `None` for a pointer.
fn size(of: BtfType<'_>) -> Option<usize> {
    let int = Int::try_from(of).map(|of| of.size()).ok();
    int.or_else(|| Enum::try_from(of).map(|of| of.size()).ok())
}

/// Returns the hash FNV-1a of bytes.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Removes the pinned maps of another layout. Their connections fall back.
pub(super) fn remove_others(pins: &Pins, digest: u64) -> Result<()> {
    if pinned(pins)? == Some(digest) {
        return Ok(());
    }
    let mut found = false;
    for name in [LAYOUT].into_iter().chain(MAPS.map(|(pin, _)| pin)) {
        let Some(path) = pins.path(name).filter(|path| path.exists()) else { continue };
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        found = true;
    }
    if found {
        tracing::warn!("the pinned maps are from another version: connections fall back, and counters start at 0");
    }
    Ok(())
}

/// Returns the digest that is pinned with the maps, or `None` if there is none.
fn pinned(pins: &Pins) -> Result<Option<u64>> {
    let Some(path) = pins.path(LAYOUT).filter(|path| path.exists()) else { return Ok(None) };
    let map = MapHandle::from_pinned_path(&path).with_context(|| format!("cannot open {}", path.display()))?;
    let value = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?;
    Ok(value.and_then(|value| Some(u64::from_ne_bytes(*value.first_chunk()?))))
}

/// Pins the digest with the maps, unless it is pinned.
pub(super) fn pin(pins: &Pins, digest: u64) -> Result<()> {
    let Some(path) = pins.path(LAYOUT).filter(|path| !path.exists()) else { return Ok(()) };
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let mut map = MapHandle::create(MapType::Array, Some("layout"), 4, 8, 1, &options)?;
    map.update(&0_u32.to_ne_bytes(), &digest.to_ne_bytes(), MapFlags::ANY)?;
    map.pin(&path).with_context(|| format!("cannot pin {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::kernel::laws;

    #[test]
    fn a_layout_has_one_digest_and_another_law_another_one() {
        let of = |law: &str| digest(laws::find(law).unwrap()).unwrap();
        assert_eq!(of("maxnet"), of("maxnet"));
        assert_ne!(of("maxnet"), of("rcp"));
        // Both have the same structures, and the parameters alone differ.
        assert_ne!(of("xcp"), of("ixcp"));
    }

    #[test]
    fn the_digest_is_of_every_field_with_its_type() {
        let btf = Btf::from_raw("host", laws::default().host).unwrap().unwrap();
        let text = |name: &str| {
            let mut text = String::new();
            add_members(&btf, &Composite::from(btf.type_by_name::<Struct<'_>>(name).unwrap()), &mut text);
            text
        };
        assert_eq!(text("host_backoff"), ",until_ns@0/0:Int8,syn_failures@64/0:Int4,echo_failures@96/0:Int4");
        assert_eq!(text("host_destination"), ",netns@0/0:Int8,address@64/0:Array[4]Int4");
        let connection = text("host_connection");
        for part in [",source@0/0:Struct{", ",evidence@", ",probation@", ",weight@", ",retry_us@"] {
            assert!(connection.contains(part), "{part}: {connection}");
        }
    }
}
