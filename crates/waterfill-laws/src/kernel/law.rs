//! Safe Rust interface to the C functions of a law.

#![allow(
    unsafe_code,
    reason = "the law is C. Its functions take plain integers and structures of them by reference, keep no pointer, \
              allocate nothing and have no state; every structure that is passed has the length that C states"
)]

use super::host::{Pace, Send};
use crate::mirror::mirror;

/// Maximum length of a value in bytes: C's `LAW_VALUE_MAX`.
pub const VALUE_MAX: usize = 15;
/// Number of signals that a law shows: C's `LAW_SIGNALS`.
pub const SIGNALS: usize = 4;
/// Option value on the wire, padded with zeros.
pub type Value = [u8; VALUE_MAX];

mirror! {
    /// Packet at a router: C's `struct law_packet`.
    pub struct Packet = waterfill_law_packet_fields {
        /// Bytes of all segments on the link.
        bytes: u64,
        /// Number of segments: 1 unless the packet is a super-packet.
        segments: u32,
        /// SYN flag: 1 for a SYN.
        syn: u32,
    }
}

mirror! {
    /// TCP state of a connection: C's `struct law_tcp`. `kernel/law.h` describes the fields.
    pub struct Tcp = waterfill_law_tcp_fields {
        /// Current time in µs.
        now_us: u64,
        /// Smoothed RTT in µs, times 8.
        srtt_us: u32,
        /// Smallest RTT in µs.
        base_rtt_us: u32,
        /// Packets delivered since the connection began.
        delivered: u32,
        /// Packets acknowledged since the law's last call.
        acked: u32,
        /// Packets in flight before this acknowledgement.
        in_flight: u32,
        /// Size of a full packet in bytes.
        packet: u32,
        /// Bytes of a full packet that pacing counts.
        payload: u32,
        /// Number of packets in a super-packet.
        max_segments: u32,
        /// Recovery flag: 1 during recovery from a loss.
        recovering: u32,
        /// Application flag: 1 if the application limits the rate.
        app_limited: u32,
        /// Window flag: 1 if the window limits the rate.
        window_limited: u32,
        /// Flag that is 1 if the application sets no limit on the pacing rate.
        unlimited: u32,
        /// Reserved field, always 0.
        reserved: u32,
    }
}

mirror! {
    /// Limits that a law sets for a source: C's `struct law_limit`.
    pub struct KernelLimit = waterfill_law_limit_fields {
        /// Rate in bit/s; 0 if no router has answered yet.
        rate: u64,
        /// Window in bytes; 0 if the rate alone limits the source.
        window: u64,
        /// Size of a packet in bytes.
        packet: u32,
        /// Flag that is 1 once the law is past its start.
        steady: u32,
        /// Flag that is 1 once a router's value has been applied.
        heard: u32,
        /// Reserved field, always 0.
        reserved: u32,
    }
}

/// Members of a law's `struct law_params` with their numeric values.
pub type Numbers = Vec<(&'static str, u64)>;
/// Record of a call in `kernel/replay.h`, C's `struct replay_record`: the call, its inputs, a value and the final hash.
pub type Record = [u64; 12];

/// C structure of a law, stored as 64-bit words that are allocated once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(Box<[u64]>);

impl Words {
    fn new(words: u32) -> Self {
        Self(vec![0; words as usize].into())
    }
    /// Returns the words of the structure.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.0
    }
    /// Sets one word, for example a count in `struct law_sums`.
    ///
    /// # Panics
    /// There is no such word.
    pub fn set(&mut self, word: usize, value: u64) {
        self.0[word] = value;
    }
    /// Returns a C pointer to the structure, which must have `words` words.
    ///
    /// # Panics
    /// It is another structure.
    fn of(&self, words: u32) -> *const u64 {
        assert_eq!(self.0.len(), words as usize, "another law's structure");
        self.0.as_ptr()
    }
    fn of_mut(&mut self, words: u32) -> *mut u64 {
        assert_eq!(self.0.len(), words as usize, "another law's structure");
        self.0.as_mut_ptr()
    }
}

