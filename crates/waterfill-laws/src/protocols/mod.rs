//! Protocols, each in a file or folder of its own that can be read next to its paper.

pub mod abc;
pub mod aecp;
pub mod alpha_rcp;
pub mod dcqcn;
pub mod hpcc;
pub mod ixcp;
pub mod jetmax;
pub mod maxnet;
pub mod maxnet2006;
pub mod mkc;
pub mod own;
pub mod poseidon;
pub mod powertcp;
pub mod pxcp;
pub mod rcp;
pub mod rocc;
pub mod scone;
pub mod sperc;
pub mod swift;
pub mod tcp;
pub mod theta_powertcp;
pub mod vcp;
pub mod window;
pub mod xcp;
