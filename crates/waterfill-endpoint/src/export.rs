//! The C interface of an endpoint written in Rust: [`export_endpoint!`](crate::export_endpoint) defines the functions of
//! a shared library.
#![expect(unsafe_code, reason = "the functions of a C interface get raw pointers")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::slice;

use crate::{Datagram, Ecn, Endpoint, MAX_PAYLOAD, Side, Time};

/// Version of the C interface.
pub const VERSION: u32 = 1;

/// An endpoint behind the C interface.
#[derive(Debug)]
pub struct Exported {
    endpoint: Box<dyn Endpoint>,
    /// Message of the last call of [`Exported::set`].
    message: CString,
}

/// The functions of the C interface, which a library's own functions call with their arguments.
impl Exported {
    /// `wf_create`: `make` creates the endpoint of a side with a seed.
    #[must_use]
    pub fn create<E: Endpoint + 'static>(side: c_int, seed: u64, make: impl FnOnce(Side, u64) -> E) -> *mut Self {
        let side = if side == 0 { Side::Client } else { Side::Server };
        let endpoint = Box::new(make(side, seed));
        Box::into_raw(Box::new(Self { endpoint, message: CString::default() }))
    }

    /// `wf_destroy`.
    ///
    /// # Safety
    /// The pointer is from [`Exported::create`] and is not used again.
    pub unsafe fn destroy(this: *mut Self) {
        // SAFETY: by the caller.
        drop(unsafe { Box::from_raw(this) });
    }

    /// `wf_set`.
    ///
    /// # Safety
    /// Both pointers are strings of C.
    pub unsafe fn set(&mut self, key: *const c_char, value: *const c_char) -> *const c_char {
        // SAFETY: by the caller.
        let (key, value) = unsafe { (CStr::from_ptr(key), CStr::from_ptr(value)) };
        let Err(why) = self.endpoint.set(&key.to_string_lossy(), &value.to_string_lossy()) else {
            return std::ptr::null();
        };
        self.message = CString::new(why.replace('\0', " ")).unwrap_or_default();
        self.message.as_ptr()
    }

    /// `wf_start`.
    pub fn start(&mut self, now: u64) {
        self.endpoint.start(Time(now));
    }

    /// `wf_write`.
    pub fn write(&mut self, now: u64, bytes: u64) {
        self.endpoint.write(Time(now), bytes);
    }

    /// `wf_read`.
    pub fn read(&mut self, now: u64) -> u64 {
        self.endpoint.read(Time(now))
    }

    /// `wf_poll_transmit`.
    ///
    /// # Safety
    /// `payload` can hold [`MAX_PAYLOAD`] bytes, and `ecn` for one.
    pub unsafe fn poll_transmit(&mut self, now: u64, payload: *mut u8, ecn: *mut u8) -> usize {
        let Some(datagram) = self.endpoint.poll_transmit(Time(now)) else { return 0 };
        let size = datagram.payload.len().min(MAX_PAYLOAD);
        // SAFETY: by the caller.
        unsafe {
            slice::from_raw_parts_mut(payload, size).copy_from_slice(&datagram.payload[..size]);
            *ecn = datagram.ecn as u8;
        }
        size
    }

    /// `wf_handle`.
    ///
    /// # Safety
    /// `payload` has `size` bytes.
    pub unsafe fn handle(&mut self, now: u64, payload: *const u8, size: usize, ecn: u8) {
        // SAFETY: by the caller.
        let payload = unsafe { slice::from_raw_parts(payload, size) }.to_vec();
        self.endpoint.handle(Time(now), &Datagram { ecn: Ecn::from_bits(ecn), payload });
    }

    /// `wf_next_timer`.
    #[must_use]
    pub fn next_timer(&self) -> u64 {
        self.endpoint.next_timer().map_or(u64::MAX, Time::as_nanos)
    }
}

/// Exports the C interface of an endpoint, so that a crate of type `cdylib` is a library for `--endpoint`.
///
/// The arguments are its name, a string literal, and a function from [`Side`] and seed to the endpoint.
///
/// ```
/// use waterfill_endpoint::{Datagram, Endpoint, Side, Time, export_endpoint};
///
/// struct Silent;
///
/// impl Endpoint for Silent {
///     fn start(&mut self, _now: Time) {}
///     fn write(&mut self, _now: Time, _bytes: u64) {}
///     fn read(&mut self, _now: Time) -> u64 { 0 }
///     fn poll_transmit(&mut self, _now: Time) -> Option<Datagram> { None }
///     fn handle(&mut self, _now: Time, _datagram: &Datagram) {}
///     fn next_timer(&self) -> Option<Time> { None }
/// }
///
/// export_endpoint!("silent", |_side: Side, _seed: u64| Silent);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! export_endpoint {
    ($name:literal, $make:expr) => {
        #[allow(unsafe_code, unreachable_pub, clippy::undocumented_unsafe_blocks, reason = "a C interface")]
        const _: () = {
            use ::std::ffi::{c_char, c_int};
            use $crate::export::Exported;

            #[unsafe(no_mangle)]
            pub extern "C" fn wf_endpoint_version() -> u32 {
                $crate::export::VERSION
            }
            #[unsafe(no_mangle)]
            pub extern "C" fn wf_endpoint_name() -> *const c_char {
                concat!($name, "\0").as_ptr().cast()
            }
            #[unsafe(no_mangle)]
            pub extern "C" fn wf_create(side: c_int, seed: u64) -> *mut Exported {
                Exported::create(side, seed, $make)
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn wf_destroy(this: *mut Exported) {
                unsafe { Exported::destroy(this) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn wf_set(
                this: *mut Exported,
                key: *const c_char,
                value: *const c_char,
            ) -> *const c_char {
                unsafe { (*this).set(key, value) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn wf_start(this: *mut Exported, now: u64) {
                unsafe { (*this).start(now) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn wf_write(this: *mut Exported, now: u64, bytes: u64) {
                unsafe { (*this).write(now, bytes) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn wf_read(this: *mut Exported, now: u64) -> u64 {
                unsafe { (*this).read(now) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn wf_poll_transmit(
                this: *mut Exported,
                now: u64,
                payload: *mut u8,
                ecn: *mut u8,
            ) -> usize {
                unsafe { (*this).poll_transmit(now, payload, ecn) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn wf_handle(
                this: *mut Exported,
                now: u64,
                payload: *const u8,
                size: usize,
                ecn: u8,
            ) {
                unsafe { (*this).handle(now, payload, size, ecn) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn wf_next_timer(this: *const Exported) -> u64 {
                unsafe { (*this).next_timer() }
            }
        };
    };
}
