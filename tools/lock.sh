#!/usr/bin/env bash
# Rewrites requirements.lock (group build: to build and run), requirements-dev.lock (group dev: also to test and lint) and
# requirements-tools.lock (group tools: fuzzer, wheel and bill of materials) from pyproject.toml: every package with its hashes,
# for Python 3.10 and newer, on every platform. Pins stay unless pyproject.toml no longer allows them; 'tools/lock.sh --upgrade'
# moves all of them to the newest.
# Not uv.lock: it records the address of the package index, which is each user's own setting.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

compile() { # lock file, then options
  local lock=$1; shift
  # The annotations and the header would name paths and commands of this host, so we write our own header.
  .venv/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes \
    --no-header --no-annotate --no-emit-index-url "$@" pyproject.toml --output-file "$lock" >/dev/null
  printf '%s\n' "# Made by 'make lock' from pyproject.toml; do not edit." | cat - "$lock" >"$work/out" && mv "$work/out" "$lock"
}
compile requirements-dev.lock --group dev "$@"
# The other files take their versions from the largest one, so that they never differ.
sed -n 's/^\([^# ][^\\]*[^\\ ]\) *\\$/\1/p' requirements-dev.lock >"$work/pins"
rm -f requirements.lock
compile requirements.lock --group build --constraints "$work/pins"
compile requirements-tools.lock --group tools --constraints "$work/pins"
