//! Functions that a page calls, over buffers that this module keeps.

use std::cell::RefCell;

use crate::run::{Finished, finish};

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Returns the address of a buffer of `bytes` bytes for the next request.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "the page finds a function by its name; no other exported function has it")]
pub extern "C" fn waterfill_input(bytes: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        *input = vec![0; bytes];
        input.as_mut_ptr()
    })
}

/// Runs the request in the buffer. Returns 1 if the output has the results, and 0 if it has a sentence that says why not.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "the page finds a function by its name; no other exported function has it")]
pub extern "C" fn waterfill_run() -> u32 {
    let request = INPUT.take();
    let done = finish(&request).and_then(|finished: Finished| finished.encode());
    let succeeded = done.is_ok();
    OUTPUT.set(done.unwrap_or_else(String::into_bytes));
    u32::from(succeeded)
}

/// Returns the address of the output of the last run.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "the page finds a function by its name; no other exported function has it")]
pub extern "C" fn waterfill_output() -> *const u8 {
    OUTPUT.with_borrow(Vec::as_ptr)
}

/// Returns the length of the output of the last run in bytes.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "the page finds a function by its name; no other exported function has it")]
pub extern "C" fn waterfill_output_len() -> usize {
    OUTPUT.with_borrow(Vec::len)
}
