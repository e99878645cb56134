#!/usr/bin/env bash
# Builds the Python extension in release mode and, on Linux, the testbed's delay line and the daemon waterfilld, all into .venv.
# Without the daemon's requirements (tools/daemon.sh) the rest is built. Run by 'make build', which has set up .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
exec >&2

echo "build: compiling in release mode, one to four minutes (silent while it links)"
# No index: the lock file has installed every dependency that pyproject.toml names, or maturin fails and says which it lacks.
# The group is named because maturin would install the group dev without being asked.
env -u CONDA_PREFIX VIRTUAL_ENV="$PWD/.venv" PATH="$PWD/.venv/bin:$PATH" UV_NO_INDEX=1 UV_NO_PROGRESS=1 CARGO_TERM_QUIET=true \
  .venv/bin/maturin develop --release --locked --quiet --uv --group build
# Where Python may not write bytecode, each start would compile the package again, which takes as long as a small run.
[ -z "${PYTHONDONTWRITEBYTECODE:-}" ] || .venv/bin/python -m compileall -q python/waterfill
[ "$(uname)" = Linux ] || exit 0

programs=(waterfill-delay) features=()
if why=$(tools/daemon.sh); then
  programs+=(waterfilld) features=(--features daemon)
else
  echo "build: $why: left out"
  rm -f .venv/bin/waterfilld
fi
cargo build --release --locked --quiet --package waterfill-linux "${features[@]}" --bins
install "${programs[@]/#/${CARGO_TARGET_DIR:-target}/release/}" .venv/bin/
