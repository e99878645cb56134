//! Interface of a transport endpoint without I/O: a program that a packet simulator, a test or a real socket can drive.
//!
//! # Design
//!
//! An endpoint is one side of one connection: a client, which opens it and sends, or a server. It has no clock, no socket and
//! no randomness of its own. Its driver calls it with the time, and carries datagrams between the two sides:
//!
//! 1. [`Endpoint::start`], once per side. The client's application has data from then on ([`Endpoint::write`]).
//! 2. After every call, the driver takes datagrams with [`Endpoint::poll_transmit`] until there are none, then asks for
//!    [`Endpoint::next_timer`]. When that time has come, it polls again: an endpoint handles its timers in `poll_transmit`.
//! 3. A datagram that arrives is passed to [`Endpoint::handle`], with the ECN codepoint with which it arrived.
//! 4. [`Endpoint::read`] returns the application's bytes that have arrived in order since the last call.
//!
//! The same calls with the same arguments must give the same results: a simulator repeats runs by that. Datagrams are real:
//! their bytes arrive as they were sent, and a link carries their length plus the headers of IP and UDP. The application's bytes
//! are only counted, because congestion control does not read them; an endpoint sends whatever it likes in their place.
//!
//! Times are nanoseconds since the start of the run ([`Time`]). Nothing here allocates except the payload of a [`Datagram`].
//!
//! The feature `load` opens endpoints in shared libraries (`library`). They implement the C interface in
//! `include/waterfill_endpoint.h`, whose functions are those of this trait. [`export_endpoint!`] makes such a library of an
//! endpoint in Rust.

pub mod export;
#[cfg(feature = "load")]
pub mod library;

use std::fmt;

/// A time in nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// Returns the nanoseconds since the start of the run.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the nanoseconds from `earlier` to this time, zero if `earlier` is later.
    #[must_use]
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// ECN codepoint of a datagram's IP header (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct = 0,
    /// ECT(1), which stands for L4S (RFC 9331).
    Ect1 = 1,
    /// ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// Returns the codepoint of these two bits of the IP header. Higher bits are ignored.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// A UDP datagram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// ECN codepoint of the IP header.
    pub ecn: Ecn,
    /// Payload, at most [`MAX_PAYLOAD`] bytes.
    pub payload: Vec<u8>,
}

/// Maximum size of a datagram's payload, in bytes.
pub const MAX_PAYLOAD: usize = 9000 - HEADER_BYTES;
/// Size of the headers of IPv4 and UDP, which a link carries as well.
pub const HEADER_BYTES: usize = 28;

/// Side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The side that opens the connection and sends the application's data.
    Client,
    /// The side that receives them.
    Server,
}

/// One side of a connection. The [module documentation](self) says in which order a driver calls it.
pub trait Endpoint: Send {
    /// Sets an option before the start. An endpoint without options refuses all of them.
    ///
    /// # Errors
    /// One sentence: the option is unknown, or the value is wrong.
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let _ = value;
        Err(format!("unknown option {key:?}; there are none"))
    }

    /// Starts the endpoint. It is called once, before all other methods except [`Endpoint::set`].
    fn start(&mut self, now: Time);

    /// Adds bytes that the application has for the peer; `u64::MAX` for a source without end.
    fn write(&mut self, now: Time, bytes: u64);

    /// Returns the number of the application's bytes that have arrived in order since the last call.
    fn read(&mut self, now: Time) -> u64;

    /// Handles the timers that are due, and returns a datagram if one may leave now.
    fn poll_transmit(&mut self, now: Time) -> Option<Datagram>;

    /// Handles a datagram that has arrived.
    fn handle(&mut self, now: Time, datagram: &Datagram);

    /// Returns the time at which [`Endpoint::poll_transmit`] must be called if no datagram arrives before; `None` if never.
    fn next_timer(&self) -> Option<Time>;
}

impl fmt::Debug for dyn Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Endpoint")
    }
}
