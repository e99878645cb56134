#!/usr/bin/env bash
# Runs code with `unsafe`, and the laws' C, under sanitizers:
#   tools/sanitize.sh            the tests of waterfill-laws and waterfill-linux, without what needs root; then all fuzz targets
#   RUNS=100000 tools/sanitize.sh    so many inputs of each fuzz target; 20,000 by default, a tenth where one is a whole run
#
# Rust runs under the address sanitizer, C under the address and the undefined-behaviour sanitizer; both end the program at
# the first error. clang's sanitizer of addresses is that of rustc; gcc has another runtime.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
for name in ${CLANG:-clang-19 clang-18 clang-17 clang-16 clang-15 clang}; do
  if command -v "$name" >/dev/null; then compiler=$name; break; fi
done
[ -n "${compiler:-}" ] || { echo "sanitize: needs clang 15 or newer, on PATH or named by the variable CLANG" >&2; exit 1; }

# Undefined behaviour is an illegal instruction, which needs no runtime library. Kernels read words at any address.
undefined="-fsanitize=undefined -fno-sanitize=alignment -fsanitize-trap=undefined"
export RUSTC_BOOTSTRAP=1 ASAN_OPTIONS=detect_leaks=0 # statics of the tests

# Only for this command: tools/fuzz.sh has other flags, and not for the C of build scripts, which are not sanitized.
env "CC_${host//-/_}=$compiler" \
  "CFLAGS_${host//-/_}=-O1 -g -fno-omit-frame-pointer -fsanitize=address $undefined" \
  RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=target/sanitize cargo test --locked --target "$host" \
  --package waterfill-laws --package waterfill-linux --lib --tests

program=$(ASAN=1 UBSAN=1 tools/fuzz.sh)
FUZZ_TARGET=list "$program" | while IFS=$'\t' read -r target bytes share _; do
  folder=$(mktemp -d)
  python3 -c '
import pathlib, sys
folder = pathlib.Path(sys.argv[2])
for n, line in enumerate(pathlib.Path("fuzz/corpus", sys.argv[1] + ".txt").read_text().splitlines()):
    (folder / str(n)).write_bytes(line.encode("ascii").decode("unicode_escape").encode("latin-1"))
' "$target" "$folder"
  runs=${RUNS:-20000}
  if [ "$share" -le 100000 ]; then runs=$((runs / 10)); fi
  FUZZ_TARGET=$target "$program" -runs="$runs" -max_len="$bytes" -rss_limit_mb=4096 \
    -artifact_prefix="$folder-" "$folder" >"$folder.log" 2>&1 || { tail -n 40 "$folder.log" >&2; exit 1; }
  echo "sanitize: $target: $(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$folder.log") inputs, nothing found"
  rm -r "$folder" "$folder.log"
done