type CFields = unsafe extern "C" fn() -> *const crate::mirror::CField;

/// C functions of a law: `struct waterfill_shim` of `kernel/shim.h`. All structures start zeroed.
#[repr(C)]
#[derive(Debug)]
pub struct KernelLaw {
    number: u32,
    forward_bytes: u32,
    echo_bytes: u32,
    paced: u32,
    rests_with_queue: u32,
    params: u32,
    link: u32,
    sums: u32,
    cpu: u32,
    source: u32,
    receiver: u32,
    replay: u32,
    params_fields: CFields,
    link_set: unsafe extern "C" fn(*mut u64, *const u64, u64, u32),
    interval: unsafe extern "C" fn(*const u64) -> u32,
    tick: unsafe extern "C" fn(*mut u64, *const u64, u64),
    idle: unsafe extern "C" fn(*mut u64, u64, u64),
    mark: unsafe extern "C" fn(*mut u64, *mut u64, &Packet, &mut Value) -> u32,
    syn_needs_lock: unsafe extern "C" fn(*const u64) -> u32,
    link_read: unsafe extern "C" fn(*const u64, &mut [u64; SIGNALS]),
    link_restore: unsafe extern "C" fn(*mut u64, u64),
    source_init: unsafe extern "C" fn(*const u64, *mut u64, u32, u64),
    request: unsafe extern "C" fn(*const u64, &mut Value),
    forward: unsafe extern "C" fn(*const u64, *mut u64, &mut Value),
    heard: unsafe extern "C" fn(&Value) -> u32,
    ack: unsafe extern "C" fn(*const u64, *mut u64, &Tcp, u32, &Value),
    loss: unsafe extern "C" fn(*const u64, *mut u64),
    timeout: unsafe extern "C" fn(*const u64, *mut u64),
    limit: unsafe extern "C" fn(*mut u64, &Tcp, &mut KernelLimit),
    reduce: unsafe extern "C" fn(*mut u64, u32),
    evidence: unsafe extern "C" fn(*const u64) -> u64,
    tightens: unsafe extern "C" fn(*const u64, u64, u64) -> u32,
    source_read: unsafe extern "C" fn(*const u64, &mut [u64; SIGNALS]),
    receive: unsafe extern "C" fn(*const u64, *mut u64, u64, u32, &Value, u32),
    echo: unsafe extern "C" fn(*mut u64, &mut Value),
    receiver_read: unsafe extern "C" fn(*const u64) -> u64,
    replay_step: unsafe extern "C" fn(*mut u64, &Record) -> u64,
    host_control: unsafe extern "C" fn(&mut Pace, &KernelLimit, &Tcp, &mut Send),
}

const U32_MAX: u64 = u32::MAX as u64;

/// Returns a member's name without the name of its enclosing structure.
fn inner(member: &str) -> &str {
    member.rsplit('.').next().unwrap_or(member)
}

/// Returns the number of a member of `struct law_params`, given by its full name or by the name without its structure.
fn find(numbers: &[(&str, u64)], member: &str) -> Option<u64> {
    let of = |name: &str| numbers.iter().find(|(given, _)| *given == name).map(|(_, number)| *number);
    of(member).or_else(|| of(inner(member)))
}

/// Calls a C function of a law.
macro_rules! call {
    ($law:ident.$function:ident($($argument:expr),*)) => {
        // SAFETY: `of` and `of_mut` have checked that each structure has the length that C states for this law, and
        // references are valid. C keeps none of them, and reads and writes no more than they point to.
        unsafe { ($law.$function)($($argument),*) }
    };
}

