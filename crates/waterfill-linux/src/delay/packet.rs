//! Network interfaces for the delay line, opened through AF_PACKET, TAP or AF_XDP. An AF_PACKET socket receives through
//! a ring of slots, through a ring of blocks, or by plain calls.
//!
//! AF_PACKET sends by `sendmmsg`. The kernel's transmit ring (PACKET_TX_RING) is unusable on a veth: it passes the ring's
//! own pages to the receiving namespace and reuses them while the far end still reads them.
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

/// An open network interface.
#[derive(Debug)]
pub struct Port {
    backend: Backend,
    drops: u64,
}

#[derive(Debug)]
enum Backend {
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
/// Time after which the kernel passes on a block that is not full. This is the kernel's minimum.
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
            return Ok(Self { backend: Backend::Tap(Tap::open(interface, config.frame_bytes)?), drops: 0 });
        }
        if config.port == PortKind::Xdp {
            return Ok(Self { backend: Backend::Xdp(Box::new(Xdp::open(interface)?)), drops: 0 });
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
        Ok(Self { backend: Backend::Packet { fd, receiver }, drops: 0 })
    }

    /// Passes every frame that has arrived to `take`, with the time at which the kernel received the frame.
    ///
    /// # Errors
    /// When the interface has failed.
    pub fn receive(&mut self, mut take: impl FnMut(Nanos, &[u8])) -> io::Result<()> {
        let (fd, receiver) = match &mut self.backend {
            Backend::Packet { fd, receiver } => (fd, receiver),
            Backend::Tap(tap) => return tap.receive(take),
            Backend::Xdp(xdp) => {
                xdp.receive(take);
                return Ok(());
            }
        };
        match receiver {
            Receiver::Slots { memory, slot_bytes, slots, next } => {
                while let Some(slot) = Slot::ready(memory, *next * *slot_bytes) {
                    take(slot.arrived, slot.frame(memory));
                    slot.release(memory);
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

    /// Sends frames in order. Returns the number of frames that the kernel accepted.
    ///
    /// # Errors
    /// When the interface has failed.
    pub fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        match &mut self.backend {
            Backend::Packet { fd, .. } => sys::send_frames(fd, frames),
            Backend::Tap(tap) => tap.send(frames),
            Backend::Xdp(xdp) => xdp.send(frames),
        }
    }

    /// Returns the number of frames that found the receive ring full, since the start.
    pub fn drops(&mut self) -> u64 {
        if let Backend::Packet { fd, .. } = &self.backend {
            self.drops += sys::ring_drops(fd);
        }
        self.drops
    }
}

// --- a ring of slots -----------------------------------------------------------------------------

fn slots(fd: &OwnedFd, frame_bytes: usize, frames: usize) -> io::Result<Receiver> {
    // A slot has the header and the address before the frame; slots fill blocks without a gap.
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
    /// Returns the slot at offset `at`, or `None` if the kernel has not filled it.
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

    fn release(&self, memory: &Mapping) {
        memory.word(self.at).store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }
}

// --- a ring of blocks ----------------------------------------------------------------------------

/// Offset of `tpacket_hdr_v1` in a block.
const BLOCK_HEADER: usize = offset_of!(libc::tpacket_block_desc, hdr);

fn blocks(fd: &OwnedFd, ring_bytes: usize) -> io::Result<Receiver> {
    let blocks = ring_bytes.div_ceil(BLOCK_BYTES).max(4);
    let request = libc::tpacket_req3 {
        tp_block_size: BLOCK_BYTES as u32,
        tp_block_nr: blocks as u32,
        tp_frame_size: 2048,
        tp_frame_nr: (blocks * BLOCK_BYTES / 2048) as u32,
        tp_retire_blk_tov: BLOCK_TIMEOUT_MS,
        tp_sizeof_priv: 0,
        tp_feature_req_word: 0,
    };
    sys::set_option(fd, libc::PACKET_VERSION, &TPACKET_V3)?;
    sys::set_option(fd, libc::PACKET_RX_RING, &request)?;
    let memory = Mapping::shared(fd, blocks * BLOCK_BYTES, 0)?;
    Ok(Receiver::Blocks { memory, block_bytes: BLOCK_BYTES, blocks, next: 0 })
}

/// Passes the frames of the block at offset `at` to `take`. Returns false if the kernel has not filled the block yet.
fn read_block(memory: &Mapping, at: usize, take: &mut impl FnMut(Nanos, &[u8])) -> bool {
    let status = memory.word(at + BLOCK_HEADER + offset_of!(libc::tpacket_hdr_v1, block_status));
    if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
        return false;
    }
    let block: libc::tpacket_hdr_v1 = memory.read(at + BLOCK_HEADER);
    let mut frame_at = at + block.offset_to_first_pkt as usize;
    for _ in 0..block.num_pkts {
        let frame: libc::tpacket3_hdr = memory.read(frame_at);
        let bytes = memory.slice(frame_at + usize::from(frame.tp_mac), frame.tp_snaplen as usize);
        take(Nanos::from_parts(frame.tp_sec, frame.tp_nsec), bytes);
        frame_at += frame.tp_next_offset as usize;
    }
    status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
    true
}

// --- plain calls ---------------------------------------------------------------------------------

/// Receives frames with one `recvmmsg`. Returns true if there may be more frames.
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
    // SAFETY: `count` headers, each with a buffer and a control buffer of the given lengths.
    let got = unsafe { libc::recvmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), count, flags, ptr::null_mut()) };
    let got = match sys::checked(got) {
        Ok(got) => got as usize,
        Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => 0,
        Err(e) => return Err(e),
    };
    for (i, message) in messages.iter().take(got).enumerate() {
        let start = i * slot_bytes;
        take(timestamp(&message.msg_hdr), &buffers[start..start + (message.msg_len as usize).min(slot_bytes)]);
    }
    Ok(got == CALL_FRAMES)
}

/// Returns the kernel's timestamp from a message's control data, or the present time if there is none.
fn timestamp(header: &libc::msghdr) -> Nanos {
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
