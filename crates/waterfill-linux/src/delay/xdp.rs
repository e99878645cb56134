//! Network interface accessed through an AF_XDP socket. An XDP program on the driver's receive path puts a timestamp
//! before each frame and redirects the frame to the socket. The socket uses copy mode because veth devices support no
//! other mode.
#![expect(unsafe_code, reason = "memory shared with the kernel, and bpf()")]

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use libc::xdp_desc;

use super::sys::{self, Mapping, Nanos};

const CHUNK_BYTES: usize = 4096;
/// Number of chunks for arrivals. There are as many chunks for departures.
const CHUNKS: u32 = 4096;
const BATCH: usize = 32;

/// An AF_XDP socket on queue 0 of an interface.
#[derive(Debug)]
pub struct Xdp {
    fd: OwnedFd,
    memory: Mapping,
    fill: Ring,
    completion: Ring,
    rx: Ring,
    tx: Ring,
    /// Addresses of the free chunks for sending.
    free: Vec<u64>,
    /// Real-time clock minus monotonic clock of the kernel, in nanoseconds.
    real_less_monotonic_ns: u64,
    _program: [OwnedFd; 3],
}

/// A ring with one producer and one consumer, whose indexes are shared with the kernel.
#[derive(Debug)]
struct Ring {
    memory: Mapping,
    producer: usize,
    consumer: usize,
    entries: usize,
}

impl Ring {
    fn producer(&self) -> &AtomicU32 {
        self.memory.word(self.producer)
    }
    fn consumer(&self) -> &AtomicU32 {
        self.memory.word(self.consumer)
    }
    fn waiting(&self) -> u32 {
        self.producer().load(Ordering::Acquire).wrapping_sub(self.consumer().load(Ordering::Relaxed))
    }
    fn offset<T>(&self, index: u32) -> usize {
        self.entries + (index & (CHUNKS - 1)) as usize * size_of::<T>()
    }
    /// Appends an entry. The caller must have checked that there is space.
    fn push<T: Copy>(&self, value: T) {
        let index = self.producer().load(Ordering::Relaxed);
        self.memory.write(self.offset::<T>(index), value);
        self.producer().store(index.wrapping_add(1), Ordering::Release);
    }
    fn pop<T: Copy>(&self) -> Option<T> {
        let index = self.consumer().load(Ordering::Relaxed);
        (self.waiting() > 0).then(|| {
            let value = self.memory.read(self.offset::<T>(index));
            self.consumer().store(index.wrapping_add(1), Ordering::Release);
            value
        })
    }
}

impl Xdp {
    /// Opens queue 0 of an interface. The interface should have no other queue.
    ///
    /// # Errors
    /// When the kernel or the interface does not support it, or without permission.
    pub fn open(interface: &str) -> io::Result<Self> {
        let index = sys::interface_index(interface)?;
        // SAFETY: plain integers; no one else owns the descriptor.
        let fd = unsafe { OwnedFd::from_raw_fd(sys::checked(libc::socket(libc::AF_XDP, libc::SOCK_RAW, 0))?) };
        let memory = Mapping::private(2 * CHUNKS as usize * CHUNK_BYTES)?;
        let region = libc::xdp_umem_reg {
            addr: memory.address(),
            len: (2 * CHUNKS as usize * CHUNK_BYTES) as u64,
            chunk_size: CHUNK_BYTES as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        let set = |name, value: u32| sys::set(&fd, libc::SOL_XDP, name, &value);
        sys::set(&fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &region)?;
        for name in [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING, libc::XDP_TX_RING] {
            set(name, CHUNKS)?;
        }
        let offsets = offsets(&fd)?;
        let ring = |at: &libc::xdp_ring_offset, entry: usize, page: libc::off_t| -> io::Result<Ring> {
            let memory = Mapping::shared(&fd, at.desc as usize + CHUNKS as usize * entry, page)?;
            let (producer, consumer, entries) = (at.producer as usize, at.consumer as usize, at.desc as usize);
            Ok(Ring { memory, producer, consumer, entries })
        };
        let descriptor = size_of::<xdp_desc>();
        let this = Self {
            rx: ring(&offsets.rx, descriptor, libc::XDP_PGOFF_RX_RING)?,
            tx: ring(&offsets.tx, descriptor, libc::XDP_PGOFF_TX_RING)?,
            fill: ring(&offsets.fr, 8, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t)?,
            completion: ring(&offsets.cr, 8, libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t)?,
            free: (u64::from(CHUNKS)..2 * u64::from(CHUNKS)).map(|i| i * CHUNK_BYTES as u64).collect(),
            real_less_monotonic_ns: Nanos::now().as_ns() - sys::monotonic_ns(),
            _program: {
                bind(&fd, index)?;
                attach(&fd, index)?
            },
            fd,
            memory,
        };
        for i in 0..u64::from(CHUNKS) {
            this.fill.push(i * CHUNK_BYTES as u64);
        }
        Ok(this)
    }

    /// Passes every frame that has arrived to `take`, with the timestamp that the program wrote.
    pub fn receive(&mut self, mut take: impl FnMut(Nanos, &[u8])) {
        while let Some(frame) = self.rx.pop::<xdp_desc>() {
            let at = frame.addr as usize;
            let stamp: u64 = self.memory.read(at - 8);
            take(Nanos::new(stamp + self.real_less_monotonic_ns), self.memory.slice(at, frame.len as usize));
            self.fill.push(frame.addr - frame.addr % CHUNK_BYTES as u64);
        }
    }

    /// Sends frames in order. Returns the number of frames that the kernel accepted.
    ///
    /// # Errors
    /// When the interface has failed.
    pub fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        while let Some(at) = self.completion.pop::<u64>() {
            self.free.push(at);
        }
        let mut count = 0;
        for frame in frames.iter().take(BATCH) {
            let Some(at) = self.free.pop() else { break };
            self.memory.fill(at as usize, frame);
            self.tx.push(xdp_desc { addr: at, len: frame.len() as u32, options: 0 });
            count += 1;
        }
        while self.tx.waiting() > 0 {
            // SAFETY: no buffer, no address.
            let sent = unsafe {
                libc::sendto(self.fd.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0)
            };
            match io::Error::last_os_error() {
                _ if sent >= 0 => {}
                e if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR)) => {}
                e => return Err(e),
            }
        }
        Ok(count)
    }
}

