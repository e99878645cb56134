//! A network interface as a TAP device.
//!
//! The process reads the frames that the kernel sends, and writes frames that arrive at the interface. The device is
//! created here and may be moved to another network namespace. A frame's arrival time is the time of the read.
#![expect(unsafe_code, reason = "ioctl on a union")]

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;

use super::sys::{self, Nanos};

/// An open TAP device.
#[derive(Debug)]
pub struct Tap {
    file: File,
    buffer: Vec<u8>,
}

impl Tap {
    /// Creates a TAP device with this name.
    ///
    /// # Errors
    /// Without CAP_NET_ADMIN or /dev/net/tun, or when the name is taken.
    pub fn open(interface: &str, frame_bytes: usize) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // SAFETY: an ifreq of zeros is valid.
        let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
        for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the request outlives the call.
        sys::checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
        Ok(Self { file, buffer: vec![0; frame_bytes] })
    }

    /// Passes every waiting frame to `take`, with the time at which it was read.
    ///
    /// # Errors
    /// When the device has failed.
    pub fn receive(&mut self, mut take: impl FnMut(Nanos, &[u8])) -> io::Result<()> {
        loop {
            match self.file.read(&mut self.buffer) {
                Ok(len) => take(Nanos::now(), &self.buffer[..len]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The device is still down.
                Err(e) if e.raw_os_error() == Some(libc::EIO) => return Ok(()),
                Err(e) => return Err(e),
            }
        }
    }

    /// Sends frames in order. Returns the number of frames that the kernel accepted.
    ///
    /// # Errors
    /// When the device has failed.
    pub fn send(&self, frames: &[&[u8]]) -> io::Result<usize> {
        for (i, frame) in frames.iter().enumerate() {
            match (&self.file).write(frame) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(i),
                Err(e) => return Err(e),
            }
        }
        Ok(frames.len())
    }
}
