#!/usr/bin/env bash
# Calls rustc with counters of executed code: cargo's RUSTC_WORKSPACE_WRAPPER, so that only this project's crates have them.
exec "$@" -C instrument-coverage