fn offsets(fd: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    let mut found = MaybeUninit::<libc::xdp_mmap_offsets>::zeroed();
    let mut length = size_of::<libc::xdp_mmap_offsets>() as u32;
    // SAFETY: the buffer has the given length, and zeros are a valid value.
    unsafe {
        let got = libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_XDP,
            libc::XDP_MMAP_OFFSETS,
            found.as_mut_ptr().cast(),
            &raw mut length,
        );
        sys::checked(got)?;
        Ok(found.assume_init())
    }
}

fn bind(fd: &OwnedFd, index: u32) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_COPY,
        sxdp_ifindex: index,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    let length = size_of::<libc::sockaddr_xdp>() as u32;
    // SAFETY: the address has the given length.
    sys::checked(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(())
}

/// Attaches a program that writes a timestamp of 8 bytes before each frame and redirects the frame to the socket.
/// Returns the map, the program and the link.
fn attach(socket: &OwnedFd, index: u32) -> io::Result<[OwnedFd; 3]> {
    const MAP_CREATE: i64 = 0;
    const MAP_UPDATE: i64 = 2;
    const PROG_LOAD: i64 = 5;
    const LINK_CREATE: i64 = 28;
    const XSKMAP: u32 = 17;
    const PROG_XDP: u32 = 6;
    const ATTACH_XDP: u32 = 37;
    const DRIVER_MODE: u32 = 4;

    let map = bpf(MAP_CREATE, &[XSKMAP, 4, 4, 1, 0])?;
    let (key, value) = (0u32, socket.as_raw_fd());
    let mut update = [0u32; 8];
    update[0] = map.as_raw_fd() as u32;
    put(&mut update, 2, (&raw const key) as u64);
    put(&mut update, 4, (&raw const value) as u64);
    bpf_call(MAP_UPDATE, &update)?;
    // code, destination and source registers, offset, immediate
    let i = |code: u64, dst: u64, src: u64, offset: i16, value: i32| {
        code | dst << 8 | src << 12 | u64::from(offset as u16) << 16 | u64::from(value as u32) << 32
    };
    let program = [
        i(0xbf, 6, 1, 0, 0),  // r6 = context
        i(0xb7, 2, 0, 0, -8), // r2 = -8
        i(0x85, 0, 0, 0, 54), // bpf_xdp_adjust_meta
        i(0x55, 0, 0, 7, 0),  // refused: redirect without timestamp
        i(0x61, 7, 6, 8, 0),  // r7 = data_meta
        i(0x61, 2, 6, 0, 0),  // r2 = data
        i(0xbf, 1, 7, 0, 0),  // r1 = r7 + 8
        i(0x07, 1, 0, 0, 8),
        i(0x2d, 1, 2, 2, 0),               // beyond data: no timestamp
        i(0x85, 0, 0, 0, 5),               // bpf_ktime_get_ns
        i(0x7b, 7, 0, 0, 0),               // *r7 = r0
        i(0x18, 1, 1, 0, map.as_raw_fd()), // r1 = map
        0,
        i(0x61, 2, 6, 16, 0), // r2 = rx_queue_index
        i(0xb7, 3, 0, 0, 2),  // otherwise pass
        i(0x85, 0, 0, 0, 51), // bpf_redirect_map
        i(0x95, 0, 0, 0, 0),
    ];
    let licence = c"Dual BSD/GPL";
    let mut load = [0u32; 12];
    load[0] = PROG_XDP;
    load[1] = program.len() as u32;
    put(&mut load, 2, program.as_ptr() as u64);
    put(&mut load, 4, licence.as_ptr() as u64);
    let program_fd = bpf(PROG_LOAD, &load)?;
    let link = bpf(LINK_CREATE, &[program_fd.as_raw_fd() as u32, index, ATTACH_XDP, DRIVER_MODE, 0, 0])?;
    Ok([map, program_fd, link])
}

fn put(words: &mut [u32], at: usize, value: u64) {
    words[at] = value as u32;
    words[at + 1] = (value >> 32) as u32;
}

fn bpf(command: i64, attributes: &[u32]) -> io::Result<OwnedFd> {
    let fd = bpf_call(command, attributes)?;
    // SAFETY: a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bpf_call(command: i64, attributes: &[u32]) -> io::Result<libc::c_int> {
    // SAFETY: the attributes have the given length, and what they point to outlives the call.
    let got = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), size_of_val(attributes)) };
    sys::checked(got as libc::c_int)
}
