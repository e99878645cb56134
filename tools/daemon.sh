#!/usr/bin/env bash
# Checks what building waterfilld (crates/waterfill-linux, feature "daemon") needs: a compiler for BPF, and the libraries that
# libbpf links with, with their headers.
#
#   tools/daemon.sh            prints nothing and exits 0 if waterfilld can be built; else prints what is missing and exits 1
#   tools/daemon.sh packages   prints the Debian packages that are missing
set -uo pipefail

[ "$(uname)" = Linux ] || { echo "MaxNet on Linux needs Linux"; exit 1; }

missing=() packages=()

# The same compilers as in crates/waterfill-linux/build.rs, which also takes the first that exists.
compiler=
for name in ${CLANG:-clang-19 clang-18 clang-17 clang-16 clang-15 clang}; do
  if command -v "$name" >/dev/null; then compiler=$name; break; fi
done
"${compiler:-false}" -target bpf -x c -c -o /dev/null - 2>/dev/null <<'C' || { missing+=("clang 15 or newer"); packages+=(clang-19); }
#if __clang_major__ < 15
#error too old
#endif
int x;
C

# libbpf-sys compiles libbpf with make and calls pkg-config; the program is linked with libelf and zlib.
command -v make >/dev/null || { missing+=(make); packages+=(make); }
command -v "${PKG_CONFIG:-pkg-config}" >/dev/null || { missing+=(pkg-config); packages+=(pkg-config); }

headers() { printf '#include <%s>\n' "$@"; }
links() { { cat; echo 'int main(void) { return 0; }'; } | cc -x c -o /dev/null - "$@" 2>/dev/null; }
# One compilation if nothing is missing: every target of the Makefile that builds runs this.
if ! headers gelf.h zlib.h linux/bpf.h linux/tcp.h | links -lelf -lz; then
  headers gelf.h | links -lelf || { missing+=("libelf with headers"); packages+=(libelf-dev); }
  headers zlib.h | links -lz || { missing+=("zlib with headers"); packages+=(zlib1g-dev); }
  headers linux/bpf.h linux/tcp.h | links || { missing+=("the kernel's headers"); packages+=(linux-libc-dev); }
fi

if [ "${1:-}" = packages ]; then
  echo "${packages[*]}"
elif [ ${#missing[@]} -gt 0 ]; then
  what=$(printf ', %s' "${missing[@]}")
  echo "MaxNet on Linux (waterfilld) needs ${what#, } (Debian: ${packages[*]})"
  exit 1
fi
