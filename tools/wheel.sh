#!/usr/bin/env bash
# Builds the source archive and, from it, the wheel into dist/, and audits the wheel. Run by 'make package WHAT=wheel', which has set up .venv.
# Everything is built from the archive, unpacked outside the checkout: what it lacks, its users would lack.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD work=$PWD/target/wheel
exec >&2

[ "$(uname -sm)" = "Linux x86_64" ] || { echo "wheel: expected Linux on x86-64, found $(uname -sm)"; exit 1; }
mkdir -p "$work" dist
[ -x "$work/venv/bin/python" ] || .venv/bin/python -m venv "$work/venv"
.venv/bin/uv pip sync --quiet --python "$work/venv/bin/python" --require-hashes requirements.lock requirements-tools.lock
# Absolute, as maturin runs zig from the venv it is in; the lock file's, not one of the host.
export VIRTUAL_ENV=$work/venv PATH=$work/venv/bin:$PATH PYO3_PYTHON=$work/venv/bin/python
export CARGO_TARGET_DIR=$work/cargo CARGO_TERM_QUIET=true

rm -rf "$work/source" dist/waterfill-*
# Cargo warns of fields that only a registry of crates needs.
maturin sdist --out dist 2>"$work/sdist.log" || { cat "$work/sdist.log"; exit 1; }
mkdir "$work/source"
tar xzf dist/waterfill-*.tar.gz --strip-components=1 -C "$work/source"

echo "wheel: compiling for glibc 2.28, three minutes"
# The same bytes from the same source: no path of this host, no time of day. zig's debug information names its own folder.
export RUSTFLAGS="-Cstrip=debuginfo --remap-path-prefix=$work/source=/waterfill --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 315532800)}
# Not locked: the archive holds fewer crates than Cargo.lock names, and Cargo drops the rest. It must not choose others.
(cd "$work/source" && maturin build --release --quiet --zig --compatibility manylinux_2_28 --out "$root/dist")

names() { sed -n '/^name = /{N;s/\n/ /p}' "$1" | sort; }
added=$(comm -13 <(names Cargo.lock) <(names "$work/source/Cargo.lock"))
[ -z "$added" ] || { echo "wheel: built with crates that Cargo.lock does not name: $added"; exit 1; }

# One wheel for every Python from 3.10 on: no symbol outside the stable ABI, none that a glibc of 2.28 lacks.
abi3audit --strict dist/waterfill-*.whl
auditwheel show dist/waterfill-*.whl | tee "$work/audit.txt"
grep -q '"manylinux_2_28_x86_64"' "$work/audit.txt" || { echo "wheel: auditwheel does not confirm manylinux_2_28_x86_64"; exit 1; }
ls -l dist
