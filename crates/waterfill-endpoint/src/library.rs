//! Endpoints in shared libraries, by the C interface of `include/waterfill_endpoint.h`.
#![expect(unsafe_code, reason = "calls of a library that the user trusts")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::export::VERSION;
use crate::{Datagram, Ecn, Endpoint, MAX_PAYLOAD, Side, Time};

type Pointer = *mut c_void;

/// The functions of a library.
#[derive(Clone, Copy, Debug)]
struct Functions {
    create: unsafe extern "C" fn(c_int, u64) -> Pointer,
    destroy: unsafe extern "C" fn(Pointer),
    /// Only libraries with options have it.
    set: Option<unsafe extern "C" fn(Pointer, *const c_char, *const c_char) -> *const c_char>,
    start: unsafe extern "C" fn(Pointer, u64),
    write: unsafe extern "C" fn(Pointer, u64, u64),
    read: unsafe extern "C" fn(Pointer, u64) -> u64,
    poll_transmit: unsafe extern "C" fn(Pointer, u64, *mut u8, *mut u8) -> usize,
    handle: unsafe extern "C" fn(Pointer, u64, *const u8, usize, u8),
    next_timer: unsafe extern "C" fn(*const c_void) -> u64,
}

/// A shared library with endpoints. Its code runs in this process with all its rights.
#[derive(Clone, Debug)]
pub struct EndpointLibrary {
    functions: Functions,
    name: String,
    /// Keeps the functions' code in memory.
    library: Arc<libloading::Library>,
}

impl EndpointLibrary {
    /// Loads a library, which runs its initialization.
    ///
    /// # Errors
    /// One sentence: the file is not a library, or lacks a function, or has another version of the interface.
    pub fn load(file: &Path) -> Result<Self, String> {
        let shown = file.display();
        // With a slash, or the system would search its own directories for the name.
        let path = std::path::absolute(file).map_err(|e| format!("{shown}: {e}"))?;
        // SAFETY: the caller trusts the library, whose initialization runs here.
        let library = unsafe { libloading::Library::new(path) };
        let library = library.map_err(|e| format!("{shown}: cannot be loaded: {e}"))?;
        // SAFETY: the header gives these functions these types, and the version says that the library follows it.
        let (functions, name) = unsafe {
            let version: unsafe extern "C" fn() -> u32 = function(&library, file, "wf_endpoint_version")?;
            let found = version();
            if found != VERSION {
                return Err(format!("{shown}: has version {found} of the interface, not {VERSION}; rebuild it"));
            }
            let name: unsafe extern "C" fn() -> *const c_char = function(&library, file, "wf_endpoint_name")?;
            let functions = Functions {
                create: function(&library, file, "wf_create")?,
                destroy: function(&library, file, "wf_destroy")?,
                set: function(&library, file, "wf_set").ok(),
                start: function(&library, file, "wf_start")?,
                write: function(&library, file, "wf_write")?,
                read: function(&library, file, "wf_read")?,
                poll_transmit: function(&library, file, "wf_poll_transmit")?,
                handle: function(&library, file, "wf_handle")?,
                next_timer: function(&library, file, "wf_next_timer")?,
            };
            let name = name();
            if name.is_null() {
                return Err(format!("{shown}: wf_endpoint_name returns no name"));
            }
            (functions, CStr::from_ptr(name).to_string_lossy().into_owned())
        };
        Ok(Self { functions, name, library: Arc::new(library) })
    }

    /// Returns the name of the library's endpoint.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Creates an endpoint with these options.
    ///
    /// # Errors
    /// One sentence: the library cannot create it, or refuses an option.
    pub fn create(&self, side: Side, seed: u64, options: &[(String, String)]) -> Result<Box<dyn Endpoint>, String> {
        // SAFETY: a function of the interface.
        let made = unsafe { (self.functions.create)(side as c_int, seed) };
        let Some(state) = NonNull::new(made) else {
            return Err(format!("the library of {} could not create an endpoint", self.name));
        };
        let mut endpoint =
            Loaded { state, functions: self.functions, buffer: vec![0; MAX_PAYLOAD], _code: self.library.clone() };
        for (key, value) in options {
            endpoint.set(key, value).map_err(|why| format!("{}: {why}", self.name))?;
        }
        Ok(Box::new(endpoint))
    }
}

/// Returns a function of a library.
///
/// # Safety
/// `F` is the type of the function with this name.
unsafe fn function<F: Copy>(library: &libloading::Library, file: &Path, name: &str) -> Result<F, String> {
    // SAFETY: by the caller.
    let symbol = unsafe { library.get::<F>(name.as_bytes()) };
    symbol.map(|found| *found).map_err(|_| format!("{}: has no function {name}", file.display()))
}

/// An endpoint of a library.
struct Loaded {
    state: NonNull<c_void>,
    functions: Functions,
    /// Room for a datagram.
    buffer: Vec<u8>,
    _code: Arc<libloading::Library>,
}

// SAFETY: the interface promises calls from one thread at a time, not from the same one.
unsafe impl Send for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: the state was made by `create` and is not used again.
        unsafe { (self.functions.destroy)(self.state.as_ptr()) }
    }
}

impl Endpoint for Loaded {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let Some(set) = self.functions.set else { return Err(format!("unknown option {key:?}; there are none")) };
        let text = |part: &str| CString::new(part).map_err(|_| format!("option {key:?} contains a zero byte"));
        let (name, value) = (text(key)?, text(value)?);
        // SAFETY: the state is alive, and a message lives until the next call.
        unsafe {
            let message = set(self.state.as_ptr(), name.as_ptr(), value.as_ptr());
            if message.is_null() { Ok(()) } else { Err(CStr::from_ptr(message).to_string_lossy().into_owned()) }
        }
    }

    fn start(&mut self, now: Time) {
        // SAFETY: the state is alive, here and below.
        unsafe { (self.functions.start)(self.state.as_ptr(), now.0) }
    }

    fn write(&mut self, now: Time, bytes: u64) {
        // SAFETY: as above.
        unsafe { (self.functions.write)(self.state.as_ptr(), now.0, bytes) }
    }

    fn read(&mut self, now: Time) -> u64 {
        // SAFETY: as above.
        unsafe { (self.functions.read)(self.state.as_ptr(), now.0) }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        let mut ecn = 0;
        // SAFETY: as above; the buffer is as large as any datagram.
        let size = unsafe {
            (self.functions.poll_transmit)(self.state.as_ptr(), now.0, self.buffer.as_mut_ptr(), &raw mut ecn)
        };
        let payload = self.buffer.get(..size).filter(|payload| !payload.is_empty())?.to_vec();
        Some(Datagram { ecn: Ecn::from_bits(ecn), payload })
    }

    fn handle(&mut self, now: Time, datagram: &Datagram) {
        let payload = &datagram.payload;
        // SAFETY: as above; the payload has this size.
        unsafe {
            (self.functions.handle)(self.state.as_ptr(), now.0, payload.as_ptr(), payload.len(), datagram.ecn as u8);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        // SAFETY: as above.
        let time = unsafe { (self.functions.next_timer)(self.state.as_ptr()) };
        (time != u64::MAX).then_some(Time(time))
    }
}
