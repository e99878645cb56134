"""Typed data exchanged by Python and the core: the network in, the summary out.

The Rust side is the crate `waterfill-network`.
"""
