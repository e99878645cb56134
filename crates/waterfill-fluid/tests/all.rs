//! The tests of the fluid model as one program: a program for each file would be optimised and linked 7 times.

mod changes;
mod common;
mod estimate;
mod exact;
mod laws;
mod refusals;
mod slices;
mod steps;
