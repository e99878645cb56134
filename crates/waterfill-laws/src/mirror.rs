//! Rust mirrors of the C structs in `kernel/`. Tests compare each mirror with C's own list of fields.

/// Field of a C struct: `struct waterfill_field` of `kernel/mirror.h`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CField {
    name: *const std::ffi::c_char,
    offset: u32,
    size: u32,
}

/// Reads C's list of fields as (name, offset, size).
///
/// # Safety
/// `field` points to a static array whose last element has no name, and names end in a zero byte.
#[allow(unsafe_code, reason = "C's list is an array that ends where its field has no name")]
pub(crate) unsafe fn fields_of(mut field: *const CField) -> impl Iterator<Item = (&'static str, usize, usize)> + use<> {
    std::iter::from_fn(move || {
        // SAFETY: by this function's contract, every element up to the one without a name is valid for ever.
        let &CField { name, offset, size } = unsafe { field.as_ref() }.filter(|f| !f.name.is_null())?;
        // SAFETY: likewise, its name is a string of C.
        let name = unsafe { std::ffi::CStr::from_ptr(name) }.to_str().unwrap_or_default();
        // SAFETY: the element had a name, so it is not the last.
        field = unsafe { field.add(1) };
        Some((name, offset as usize, size as usize))
    })
}

/// Declares the mirror of a C struct, and a test that compares names, offsets and sizes with the list that the C
/// function `$list` returns.
macro_rules! mirror {
    ($(#[$meta:meta])* $vis:vis struct $name:ident = $list:ident { $($(#[$doc:meta])* $field:ident: $t:ty,)* }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        $vis struct $name { $($(#[$doc])* $vis $field: $t,)* }

        #[cfg(test)]
        #[test]
        fn $list() {
            mod c {
                unsafe extern "C" {
                    pub(super) safe fn $list() -> *const crate::mirror::CField;
                }
            }
            let mirror = vec![$((stringify!($field), std::mem::offset_of!($name, $field), size_of::<$t>()),)*];
            // SAFETY: the C function returns a static array made with `waterfill_field`'s macros.
            assert_eq!(unsafe { crate::mirror::fields_of(c::$list()) }.collect::<Vec<_>>(), mirror);
        }
    };
}
pub(crate) use mirror;
