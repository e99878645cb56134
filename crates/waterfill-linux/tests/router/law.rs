//! Tests of the kernel program's price against the law compiled for this host.

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;
use waterfill_laws as _; // links the C code of the law

use crate::router;
use crate::support::{LOOPBACK, LawLink, Request, Router, idle_link};

/// Link of the law, computed by the C code on this host.
pub(crate) struct HostLaw(LawLink);

#[expect(unsafe_code, reason = "C functions")]
mod ffi {
    use crate::support::LawLink;

    unsafe extern "C" {
        pub(super) fn waterfill_maxnet_link_init(
            link: *mut LawLink,
            capacity: u64,
            x_max: u64,
            x_min: u64,
            t: u32,
            mu: u32,
            dt_p: u32,
            t_0: u32,
            promise: u32,
        );
        pub(super) fn waterfill_maxnet_link_set(link: *mut LawLink, capacity: u64, x_min: u64, mu: u32);
        pub(super) fn waterfill_maxnet_mark(link: *mut LawLink, field: u32) -> u32;
        pub(super) fn waterfill_maxnet_tick(link: *mut LawLink, bytes: u64, queue: u64);
    }
}

#[expect(unsafe_code, reason = "C functions on a structure of this type")]
impl HostLaw {
    pub(crate) fn new(r: &Request) -> Self {
        let mut link = LawLink::default();
        // SAFETY: the structure is the C code's own type and is used for the call only.
        unsafe {
            ffi::waterfill_maxnet_link_init(
                &raw mut link,
                r.rate,
                r.x_max,
                r.x_min,
                r.t,
                r.mu,
                r.dt_p,
                r.t_0,
                r.promise,
            );
        };
        Self(link)
    }

    fn set(&mut self, capacity: u64, x_min: u64, mu: u32) {
        // SAFETY: as above.
        unsafe { ffi::waterfill_maxnet_link_set(&raw mut self.0, capacity, x_min, mu) };
    }

    fn tick(&mut self, bytes: u64, queue: u64) {
        // SAFETY: as above.
        unsafe { ffi::waterfill_maxnet_tick(&raw mut self.0, bytes, queue) };
    }

    /// Returns the field that the law writes into a packet with `field`.
    pub(crate) fn mark(&mut self, field: u32) -> u32 {
        // SAFETY: as above.
        unsafe { ffi::waterfill_maxnet_mark(&raw mut self.0, field) }
    }

    /// Returns the price in units of 2^-34 s.
    fn price(&self) -> u64 {
        self.0.price
    }
}

/// Sets up a link without real packets, at 100 Mbit/s with dt_p = 1 ms and thus 12,500 bytes per interval. Returns the
/// request and the host's copy.
fn replayed(router: &Router) -> (Request, HostLaw) {
    const START_NS: u64 = 1_000_000_000_000;
    let request = Request {
        ifindex: 1_000_000,
        now: START_NS,
        rate: 100_000_000,
        dt_p: 1000,
        t_0: 130_000,
        ..idle_link(LOOPBACK)
    };
    router.set(request);
    (request, HostLaw::new(&request))
}

#[test]
fn the_price_equals_the_laws_price() {
    let Some((router, _)) = router() else { return };
    let (request, mut law) = replayed(&router);
    let arrive = |now, bytes| router.arrive(&request, now, bytes);
    let mut random = Pcg64Mcg::new(1);
    let mut highest = 0;
    // The law gets every interval; the program gets packets, and none in most of the idle intervals.
    let mut interval_end = request.now + 1_000_000;
    let mut rate = request.rate;
    for round in 0..20_000_u64 {
        if round % 5000 == 4999 {
            rate = 50_000_000 + 10_000 * round;
            let mu = 900_000 + round as u32;
            router.set(Request { rate, mu, now: interval_end - 1_000_000, ..request });
            law.set(rate, request.x_min, mu);
        }
        // Up to what the link carries, so that nothing waits: then every step is exact.
        let free = rate / 8000;
        let packets = random.next_u64() % 12;
        let mut bytes = 0;
        for i in 0..packets {
            let volume = (random.next_u64() % 3000).min(free - bytes);
            bytes += volume;
            let found = arrive(interval_end - 900_000 + i * 50_000, volume);
            assert_eq!(found.attachment.price, law.price(), "round {round}");
        }
        // Full for thousands of intervals: the price rises well above its minimum.
        if round % 3000 > 600 && packets > 0 {
            arrive(interval_end - 1, free - bytes);
            bytes = free;
        }
        law.tick(bytes, 0);
        let idle = if random.next_u64() % 8 == 0 { random.next_u64() % 40 } else { 0 };
        for _ in 0..idle {
            law.tick(0, 0);
        }
        interval_end += (idle + 1) * 1_000_000;
        // The first packet after an interval's end closes it, which may be much later.
        if packets % 2 == 0 {
            highest = highest.max(arrive(interval_end - 1_000_000, 0).attachment.price);
        }
    }
    let min = router.show(request.ifindex).price_min;
    assert!(highest > min + min / 100, "{highest} and {min}");
}

#[test]
fn a_virtual_queue_replaces_one_that_cannot_be_read() {
    let Some((router, _)) = router() else { return };
    let (request, mut law) = replayed(&router);
    let arrive = |now, bytes| router.arrive(&request, now, bytes);
    let per_interval = request.rate / 8000;
    let mut queue = 0_u64;
    let mut now = request.now;
    for (bytes, idle) in [(3 * per_interval, 0), (20 * per_interval, 5), (0, 0), (7 * per_interval + 11, 300), (1, 2)] {
        now += 1;
        arrive(now, bytes);
        queue = (queue + bytes).saturating_sub(per_interval);
        law.tick(bytes, queue);
        for _ in 0..idle {
            queue = queue.saturating_sub(per_interval);
            law.tick(0, queue);
        }
        now += (idle + 1) * 1_000_000 - 1;
        let found = arrive(now, 0);
        assert_eq!(found.queue, queue);
        // Idle intervals use their mean queue in whole bytes, an error of up to a byte in each: dt_p/T_0 of a byte's time at
        // C, in 2^-34 s, and a unit of rounding.
        let byte = 8.0 / 1e8 / 130.0 * 2_f64.powi(34);
        let off = found.attachment.price.abs_diff(law.price());
        assert!(off as f64 <= (idle + 1) as f64 * (byte + 1.0), "off by {off} after {idle}");
    }
}

#[test]
fn a_running_link_keeps_its_price() {
    let Some((router, _)) = router() else { return };
    let (request, _) = replayed(&router);
    let arrive = |now, bytes| router.arrive(&request, now, bytes);
    arrive(request.now, 10_000_000);
    let before = arrive(request.now + 1_500_000, 0).attachment.price;
    assert!(before > request.attachment.price);
    for change in [
        Request { rate: 200_000_000, ..request },
        Request { mu: 500_000, ..request },
        Request { dt_p: 10_000, ..request }, // restarts the law
    ] {
        assert_eq!(router.set(change).attachment.price, before);
    }
    // Unless the new minimum is higher.
    let slow = router.set(Request { rate: 1000, ..request });
    assert_eq!(slow.attachment.price, slow.price_min.max(before));
    assert!(slow.price_min > before);
}
