#!/usr/bin/env bash
# Rewrites requirements.lock (to build and run) and requirements-dev.lock (that, and what tests and lint need) from
# pyproject.toml: every package with its hashes, for every Python from 3.10 on and every platform. Pins stay as they are unless
# pyproject.toml no longer allows them; 'tools/lock.sh --upgrade' moves all of them to the newest.
set -euo pipefail
cd "$(dirname "$0")/.."

uv=$(mktemp -d); trap 'rm -rf "$uv"' EXIT
python3 -m venv "$uv" && "$uv/bin/pip" install --quiet --disable-pip-version-check uv

compile() { # lock file, then options
  local lock=$1; shift
  # The annotations and the header would name paths and commands of this machine, so we write our own header.
  "$uv/bin/uv" pip compile --quiet --universal --python-version 3.10 --generate-hashes \
    --no-header --no-annotate --no-emit-index-url "$@" pyproject.toml --output-file "$lock" >/dev/null
  printf '%s\n' "# Made by 'make lock' from pyproject.toml; do not edit." | cat - "$lock" >"$uv/out" && mv "$uv/out" "$lock"
}
compile requirements-dev.lock --extra build --extra dev "$@"
# The smaller file takes its versions from the larger one, so that the two never differ.
sed -n 's/^\([^# ][^\\]*[^\\ ]\) *\\$/\1/p' requirements-dev.lock >"$uv/pins"
rm -f requirements.lock
compile requirements.lock --extra build --constraints "$uv/pins"
