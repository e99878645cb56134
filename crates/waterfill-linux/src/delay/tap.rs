//! An interface as a TAP device: the frames that the kernel sends out of it are read from a descriptor, one a
//! call, and those written to it come in. The device is made here; whoever uses it may move it to another
//! network namespace. A read says nothing of when the frame was sent, so its time is that of the read.
#![expect(unsafe_code, reason = "ioctl")]

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;

use super::sys::{self, Nanos};

/// One TAP device.
#[derive(Debug)]
pub struct Tap {
    file: File,
    buffer: Vec<u8>,
}

impl Tap {
    /// Makes a device of this name.
    ///
    /// # Errors
    /// Without CAP_NET_ADMIN or /dev/net/tun, or when the name is taken.
    pub fn open(interface: &str, frame_bytes: usize) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // struct ifreq: 16 bytes of name, then the flags.
        let mut request = [0u8; 40];
        let name = interface.as_bytes();
        let len = name.len().min(15);
        request[..len].copy_from_slice(&name[..len]);
        let flags = (libc::IFF_TAP | libc::IFF_NO_PI) as u16;
        request[16..18].copy_from_slice(&flags.to_ne_bytes());
        // SAFETY: the request is a whole ifreq and outlives the call.
        sys::checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, request.as_mut_ptr()) })?;
        Ok(Self { file, buffer: vec![0; frame_bytes] })
    }

    /// Hands over every frame that waits, with the time at which it was read.
    ///
    /// # Errors
    /// When the device has failed.
    pub fn receive(&mut self, mut take: impl FnMut(Nanos, &[u8])) -> io::Result<()> {
        loop {
            match self.file.read(&mut self.buffer) {
                Ok(len) => take(Nanos::now(), &self.buffer[..len]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The device is down as long as its user has not set it up.
                Err(e) if e.raw_os_error() == Some(libc::EIO) => return Ok(()),
                Err(e) => return Err(e),
            }
        }
    }

    /// Sends frames in order; how many the kernel took.
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
