#!/usr/bin/env bash
# Checks the system requirements, then creates .venv and installs lock files into it.
#
#   tools/setup.sh run       to build and run: needs Python with venv, Rust, a C compiler; installs requirements.lock
#   tools/setup.sh dev       to test: needs the same; also installs requirements-dev.lock
#   tools/setup.sh lint      to lint: also needs clippy and rustfmt; installs what dev does
#   tools/setup.sh deps      names all missing system packages and installs them with apt-get
#   tools/setup.sh missing   prints the missing system packages, by Debian's names
#
# Except by deps, system packages are installed only as root, without a terminal on standard input or with CI=true. Without a
# required package it prints the command and exits 2; tests that need others are skipped. PYTHON=/path/to/python3 chooses the
# interpreter of a new .venv.
set -euo pipefail
cd "$(dirname "$0")/.."

kind=${1:-run} locks=()
case $kind in
  run) locks=(requirements.lock) ;;
  dev | lint) locks=(requirements.lock requirements-dev.lock) ;;
  deps | missing) ;;
  *) echo "setup: expected run, dev, lint, deps or missing, not '$kind'" >&2; exit 2 ;;
esac

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# --- System packages. The C compiler links every Rust program and compiles the laws' fixed-point versions; its headers are a
# separate package. So is ensurepip, which 'python3 -m venv' needs: Debian has it in python3-venv.
cc_works() {
  local out status=0; out=$(mktemp)
  printf '#include <math.h>\n#include <stdint.h>\nint main(void) { return 0; }\n' | cc -x c -o "$out" - 2>/dev/null || status=1
  rm -f "$out"; return $status
}
python_works() { "$1" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; }
find_python() {
  local p
  for p in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.10 /usr/bin/python3}; do
    if python_works "$p"; then echo "$p"; return; fi
  done
  return 1
}
apt_install() { # packages
  apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}
unattended() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && { [ "${CI:-}" = true ] || ! [ -t 0 ]; }; }

required=()
cc_works || required+=(gcc libc6-dev)
find_python >/dev/null || required+=(python3 python3-venv)

# --- What tests use. Without it they are skipped, each by name. nginx's package starts a service where systemd runs; a test must
# not do that to anybody's host. The browser is the distribution's: Playwright's own would be a download outside of the lock files.
for_tests=() for_few=()
lacks() { ! PATH=$PATH:/usr/sbin:/sbin command -v "$@" >/dev/null; }
if [ "$kind" != run ] && [ "$(uname)" = Linux ]; then
  ! lacks iperf3 || for_tests+=(iperf3)
  ! lacks curl || for_tests+=(curl)
  [ -d /run/systemd/system ] || ! lacks nginx || for_tests+=(nginx-light)
  ! lacks chromium chromium-browser google-chrome google-chrome-stable || for_tests+=(chromium)
  ! lacks node || for_tests+=(nodejs)
  read -ra daemon <<<"$(tools/daemon.sh packages)"
  for_tests+=("${daemon[@]}")
  ! lacks tshark || for_few+=(tshark)
  ! lacks bpftool || for_few+=(bpftool)
  ! lacks ethtool || for_few+=(ethtool)
  ! lacks ns || for_few+=(ns2)
