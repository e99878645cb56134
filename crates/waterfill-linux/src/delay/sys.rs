//! Safe functions for system calls. The delay line's other unsafe code is in `packet`, `tap` and `xdp`.
#![expect(unsafe_code, reason = "system calls that the standard library does not have")]

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Time in nanoseconds since 1970, on the clock that timestamps packets (CLOCK_REALTIME).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(u64);

impl Nanos {
    /// Creates a time from nanoseconds since 1970.
    #[must_use]
    pub const fn new(ns: u64) -> Self {
        Self(ns)
    }

    /// Creates a time from the seconds and nanoseconds of a packet's timestamp.
    #[must_use]
    pub const fn from_parts(s: u32, ns: u32) -> Self {
        Self(s as u64 * 1_000_000_000 + ns as u64)
    }

    /// Returns the nanoseconds since 1970.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Returns the time `ns` nanoseconds later.
    #[must_use]
    pub const fn after(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }

    /// Returns the nanoseconds from `earlier` to this time, which are negative if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.wrapping_sub(earlier.0) as i64
    }

    /// Returns the present time.
    #[must_use]
    pub fn now() -> Self {
        let mut t = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: clock_gettime fills the timespec; it cannot fail for this clock.
        let t = unsafe {
            libc::clock_gettime(libc::CLOCK_REALTIME, t.as_mut_ptr());
            t.assume_init()
        };
        Self(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
    }

    /// Sleeps until this time, or returns at once if it has passed.
    pub fn sleep_until(self) {
        let t = libc::timespec { tv_sec: (self.0 / 1_000_000_000) as i64, tv_nsec: (self.0 % 1_000_000_000) as i64 };
        // SAFETY: the timespec outlives the call; the remainder is not requested.
        unsafe { libc::clock_nanosleep(libc::CLOCK_REALTIME, libc::TIMER_ABSTIME, &raw const t, std::ptr::null_mut()) };
    }
}

/// Converts the result of a system call, which is -1 on failure, to an `io::Result`.
pub(crate) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Asks the kernel to kill this process when the thread that started it ends.
///
/// # Errors
/// Never on a kernel that has the call.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: plain integers.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    Ok(()) // a parent that ended before this call has closed our standard input
}

/// Scheduling that [`request_realtime`] has obtained.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Scheduling {
    /// True if the process runs before every ordinary process.
    pub realtime: bool,
    /// True if the process's memory is locked.
    pub locked: bool,
}

/// Requests precise timers: a timer slack of 1 ns, real-time priority and locked memory. Requests that this process is
/// not permitted to make are skipped.
#[must_use]
pub fn request_realtime() -> Scheduling {
    let priority = libc::sched_param { sched_priority: 20 };
    // SAFETY: plain integers, and a parameter that outlives its call.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        Scheduling {
            realtime: libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) == 0,
            locked: libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) == 0,
        }
    }
}

/// Returns the CPU time of this process, in seconds.
#[must_use]
pub fn cpu_s() -> f64 {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: getrusage fills the structure; it cannot fail for RUSAGE_SELF.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    [usage.ru_utime, usage.ru_stime].iter().map(|t| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6).sum()
}

/// Returns true if a descriptor can be read or its other end has closed. The call does not block.
pub fn readable(fd: RawFd) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd.
    unsafe { libc::poll(&raw mut poll, 1, 0) > 0 }
}

/// Opens an AF_PACKET socket on an interface for all protocols. The socket does not receive frames that this process
/// sends.
///
/// # Errors
/// When there is no such interface, or without CAP_NET_RAW.
pub fn packet_socket(interface: &str) -> io::Result<OwnedFd> {
    let index = interface_index(interface)?;
    // Protocol 0: nothing arrives before the caller has set up its ring and called `listen`.
    // SAFETY: plain integers; no one else owns the descriptor.
    let fd = unsafe {
        OwnedFd::from_raw_fd(checked(libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0))?)
    };
    bind(&fd, index, 0)?;
    set_option(&fd, libc::PACKET_IGNORE_OUTGOING, &1i32)?;
    // Send directly to the driver, as the interface has no queue.
    set_option(&fd, libc::PACKET_QDISC_BYPASS, &1i32)?;
    set_socket_option(&fd, libc::SO_SNDBUFFORCE, &(64i32 << 20))?;
    set_socket_option(&fd, libc::SO_RCVBUFFORCE, &(64i32 << 20))?;
    Ok(fd)
}

/// Starts to receive frames on a packet socket.
///
/// # Errors
/// When the interface is gone.
pub fn listen(fd: &OwnedFd, interface: &str) -> io::Result<()> {
    bind(fd, interface_index(interface)?, (libc::ETH_P_ALL as u16).to_be())
}

fn bind(fd: &OwnedFd, index: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: an address of zeros is valid.
    let mut address: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = index as i32;
    address.sll_protocol = protocol;
    let length = size_of::<libc::sockaddr_ll>() as u32;
    // SAFETY: the address has the given length.
    checked(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(())
}

/// Sets an option of AF_PACKET (level SOL_PACKET).
///
/// # Errors
/// When the kernel refuses it.
pub(crate) fn set_option<T>(fd: &OwnedFd, name: libc::c_int, value: &T) -> io::Result<()> {
    set(fd, libc::SOL_PACKET, name, value)
}

/// Sets an option of any socket (level SOL_SOCKET).
///
/// # Errors
/// When the kernel refuses it.
pub(crate) fn set_socket_option<T>(fd: &OwnedFd, name: libc::c_int, value: &T) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, name, value)
}

