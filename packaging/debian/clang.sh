#!/usr/bin/env bash
# The compiler of the kernel programs in the package, with which the folder has no effect on the bytes:
#
#   CLANG=packaging/debian/clang.sh WATERFILL_CLANG=clang-19 cargo build …
#
# clang orders the names of types that it knows only by name (two fields of __sk_buff) by addresses in its memory. Those depend
# on the length of the sources' path: with clang 19, csig.bpf.c in folders of 25 to 40 characters has another order than in
# others. So the sources are preprocessed, and compiled from the standard input, in a folder that every host has. Warnings are for
# other builds: where macros are expanded, clang warns of what they compare.
set -euo pipefail
compiler=${WATERFILL_CLANG:?expected the name of a clang}
given=("$@") source='' object='' options=()
while [ $# -gt 0 ]; do
  case $1 in
    -c) source=$2; shift ;;
    -o) object=$2; shift ;;
    -I) shift ;;
    -I* | -D* | -ffile-prefix-map=*) ;; # the preprocessor's
    *) options+=("$1") ;;
  esac
  shift
done
[ -n "$source" ] && [ -n "$object" ] || exec "$compiler" "${given[@]}"
workspace=$(cd "$(dirname "$0")/../.." && pwd)
"$compiler" "${given[@]}" -E -o - | sed "s#\"$workspace/#\"./#" |
  (cd / && "$compiler" "${options[@]}" -w -fdebug-compilation-dir=. -x cpp-output -c - -o -) >"$object"
