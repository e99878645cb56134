//! An interface as the delay line sees it: AF_PACKET, by a ring of slots, a ring of blocks, or plain calls.
//!
//! Sending is `sendmmsg` throughout. The kernel's transmit ring (PACKET_TX_RING) is no choice on a veth: it
//! lends the ring's own pages to the packet and takes them back when the packet changes namespace, while the
//! far end still reads them.
#![expect(unsafe_code, reason = "memory shared with the kernel")]

use std::io;
use std::mem::{MaybeUninit, offset_of};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::Ordering;

use super::config::{Config, PortKind};
use super::sys::{self, Mapping, Nanos};
use super::tap::Tap;
use super::xdp::Xdp;

/// One interface.
#[derive(Debug)]
pub struct Port {
    way: Way,
    drops: u64,
}

#[derive(Debug)]
enum Way {
    Packet { fd: OwnedFd, receiver: Receiver },
    Tap(Tap),
    Xdp(Box<Xdp>),
}

#[derive(Debug)]
enum Receiver {
    Slots { memory: Mapping, slot_bytes: usize, slots: usize, next: usize },
    Blocks { memory: Mapping, block_bytes: usize, blocks: usize, next: usize },
    Calls { buffers: Vec<u8>, slot_bytes: usize },
}

const TPACKET_V2: libc::c_int = 1;
const TPACKET_V3: libc::c_int = 2;
/// A block is handed over when full or this old: the least that the kernel knows.
const BLOCK_TIMEOUT_MS: u32 = 1;
const BLOCK_BYTES: usize = 1 << 17;
const CALL_FRAMES: usize = 64;

impl Port {
    /// Opens an interface by name.
    ///
    /// # Errors
    /// When there is no such interface, no permission, or no memory.
    pub fn open(interface: &str, config: &Config) -> io::Result<Self> {
        if config.port == PortKind::Tap {
            return Ok(Self { way: Way::Tap(Tap::open(interface, config.frame_bytes)?), drops: 0 });
        }
        if config.port == PortKind::Xdp {
            return Ok(Self { way: Way::Xdp(Box::new(Xdp::open(interface)?)), drops: 0 });
        }
        let fd = sys::packet_socket(interface)?;
        let receiver = match config.port {
            PortKind::Ring => slots(&fd, config.frame_bytes, config.ring_frames)?,
            PortKind::Blocks => blocks(&fd, config.frame_bytes * config.ring_frames)?,
            PortKind::Mmsg | PortKind::Tap | PortKind::Xdp => {
                sys::set_socket_option(&fd, libc::SO_TIMESTAMPNS, &1i32)?;
                Receiver::Calls { buffers: vec![0; CALL_FRAMES * config.frame_bytes], slot_bytes: config.frame_bytes }
            }
        };
        sys::listen(&fd, interface)?;
        Ok(Self { way: Way::Packet { fd, receiver }, drops: 0 })
    }

    /// Hands over every frame that has arrived, with the time at which the kernel received it.
    ///
    /// # Errors
    /// When the interface has failed.
    pub fn receive(&mut self, mut take: impl FnMut(Nanos, &[u8])) -> io::Result<()> {
        let (fd, receiver) = match &mut self.way {
            Way::Packet { fd, receiver } => (fd, receiver),
            Way::Tap(tap) => return tap.receive(take),
            Way::Xdp(xdp) => {
                xdp.receive(take);
                return Ok(());
            }
        };
        match receiver {
            Receiver::Slots { memory, slot_bytes, slots, next } => {
                while let Some(slot) = Slot::ready(memory, *next * *slot_bytes) {
                    take(slot.arrived, slot.frame(memory));
                    slot.give_back(memory);
                    *next = (*next + 1) % *slots;
                }
            }
            Receiver::Blocks { memory, block_bytes, blocks, next } => {
                while read_block(memory, *next * *block_bytes, &mut take) {
                    *next = (*next + 1) % *blocks;
                }
            }
            Receiver::Calls { buffers, slot_bytes } => while read_calls(fd, buffers, *slot_bytes, &mut take)? {},
        }
        Ok(())
    }

    /// Sends frames in order; how many the kernel took.
    ///
    /// # Errors
    /// When the interface has failed.
    pub fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        match &mut self.way {
            Way::Packet { fd, .. } => sys::send_frames(fd, frames),
            Way::Tap(tap) => tap.send(frames),
            Way::Xdp(xdp) => xdp.send(frames),
        }
    }

    /// Frames that found the receive ring full, since the start.
    pub fn drops(&mut self) -> u64 {
        if let Way::Packet { fd, .. } = &self.way {
            self.drops += sys::ring_drops(fd);
        }
        self.drops
    }
}

// --- a ring of slots -----------------------------------------------------------------------------

fn slots(fd: &OwnedFd, frame_bytes: usize, frames: usize) -> io::Result<Receiver> {
    // The header and the address stand before the frame in its slot; slots fill blocks without a gap.
    let slot_bytes = (frame_bytes + 128).next_power_of_two();
    let block_bytes = slot_bytes.max(1 << 16);
    let blocks = (frames * slot_bytes).div_ceil(block_bytes);
    let count = blocks * block_bytes / slot_bytes;
    let request = libc::tpacket_req {
        tp_block_size: block_bytes as u32,
        tp_block_nr: blocks as u32,
        tp_frame_size: slot_bytes as u32,
        tp_frame_nr: count as u32,
    };
    sys::set_option(fd, libc::PACKET_VERSION, &TPACKET_V2)?;
    sys::set_option(fd, libc::PACKET_RX_RING, &request)?;
    let memory = Mapping::shared(fd, blocks * block_bytes, 0)?;
    Ok(Receiver::Slots { memory, slot_bytes, slots: count, next: 0 })
}

