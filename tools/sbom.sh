#!/usr/bin/env bash
# Writes what Waterfill is built from as CycloneDX into out/sbom: crates, and Python packages to run, to test and to build wheels.
# The same commit gives the same bytes. Run by 'make package WHAT=sbom', which has set up .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
exec >&2

# Dates the crates' list; the Python lists carry no date.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.lock)}
export SOURCE_DATE_EPOCH
tools=$PWD/target/sbom
mkdir -p "$tools" out/sbom
[ -x "$tools/venv/bin/python" ] || .venv/bin/python -m venv "$tools/venv"
.venv/bin/uv pip sync --quiet --python "$tools/venv/bin/python" --require-hashes requirements.lock requirements-tools.lock

for lock in requirements.lock requirements-dev.lock requirements-tools.lock; do
  "$tools/venv/bin/cyclonedx-py" requirements --output-reproducible --of JSON -o "out/sbom/${lock%.lock}.json" "$lock" 2>"$tools/log" ||
    { cat "$tools/log"; exit 1; }
done
if cargo cyclonedx --version >/dev/null 2>&1; then
  # One file a crate, beside its Cargo.toml.
  cargo cyclonedx --quiet --all-features --format json --override-filename waterfill-sbom
  for crate in crates/*; do
    [ ! -e "$crate/waterfill-sbom.json" ] || mv "$crate/waterfill-sbom.json" "out/sbom/$(basename "$crate").json"
  done
  find . -path ./target -prune -o -name waterfill-sbom.json -exec rm {} +
else
  echo "sbom: crates left out: needs cargo-cyclonedx: cargo install --locked cargo-cyclonedx"
  ls out/sbom
  exit 1
fi
ls out/sbom