impl KernelLaw {
    /// Returns the law's number on the wire.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }
    /// Returns the length in bytes of the value in data packets.
    #[must_use]
    pub const fn forward_bytes(&self) -> usize {
        self.forward_bytes as usize
    }
    /// Returns the length in bytes of the value in acknowledgements.
    #[must_use]
    pub const fn echo_bytes(&self) -> usize {
        self.echo_bytes as usize
    }
    /// Returns true if the law's rate is paced.
    #[must_use]
    pub const fn paced(&self) -> bool {
        self.paced == 1
    }
    /// Returns true if the law has a standing queue in equilibrium.
    #[must_use]
    pub const fn rests_with_queue(&self) -> bool {
        self.rests_with_queue == 1
    }
    /// Returns the members of `struct law_params` with their offsets and sizes, in C's order.
    pub fn params_fields(&self) -> impl Iterator<Item = (&'static str, usize, usize)> + use<> {
        // SAFETY: C returns a static array that ends where its field has no name.
        unsafe { crate::mirror::fields_of((self.params_fields)()) }
    }

    /// Creates `struct law_params` from its members' numbers.
    ///
    /// Numbers that are too large saturate. A member of a nested structure needs no prefix. Omitted members are zero.
    ///
    /// # Panics
    /// C has no such member.
    #[must_use]
    pub fn params(&self, numbers: &[(&str, u64)]) -> Words {
        let mut bytes = vec![0; self.params as usize * 8];
        let mut found = 0;
        for (member, offset, size) in self.params_fields() {
            let Some(number) = find(numbers, member) else { continue };
            found += 1;
            match size {
                4 => bytes[offset..][..4].copy_from_slice(&(number.min(U32_MAX) as u32).to_ne_bytes()),
                _ => bytes[offset..][..8].copy_from_slice(&number.to_ne_bytes()),
            }
        }
        assert_eq!(found, numbers.len(), "{numbers:?}: all are members of struct law_params");
        Words(bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes"))).collect())
    }
    /// Returns true if `struct law_params` has a member with this name.
    #[must_use]
    pub fn has_param(&self, name: &str) -> bool {
        self.params_fields().any(|(member, ..)| inner(member) == name)
    }
    /// Creates a zeroed `struct law_link`.
    #[must_use]
    pub fn link(&self) -> Words {
        Words::new(self.link)
    }
    /// Creates a zeroed `struct law_cpu`, which starts with the running sums.
    #[must_use]
    pub fn cpu(&self) -> Words {
        Words::new(self.cpu)
    }
    /// Creates a zeroed `struct law_sums`.
    #[must_use]
    pub fn sums(&self) -> Words {
        Words::new(self.sums)
    }
    /// Creates a zeroed `struct law_source`.
    #[must_use]
    pub fn source(&self) -> Words {
        Words::new(self.source)
    }
    /// Creates a zeroed `struct law_receiver`.
    #[must_use]
    pub fn receiver(&self) -> Words {
        Words::new(self.receiver)
    }

    /// Sets a link's capacity in bit/s and target in units of 10⁻⁶ with C's `law_link_set`. A target of 0 selects the
    /// law's own target.
    pub fn link_set(&self, link: &mut Words, params: &Words, capacity_bps: u64, target: u32) {
        call!(self.link_set(link.of_mut(self.link), params.of(self.params), capacity_bps, target));
    }
    /// Returns the time until the next tick in µs, from C's `law_interval`.
    #[must_use]
    pub fn interval(&self, link: &Words) -> u32 {
        call!(self.interval(link.of(self.link)))
    }
    /// Ends a control interval with C's `law_tick`. The queue is in bytes.
    pub fn tick(&self, link: &mut Words, sums: &Words, queue: u64) {
        call!(self.tick(link.of_mut(self.link), sums.of(self.sums), queue));
    }
    /// Ends many intervals without arrivals at once, with C's `law_idle`.
    pub fn idle(&self, link: &mut Words, intervals: u64, queue: u64) {
        call!(self.idle(link.of_mut(self.link), intervals, queue));
    }
    /// Counts a packet and writes its value with C's `law_mark`. Returns true if the value changed.
    #[inline]
    pub fn mark(&self, link: &mut Words, cpu: &mut Words, packet: &Packet, value: &mut Value) -> bool {
        call!(self.mark(link.of_mut(self.link), cpu.of_mut(self.cpu), packet, value)) != 0
    }
    /// Returns true if [`KernelLaw::mark`] needs the link's lock for a SYN, from C's `law_syn_needs_lock`.
    #[must_use]
    pub fn syn_needs_lock(&self, link: &Words) -> bool {
        call!(self.syn_needs_lock(link.of(self.link))) != 0
    }
    /// Returns the link's signals, from C's `law_link_read`.
    #[must_use]
    pub fn link_signals(&self, link: &Words) -> [u64; SIGNALS] {
        let mut signals = [0; SIGNALS];
        call!(self.link_read(link.of(self.link), &mut signals));
        signals
    }
    /// Restores the signal of an earlier link with C's `law_link_restore`.
    pub fn link_restore(&self, link: &mut Words, signal: u64) {
        call!(self.link_restore(link.of_mut(self.link), signal));
    }

    /// Sets up a source with C's `law_source_init`. The packet size and the first window are in bytes.
    pub fn source_init(&self, params: &Words, source: &mut Words, packet: u32, window: u64) {
        call!(self.source_init(params.of(self.params), source.of_mut(self.source), packet, window));
    }
    /// Returns the value of a SYN, from C's `law_request`.
    #[must_use]
    pub fn request(&self, params: &Words) -> Value {
        let mut value = [0; VALUE_MAX];
        call!(self.request(params.of(self.params), &mut value));
        value
    }
    /// Returns the value of a data packet, from C's `law_forward`.
    #[must_use]
    pub fn forward(&self, params: &Words, source: &mut Words) -> Value {
        let mut value = [0; VALUE_MAX];
        call!(self.forward(params.of(self.params), source.of_mut(self.source), &mut value));
        value
    }
    /// Returns true if a router wrote this echo, from C's `law_heard`.
    #[must_use]
    pub fn heard(&self, echo: &Value) -> bool {
        call!(self.heard(echo)) != 0
    }
    /// Passes an acknowledgement to the source with C's `law_ack`. `None` means that the acknowledgement carries no
    /// echo.
    pub fn ack(&self, params: &Words, source: &mut Words, tcp: &Tcp, echo: Option<&Value>) {
        let (has_echo, echo) = (u32::from(echo.is_some()), echo.unwrap_or(&[0; VALUE_MAX]));
        call!(self.ack(params.of(self.params), source.of_mut(self.source), tcp, has_echo, echo));
    }
    /// Reports the start of a recovery to the source, with C's `law_loss`.
    pub fn loss(&self, params: &Words, source: &mut Words) {
        call!(self.loss(params.of(self.params), source.of_mut(self.source)));
    }
    /// Reports a retransmission timeout to the source, with C's `law_timeout`.
    pub fn timeout(&self, params: &Words, source: &mut Words) {
        call!(self.timeout(params.of(self.params), source.of_mut(self.source)));
    }
    /// Returns the limits that the law currently allows, from C's `law_limit`.
    #[must_use]
    pub fn limit(&self, source: &mut Words, tcp: &Tcp) -> KernelLimit {
        let mut limit = KernelLimit::default();
        call!(self.limit(source.of_mut(self.source), tcp, &mut limit));
        limit
    }
    /// Reduces rate and window by the fraction 2^-shift, with C's `law_reduce`.
    pub fn reduce(&self, source: &mut Words, shift: u32) {
        call!(self.reduce(source.of_mut(self.source), shift));
    }
    /// Returns a snapshot of the path's signal for [`KernelLaw::tightens`], from C's `law_evidence`.
    #[must_use]
    pub fn evidence(&self, source: &Words) -> u64 {
        call!(self.evidence(source.of(self.source)))
    }
    /// Returns true if the path's signal has tightened since the snapshot `evidence`, taken `us` µs ago, from C's
    /// `law_tightens`.
    #[must_use]
    pub fn tightens(&self, source: &Words, evidence: u64, us: u64) -> bool {
        call!(self.tightens(source.of(self.source), evidence, us)) != 0
    }
    /// Returns the source's signals, from C's `law_source_read`.
    #[must_use]
    pub fn source_signals(&self, source: &Words) -> [u64; SIGNALS] {
        let mut signals = [0; SIGNALS];
        call!(self.source_read(source.of(self.source), &mut signals));
        signals
    }

    /// Passes a packet's value to the receiver with C's `law_receive`. An RTT of 0 means that the RTT is unknown.
    pub fn receive(
        &self,
        params: &Words,
        receiver: &mut Words,
        now_us: u64,
        rtt_us: u32,
        value: &Value,
        segments: u32,
    ) {
        let (params, receiver) = (params.of(self.params), receiver.of_mut(self.receiver));
        call!(self.receive(params, receiver, now_us, rtt_us, value, segments));
    }
    /// Returns the value to send back, from C's `law_echo`.
    #[must_use]
    pub fn echo(&self, receiver: &mut Words) -> Value {
        let mut value = [0; VALUE_MAX];
        call!(self.echo(receiver.of_mut(self.receiver), &mut value));
        value
    }
    /// Creates a zeroed `struct replay_state` of `kernel/replay.h`.
    #[must_use]
    pub fn replay(&self) -> Words {
        Words::new(self.replay)
    }
    /// Makes the call of a record and returns the hash of all state after the call.
    ///
    /// The state's last six words are the results of the call: four numbers, then the value that the call wrote.
    pub fn replay_step(&self, state: &mut Words, record: &Record) -> u64 {
        call!(self.replay_step(state.of_mut(self.replay), record))
    }
    /// Computes TCP's limits with C's `host_control`, after `law_ack` and `law_limit`, while echoes arrive.
    pub(super) fn host_control(&self, pace: &mut Pace, limit: &KernelLimit, tcp: &Tcp, send: &mut Send) {
        call!(self.host_control(pace, limit, tcp, send));
    }
    /// Returns the signal that the receiver echoes, from C's `law_receiver_read`.
    #[must_use]
    pub fn receiver_signal(&self, receiver: &Words) -> u64 {
        call!(self.receiver_read(receiver.of(self.receiver)))
    }
}

#[cfg(test)]
#[test]
fn waterfill_shim_fields() {
    mod c {
        unsafe extern "C" {
            pub(super) safe fn waterfill_shim_fields() -> *const crate::mirror::CField;
        }
    }
    macro_rules! offsets {
        ($($field:ident),*) => { vec![$((stringify!($field), std::mem::offset_of!(KernelLaw, $field))),*] };
    }
    let mirror = offsets!(
        number,
        forward_bytes,
        echo_bytes,
        paced,
        rests_with_queue,
        params,
        link,
        sums,
        cpu,
        source,
        receiver,
        replay,
        params_fields,
        link_set,
        interval,
        tick,
        idle,
        mark,
        syn_needs_lock,
        link_read,
        link_restore,
        source_init,
        request,
        forward,
        heard,
        ack,
        loss,
        timeout,
        limit,
        reduce,
        evidence,
        tightens,
        source_read,
        receive,
        echo,
        receiver_read,
        replay_step,
        host_control
    );
    // SAFETY: the C function returns a static array made with `waterfill_field`'s macros.
    let c: Vec<_> = unsafe { crate::mirror::fields_of(c::waterfill_shim_fields()) }.collect();
    assert_eq!(c.iter().map(|(name, offset, _)| (*name, *offset)).collect::<Vec<_>>(), mirror);
    assert_eq!(c.iter().map(|(.., size)| size).sum::<usize>(), size_of::<KernelLaw>());
}

/// Returns the law that `kernel/<law>.c` exports under the given symbol.
macro_rules! exported {
    ($symbol:ident) => {{
        #[allow(unsafe_code, reason = "an object that C never changes")]
        unsafe extern "C" {
            safe static $symbol: $crate::kernel::KernelLaw;
        }
        &$symbol
    }};
}
pub(crate) use exported;
