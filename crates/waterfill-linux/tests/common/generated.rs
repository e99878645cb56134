//! Modules with code that libbpf-cargo has generated from `bpf/`.

/// Declares a module of generated code: `generated!(skeleton, "scone.skel.rs")`.
macro_rules! generated {
    ($name:ident, $file:literal) => {
        #[allow(
            missing_docs,
            unsafe_code,
            clippy::all,
            clippy::pedantic,
            clippy::undocumented_unsafe_blocks,
            clippy::allow_attributes_without_reason,
            unreachable_pub,
            dead_code,
            unused_imports,
            unused_qualifications,
            missing_debug_implementations,
            reason = "generated"
        )]
        mod $name {
            include!(concat!(env!("OUT_DIR"), "/", $file));
        }
    };
}
pub(crate) use generated;
