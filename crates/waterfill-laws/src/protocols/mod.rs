//! The protocols, one file each, each to be read beside its paper.

pub mod maxnet;
pub mod window;
