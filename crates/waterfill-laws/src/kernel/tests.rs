//! Tests of the interface, for every law that has a kernel version.

use super::{Field, KernelLaw, Law};
use crate::protocols::aecp::Aecp;
use crate::protocols::ixcp::IXcp;
use crate::protocols::pxcp::PXcp;
use crate::protocols::rcp::Rcp;
use crate::protocols::xcp::Xcp;

/// Asserts that a protocol's parameters are the fields of C's `struct law_params`, in their order and without padding.
fn parameters_are_those_of_c<P: KernelLaw>() {
    let mut end = 0;
    let mirror: Vec<_> = P::params(&P::Params::default(), 1.0)
        .iter()
        .map(|field| {
            let (name, size) = match *field {
                Field::U32(name, _) => (name, 4),
                Field::U64(name, _) => (name, 8),
            };
            end += size;
            (name.to_owned(), end - size, size)
        })
        .collect();
    assert_eq!(P::law().params_fields(), mirror, "{}", P::INFO.name);
}

#[test]
fn parameters_are_those_of_each_law() {
    parameters_are_those_of_c::<Aecp>();
    parameters_are_those_of_c::<Rcp>();
    parameters_are_those_of_c::<Xcp>();
    parameters_are_those_of_c::<PXcp>();
    parameters_are_those_of_c::<IXcp>();
}

/// Values fit the option, and numbers on the wire are each law's own.
#[test]
fn laws_have_numbers_and_sizes() {
    let laws = Law::all();
    for (i, (name, law)) in laws.iter().enumerate() {
        assert!((3..=15).contains(&law.forward_bytes()) && (3..=15).contains(&law.echo_bytes()), "{name}");
        assert!(laws[..i].iter().all(|(_, other)| other.number() != law.number()), "{name}");
    }
}