pub(crate) fn set<T>(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as u32;
    // SAFETY: the value has the given length.
    checked(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length) })?;
    Ok(())
}

/// Returns the number of frames that found the ring or the socket's buffer full, since the last call.
#[must_use]
pub fn ring_drops(fd: &OwnedFd) -> u64 {
    let mut stats = [0u32; 3]; // packets, drops, and for TPACKET_V3 freezes
    let mut length = size_of_val(&stats) as u32;
    // SAFETY: the buffer has the given length.
    let got = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            stats.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if got == 0 { u64::from(stats[1]) } else { 0 }
}

/// Sends frames through a bound socket. Returns the number of frames that the kernel accepted.
///
/// # Errors
/// When it accepted none for another reason than a full buffer.
pub fn send_frames(fd: &OwnedFd, frames: &[&[u8]]) -> io::Result<usize> {
    const MAX_FRAMES: usize = 64;
    let count = frames.len().min(MAX_FRAMES);
    let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MAX_FRAMES];
    // SAFETY: a message header of zeros is valid.
    let mut messages: [libc::mmsghdr; MAX_FRAMES] = unsafe { MaybeUninit::zeroed().assume_init() };
    for (i, frame) in frames.iter().take(count).enumerate() {
        vectors[i] = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
        messages[i].msg_hdr.msg_iov = &raw mut vectors[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    // SAFETY: `count` headers, each with one vector to a frame that outlives the call; sending only reads.
    let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT as _) };
    match checked(sent) {
        Ok(sent) => Ok(sent as usize),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR)) => Ok(0),
        Err(e) => Err(e),
    }
}

/// Memory shared with the kernel, which is unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: std::ptr::NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Maps the rings of a socket, starting at a page offset.
    pub(crate) fn shared(fd: &OwnedFd, bytes: usize, page: libc::off_t) -> io::Result<Self> {
        Self::map(bytes, libc::MAP_SHARED | libc::MAP_POPULATE, fd.as_raw_fd(), page)
    }

    /// Maps private memory filled with zeros, which can be shared with the kernel.
    pub(crate) fn private(bytes: usize) -> io::Result<Self> {
        Self::map(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE, -1, 0)
    }

    fn map(bytes: usize, flags: libc::c_int, fd: RawFd, page: libc::off_t) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, page) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = std::ptr::NonNull::new(start.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { start, bytes })
    }

    /// Reads a header at offset `at` that the kernel has passed on.
    pub(crate) fn read<T: Copy>(&self, at: usize) -> T {
        assert!(at + size_of::<T>() <= self.bytes, "header outside of the mapping");
        // SAFETY: within the mapping; unaligned reads are allowed for.
        unsafe { self.start.as_ptr().add(at).cast::<T>().read_unaligned() }
    }

    /// Returns the status word of a slot or block at offset `at`.
    pub(crate) fn word(&self, at: usize) -> &std::sync::atomic::AtomicU32 {
        assert!(at + 4 <= self.bytes && at % 4 == 0, "status word outside of the mapping");
        // SAFETY: within the mapping, aligned, and both sides treat it as one 32-bit word.
        unsafe { std::sync::atomic::AtomicU32::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// Returns a frame at offset `at` that the kernel has passed on. The kernel does not change the frame until this
    /// process releases it.
    pub(crate) fn slice(&self, at: usize, len: usize) -> &[u8] {
        assert!(at + len <= self.bytes, "frame outside of the mapping");
        // SAFETY: within the mapping.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(at), len) }
    }
}

impl Mapping {
    /// Returns the address of the memory, for the kernel.
    pub(crate) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// Writes a ring entry at offset `at`, which this process must own.
    pub(crate) fn write<T: Copy>(&self, at: usize, value: T) {
        assert!(at + size_of::<T>() <= self.bytes, "entry outside of the mapping");
        // SAFETY: within the mapping; unaligned writes are allowed for.
        unsafe { self.start.as_ptr().add(at).cast::<T>().write_unaligned(value) };
    }

    /// Writes a frame into the chunk at offset `at`, which this process must own.
    pub(crate) fn fill(&mut self, at: usize, frame: &[u8]) {
        assert!(at + frame.len() <= self.bytes, "frame outside of the mapping");
        // SAFETY: within the mapping, and borrowed exclusively.
        unsafe { std::ptr::copy_nonoverlapping(frame.as_ptr(), self.start.as_ptr().add(at), frame.len()) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, with this length.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Returns the time of the kernel's monotonic clock, in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    let mut t = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: clock_gettime fills the timespec; it cannot fail for this clock.
    let t = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, t.as_mut_ptr());
        t.assume_init()
    };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Returns the index of an interface.
///
/// # Errors
/// When there is no interface of that name.
pub(crate) fn interface_index(interface: &str) -> io::Result<u32> {
    let name = std::ffi::CString::new(interface)?;
    // SAFETY: the name ends with a zero.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}
