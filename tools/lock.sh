#!/usr/bin/env bash
# Rewrites requirements.lock (group build: to build and run), requirements-dev.lock (what group dev adds: to test and lint) and
# requirements-tools.lock (what group tools adds: fuzzer, wheel and bill of materials) from pyproject.toml: every package with its
# hashes, for Python 3.10 and newer, on every platform. A pin stands in one file only: the last two are installed with the first.
# Pins stay unless pyproject.toml no longer allows them; 'tools/lock.sh --upgrade' moves all of them to the newest.
# Not uv.lock: it records the address of the package index, which is each user's own setting.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

compile() { # group, then options; the pins that $work/GROUP has already are preferred
  local group=$1; shift
  # The annotations and the header would name paths and commands of this host, so write_lock writes our own header.
  .venv/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes \
    --no-header --no-annotate --no-emit-index-url --group "$group" "$@" pyproject.toml --output-file "$work/$group" >/dev/null
}
write_lock() { # lock file, group: writes the group's pins, without those of the file given as third argument
  { echo "# Made by 'make lock' from pyproject.toml; do not edit."
    awk 'FILENAME != base { if (/^[^ ]/) keep = !($0 in known) } FILENAME == base { known[$0]; next } keep' \
      base="${3:-/dev/null}" "${3:-/dev/null}" "$work/$2"; } >"$work/out" && mv "$work/out" "$1"
}
cat requirements.lock requirements-dev.lock >"$work/dev"
compile dev "$@"
# The other groups take their versions from the largest one, so that they never differ.
sed -n 's/^\([^# ][^\\]*[^\\ ]\) *\\$/\1/p' "$work/dev" >"$work/pins"
compile build --constraints "$work/pins"
cp requirements-tools.lock "$work/tools"
compile tools --constraints "$work/pins"
write_lock requirements.lock build
write_lock requirements-dev.lock dev "$work/build"
write_lock requirements-tools.lock tools "$work/build"
