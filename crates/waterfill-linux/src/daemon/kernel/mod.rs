//! Access to the kernel: programs, pins, maps, hooks, and the table of laws. This module does not depend on any role.

pub(crate) mod claim;
pub(crate) mod device;
pub(crate) mod hook;
pub(crate) mod interface;
pub(crate) mod law;
pub(crate) mod laws;
pub(crate) mod object;
pub(crate) mod pins;
pub(crate) mod privileges;
pub(crate) mod probe;
pub(crate) mod safety;
pub(crate) mod skeleton;
pub(crate) mod steps;
pub(crate) mod tc;
