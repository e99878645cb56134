#!/usr/bin/env bash
# Builds the Python wheel and the bench with a profile of the packet engine, into target/pgo. Run by 'make package WHAT=pgo', which has set up
# .venv. The ordinary build is not touched: its code is the same on every host, and needs no profile.
set -euo pipefail
cd "$(dirname "$0")/.."
exec >&2

# A profile is read by the llvm-profdata of rustc's own LLVM, or of one as new: rustup's component llvm-tools, or the system's.
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
host=$(rustc -vV | sed -n 's/^host: //p')
profdata=
for tool in "$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata" "llvm-profdata-$llvm" llvm-profdata; do
  if command -v "$tool" >/dev/null && version=$("$tool" merge --version 2>/dev/null | grep -o 'version [0-9]*' | grep -o '[0-9]*'); then
    [ "$version" -lt "$llvm" ] || { profdata=$tool; break; }
  fi
done
if [ -z "$profdata" ]; then
  echo "pgo: needs llvm-profdata of LLVM $llvm or newer: 'rustup component add llvm-tools', or the system's llvm-$llvm"
  exit 1
fi

out=$PWD/target/pgo
rm -rf "$out/raw" "$out/wheel"
echo "pgo: building with counters, then running the bench's cases and a row of 100 links"
export CARGO_TERM_QUIET=true
train() { CARGO_TARGET_DIR="$out/train" RUSTFLAGS="-Cprofile-generate=$out/raw" cargo "$@"; }
# The extension is named as well, so that both builds have the same features: a profile belongs to exactly these crates.
packages=(--package waterfill-bench --package waterfill-python)
train build --release --locked "${packages[@]}" --bins --examples
rm -rf "$out/raw" # of programs that ran during the build
"$out/train/release/waterfill-bench" window-10 sack-10 cubic-10 maxnet-10 xcp-10 --seconds 10 >/dev/null
"$out/train/release/examples/growth" links 100 >/dev/null
"$profdata" merge --output="$out/engine.profdata" "$out/raw"

echo "pgo: building with the profile"
export CARGO_TARGET_DIR="$out/build" RUSTFLAGS="-Cprofile-use=$out/engine.profdata"
cargo build --release --locked "${packages[@]}" --bins --examples
env -u CONDA_PREFIX VIRTUAL_ENV="$PWD/.venv" PATH="$PWD/.venv/bin:$PATH" \
  .venv/bin/maturin build --release --locked --quiet --out "$out/wheel"
echo "pgo: install it with pip from $(ls "$out"/wheel/*.whl); measure it with $CARGO_TARGET_DIR/release/waterfill-bench"
