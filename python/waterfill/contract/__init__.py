"""What crosses between Python and the core, typed: the network in, the summary out.

The Rust side is the crate `waterfill-network`.
"""