fi
all=("${required[@]}" "${for_tests[@]}" "${for_few[@]}")
if [ "$kind" = missing ]; then echo "${all[*]}"; exit; fi
if [ "$kind" = deps ]; then
  [ ${#all[@]} -gt 0 ] || { say "no system package is missing"; exit; }
  say "missing: ${all[*]}"
  command -v apt-get >/dev/null || { say "found no apt-get; install these packages (Debian's names)"; exit 2; }
  [ "$(id -u)" = 0 ] || { say "installing them needs root; type: sudo apt-get install ${all[*]}"; exit 2; }
  apt_install "${all[@]}"; exit
fi

# --- Rust, at least the version in Cargo.toml. Debian 12 has an older one, so it is never installed from there.
rust_min=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
rust_now=$(rustc --version 2>/dev/null | cut -d' ' -f2) || true
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n1)" = "$1" ]; } # minimum, version
wanted="rustc $rust_min or newer, cargo" missing=
{ [ -n "$rust_now" ] && at_least "$rust_min" "${rust_now%%-*}"; } || missing+=" rustc (found ${rust_now:-none})"
cargo --version >/dev/null 2>&1 || missing+=" cargo"
if [ "$kind" = lint ]; then
  wanted+=", clippy, rustfmt"
  cargo clippy --version >/dev/null 2>&1 || missing+=" clippy"
  cargo fmt --version >/dev/null 2>&1 || missing+=" rustfmt"
fi
[ -z "$missing" ] || die "needs $wanted; missing or too old:$missing; rustup installs them"

if [ ${#required[@]} -gt 0 ]; then
  unattended || { say "missing: ${required[*]}; type: make deps (or, as root: apt-get install ${required[*]})"; exit 2; }
  say "installing ${required[*]}"
  apt_install "${required[@]}" >/dev/null 2>&1 </dev/null || die "apt-get failed to install ${required[*]}"
fi
cc_works || die "the C compiler (cc) cannot build an empty program"
python=$(find_python) || die "needs Python 3.10 or newer with venv; found $(python3 --version 2>/dev/null || echo none)"

if [ "$kind" = dev ] && [ "$(uname)" = Linux ]; then
  if [ ${#for_tests[@]} -gt 0 ] && unattended; then
    say "for the tests: installing ${for_tests[*]}"
    # One by one if all together fail, because a distribution may lack one of them.
    apt_install "${for_tests[@]}" >/dev/null 2>&1 </dev/null || for package in "${for_tests[@]}"; do
      apt_install "$package" >/dev/null 2>&1 </dev/null || say "apt-get failed to install $package: tests that need it will be skipped"
    done
  fi
  # Results must be the same bytes in WebAssembly, which needs its standard library of Rust, node, and clang as the daemon does.
  # Rust of a distribution has no rustup and may have the library: the test looks for it.
  if ! [ -d "$(rustc --print target-libdir --target wasm32-unknown-unknown)" ] && command -v rustup >/dev/null; then
    rustup --quiet target add wasm32-unknown-unknown >/dev/null 2>&1 </dev/null \
      || say "rustup failed to add wasm32-unknown-unknown: the test of WebAssembly will be skipped"
  fi
  why=$(tools/daemon.sh) || say "$why: its tests will be skipped"
fi

# --- .venv, created again if its interpreter has gone.
if ! .venv/bin/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then
  say "creating .venv with $("$python" --version)"
  rm -rf .venv
  "$python" -m venv .venv >/dev/null || die "'$python -m venv .venv' failed"
fi

say "Rust $rust_now, $(.venv/bin/python --version); installing what ${locks[*]} pin into .venv"
# The lock files are complete and hashed: nothing is resolved, and nothing is built from source.
locked=(--quiet --no-deps --require-hashes --only-binary :all:)
with_pip() { .venv/bin/python -m pip install "${locked[@]}" --disable-pip-version-check --no-input "${@/#/-r}" </dev/null; }
with_uv() { .venv/bin/uv pip install "${locked[@]}" "${bytecode[@]}" --python .venv/bin/python "${@/#/-r}" </dev/null 2>/dev/null; }
# Python writes the bytecode of what it imports, a tenth of all. Where it may not, each start would compile numpy and the others.
bytecode=(); [ -z "${PYTHONDONTWRITEBYTECODE:-}" ] || bytecode=(--compile-bytecode)
# pip brings uv, and uv installs the rest several times as fast. Where only pip is configured for the local network, pip does it all.
[ -x .venv/bin/uv ] || with_pip <(sed -n '/^uv==/,/[^\\]$/p' requirements.lock) \
  || die "could not install the uv that requirements.lock pins"
with_uv "${locks[@]}" || with_pip "${locks[@]}" || die "could not install what ${locks[*]} pin"
touch ".venv/.$kind"
