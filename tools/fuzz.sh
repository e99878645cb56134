#!/usr/bin/env bash
# Builds the fuzz targets with libFuzzer and the coverage that it needs, for the host, with the stable compiler:
#   tools/fuzz.sh                prints the path of the program
#   FEATURES=a,b tools/fuzz.sh   with more features of the package waterfill-fuzz
# The fixed-point versions in C are instrumented too if there is a clang. ASAN=1 adds the address sanitizer to both, UBSAN=1 that
# of undefined behaviour to the C.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
flags=(-Cpasses=sancov-module -Ccodegen-units=1 --cfg fuzzing)
for option in level=4 inline-8bit-counters pc-table trace-compares; do
  flags+=("-Cllvm-args=-sanitizer-coverage-$option")
done
cflags="-O2 -g"
sanitize=fuzzer-no-link
build=target/fuzz
if [ "${ASAN:-0}" = 1 ]; then
  export RUSTC_BOOTSTRAP=1
  flags+=(-Zsanitizer=address)
  sanitize+=,address
  build+=-asan
fi
# Undefined behaviour of the C is an illegal instruction, which needs no runtime library. Kernels read words at any address.
if [ "${UBSAN:-0}" = 1 ]; then cflags+=" -fsanitize=undefined -fno-sanitize=alignment -fsanitize-trap=undefined"; fi
for name in ${CLANG:-clang-19 clang-18 clang-17 clang-16 clang-15 clang}; do
  if command -v "$name" >/dev/null; then
    export "CC_${host//-/_}=$PWD/tools/fuzz_cc.sh" FUZZ_CC="$name" FUZZ_CFLAGS="$cflags -fsanitize=$sanitize" FUZZ_TRIPLE="$host"
    break
  fi
done
# The daemon's targets need what the daemon needs.
if tools/daemon.sh >/dev/null; then FEATURES=daemon${FEATURES:+,$FEATURES}; fi
RUSTFLAGS="${flags[*]}" CARGO_TARGET_DIR=$build cargo build --locked --quiet --profile fuzz --target "$host" \
  --package waterfill-fuzz --bin fuzz --features "libfuzzer${FEATURES:+,$FEATURES}"
echo "$build/$host/fuzz/fuzz"
