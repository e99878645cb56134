#!/usr/bin/env bash
# Every check that runs nothing of ours. All of them run, so that one call tells everything; exits 1 if any complained.
# Run by 'make lint', which has set up .venv.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
check() { # name, then the command
  local name=$1; shift
  echo "== $name"
  "$@" </dev/null || failed+=("$name")
}

lock_in_step() { cargo metadata --locked --format-version 1 --quiet >/dev/null; }

no_long_files() { # a file that nobody can read in one sitting hides its design; lock files and snapshots are not read
  local long
  long=$(git ls-files -z --cached --others --exclude-standard -- '*.rs' '*.py' '*.pyi' '*.c' '*.h' \
    | xargs -0 -r wc -l | awk '$2 != "total" && $1 > 1000 { print $2 ": " $1 " lines" }') || return 1
  [ -z "$long" ] || { printf 'more than 1,000 lines, split it: %s\n' "$long"; return 1; }
}

# waterfilld is looked at where it can be built; the generated parts of it are only there then.
features=()
if why=$(tools/daemon.sh); then features=(--features waterfill-linux/daemon); else echo "lint: $why: left out" >&2; fi

check "Cargo.lock in step" lock_in_step
check "cargo fmt" cargo fmt --all --check
check "clippy" cargo clippy --locked --all-targets "${features[@]}" --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" check "rustdoc" cargo doc --locked --no-deps "${features[@]}" --quiet
check "ruff check" .venv/bin/ruff check --quiet
check "ruff format" .venv/bin/ruff format --check --quiet
check "mypy" .venv/bin/mypy
check "file length" no_long_files

[ ${#failed[@]} -eq 0 ] || { printf 'lint: failed: %s\n' "$(IFS=,; echo "${failed[*]}")"; exit 1; }
echo "lint: all clean"
