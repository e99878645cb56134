//! Options of the roles, as users write them on the command line or in the configuration file.
//!
//! One structure per role is read from both, so that an option has one name, one parser, one default and one description.
//! Values have types of their own ([`values`]), whose errors say what to write. Nothing here asks the kernel.

pub(crate) mod csig;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod host;
pub(crate) mod names;
pub(crate) mod network;
pub(crate) mod quantity;
pub(crate) mod reading;
pub(crate) mod router;
pub(crate) mod values;

pub(crate) use csig::{CsigOptions, TagFormat, TagRole, TagSignal};
pub(crate) use host::HostOptions;
pub(crate) use names::{Names, Wrong};
pub(crate) use router::{CohabitController, RouterOptions};
