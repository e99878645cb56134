#!/usr/bin/env bash
# What this machine lacks to build waterfilld (crates/waterfill-linux, feature "daemon"): the compiler of kernel programs, and
# the libraries that libbpf stands on, with their headers.
#
#   tools/daemon.sh            nothing and exit 0 when it can be built here; else one line that says what is missing, exit 1
#   tools/daemon.sh packages   Debian's packages for what is missing
set -uo pipefail

[ "$(uname)" = Linux ] || { echo "MaxNet on Linux needs Linux"; exit 1; }

lacks=() packages=()

# The same compilers as in crates/waterfill-linux/build.rs, where the first that is there is taken.
bpf_works() { echo 'int x;' | "$1" -target bpf -x c -c -o /dev/null - 2>/dev/null; }
major() { "$1" --version 2>/dev/null | sed -n 's/.*clang version \([0-9]*\).*/\1/p' | head -n1; }
compiler=
for name in ${CLANG:-clang-19 clang-18 clang-17 clang-16 clang-15 clang}; do
  if command -v "$name" >/dev/null; then compiler=$name; break; fi
done
if [ -z "$compiler" ] || [ "$(major "$compiler")" -lt 15 ] 2>/dev/null || ! bpf_works "$compiler"; then
  lacks+=("clang 15 or newer"); packages+=(clang-19)
fi

# libbpf-sys compiles libbpf with make and asks for pkg-config; the program is linked with libelf and zlib.
compiles() { echo "$1" | cc -x c -o /dev/null - "${@:2}" 2>/dev/null; }
command -v make >/dev/null || { lacks+=(make); packages+=(make); }
command -v "${PKG_CONFIG:-pkg-config}" >/dev/null || { lacks+=(pkg-config); packages+=(pkg-config); }
compiles '#include <gelf.h>
int main(void) { return elf_version(EV_CURRENT) == EV_NONE; }' -lelf || { lacks+=("libelf with headers"); packages+=(libelf-dev); }
compiles '#include <zlib.h>
int main(void) { return zlibVersion() == 0; }' -lz || { lacks+=("zlib with headers"); packages+=(zlib1g-dev); }
compiles '#include <linux/bpf.h>
#include <linux/tcp.h>
int main(void) { return 0; }' || { lacks+=("the kernel's headers"); packages+=(linux-libc-dev); }

if [ "${1:-}" = packages ]; then
  echo "${packages[*]}"
elif [ ${#lacks[@]} -gt 0 ]; then
  what=$(printf ', %s' "${lacks[@]}")
  echo "MaxNet on Linux (waterfilld) needs ${what#, } (Debian: ${packages[*]})"
  exit 1
fi