struct Slot {
    at: usize,
    arrived: Nanos,
    frame_at: usize,
    len: usize,
}

impl Slot {
    /// The slot at this offset, if the kernel has filled it.
    fn ready(memory: &Mapping, at: usize) -> Option<Self> {
        if memory.word(at).load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let header: libc::tpacket2_hdr = memory.read(at);
        Some(Self {
            at,
            arrived: Nanos::from_parts(header.tp_sec, header.tp_nsec),
            frame_at: at + usize::from(header.tp_mac),
            len: header.tp_snaplen as usize,
        })
    }

    fn frame<'a>(&self, memory: &'a Mapping) -> &'a [u8] {
        memory.slice(self.frame_at, self.len)
    }

    fn give_back(&self, memory: &Mapping) {
        memory.word(self.at).store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }
}

// --- a ring of blocks ----------------------------------------------------------------------------

/// The head of a block: version, offset of private data, then `tpacket_hdr_v1` (linux/if_packet.h).
#[repr(C)]
#[derive(Clone, Copy)]
struct BlockHead {
    version: u32,
    private: u32,
    status: u32,
    frames: u32,
    first: u32,
    bytes: u32,
}

/// The head of a frame in a block: the start of `tpacket3_hdr`.
#[repr(C)]
#[derive(Clone, Copy)]
struct FrameHead {
    next: u32,
    s: u32,
    ns: u32,
    snaplen: u32,
    len: u32,
    status: u32,
    mac: u16,
    net: u16,
}

fn blocks(fd: &OwnedFd, ring_bytes: usize) -> io::Result<Receiver> {
    #[repr(C)]
    struct Request {
        slots: libc::tpacket_req,
        timeout_ms: u32,
        private_bytes: u32,
        features: u32,
    }
    let blocks = ring_bytes.div_ceil(BLOCK_BYTES).max(4);
    let request = Request {
        slots: libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: 2048,
            tp_frame_nr: (blocks * BLOCK_BYTES / 2048) as u32,
        },
        timeout_ms: BLOCK_TIMEOUT_MS,
        private_bytes: 0,
        features: 0,
    };
    sys::set_option(fd, libc::PACKET_VERSION, &TPACKET_V3)?;
    sys::set_option(fd, libc::PACKET_RX_RING, &request)?;
    let memory = Mapping::shared(fd, blocks * BLOCK_BYTES, 0)?;
    Ok(Receiver::Blocks { memory, block_bytes: BLOCK_BYTES, blocks, next: 0 })
}

/// Hands over the frames of the block at this offset; false if the kernel still fills it.
fn read_block(memory: &Mapping, at: usize, take: &mut impl FnMut(Nanos, &[u8])) -> bool {
    let status = memory.word(at + offset_of!(BlockHead, status));
    if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
        return false;
    }
    let head: BlockHead = memory.read(at);
    let mut frame_at = at + head.first as usize;
    for _ in 0..head.frames {
        let frame: FrameHead = memory.read(frame_at);
        let bytes = memory.slice(frame_at + usize::from(frame.mac), frame.snaplen as usize);
        take(Nanos::from_parts(frame.s, frame.ns), bytes);
        frame_at += frame.next as usize;
    }
    status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
    true
}

// --- plain calls ---------------------------------------------------------------------------------

/// One `recvmmsg`; whether there may be more.
fn read_calls(
    fd: &OwnedFd,
    buffers: &mut [u8],
    slot_bytes: usize,
    take: &mut impl FnMut(Nanos, &[u8]),
) -> io::Result<bool> {
    const CONTROL_BYTES: usize = 64;
    let mut control = [[0u64; CONTROL_BYTES / 8]; CALL_FRAMES];
    let mut vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; CALL_FRAMES];
    // SAFETY: a message header of zeros is valid.
    let mut messages: [libc::mmsghdr; CALL_FRAMES] = unsafe { MaybeUninit::zeroed().assume_init() };
    for (i, buffer) in buffers.chunks_exact_mut(slot_bytes).enumerate() {
        vectors[i] = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: slot_bytes };
        messages[i].msg_hdr.msg_iov = &raw mut vectors[i];
        messages[i].msg_hdr.msg_iovlen = 1;
        messages[i].msg_hdr.msg_control = control[i].as_mut_ptr().cast();
        messages[i].msg_hdr.msg_controllen = CONTROL_BYTES as _;
    }
    let (count, flags) = (CALL_FRAMES as u32, libc::MSG_DONTWAIT as _);
    // SAFETY: as many headers as we say, each with a buffer and a control buffer of the lengths that we say.
    let got = unsafe { libc::recvmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), count, flags, ptr::null_mut()) };
    let got = match sys::checked(got) {
        Ok(got) => got as usize,
        Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => 0,
        Err(e) => return Err(e),
    };
    for (i, message) in messages.iter().take(got).enumerate() {
        let start = i * slot_bytes;
        take(stamp(&message.msg_hdr), &buffers[start..start + (message.msg_len as usize).min(slot_bytes)]);
    }
    Ok(got == CALL_FRAMES)
}

/// The kernel's timestamp among a message's control data; now, if there is none.
fn stamp(header: &libc::msghdr) -> Nanos {
    // SAFETY: the kernel filled the control buffer; the macros stay within its length.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(header);
        while !control.is_null() {
            if (*control).cmsg_level == libc::SOL_SOCKET && (*control).cmsg_type == libc::SCM_TIMESTAMPNS {
                let t: libc::timespec = libc::CMSG_DATA(control).cast::<libc::timespec>().read_unaligned();
                return Nanos::from_parts(t.tv_sec as u32, t.tv_nsec as u32);
            }
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
    Nanos::now()
}
