#!/bin/sh
# The C compiler of tools/fuzz.sh: FUZZ_CC, with FUZZ_CFLAGS for the C of our packages. Build scripts and the libraries that they
# link run without a fuzzer, so their C stays as it is; cargo builds them outside the folder of the target, FUZZ_TRIPLE.
# shellcheck disable=SC2086 # the flags are words
case "${OUT_DIR:-}" in
*/"$FUZZ_TRIPLE"/*/waterfill-*) exec "$FUZZ_CC" $FUZZ_CFLAGS "$@" ;;
*) exec "$FUZZ_CC" "$@" ;;
esac
