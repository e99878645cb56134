#!/usr/bin/env bash
# Runs the static checks: all of them, or only those named as arguments. Prints every complaint, then exits 1 if there was one.
# Run by 'make lint', which has set up .venv, and by the hooks in .pre-commit-config.yaml.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

chosen=("$@")
notes=$(mktemp -d) && trap 'rm -rf "$notes"' EXIT && touch "$notes/known" "$notes/failed" || exit
check() { # name, then the command
  local name=$1; shift
  echo "$name" >>"$notes/known"
  [ ${#chosen[@]} -eq 0 ] || [[ " ${chosen[*]} " == *" $name "* ]] || return 0
  echo "== $name"
  "$@" </dev/null || echo "$name" >>"$notes/failed"
}

cargo_lock() { cargo metadata --locked --format-version 1 --quiet >/dev/null; }

# The generated parts of waterfilld exist only where it can be built.
with_daemon() { # a cargo command, then its options
  local features=()
  if why=$(tools/daemon.sh); then features=(--features waterfill-linux/daemon,waterfill-fuzz/daemon); else echo "lint: $why: left out" >&2; fi
  cargo "$1" --locked --quiet "${features[@]}" "${@:2}"
}

file_length() { # nobody reads a longer file in one sitting, and it hides its design; lock files and snapshots are not read
  local long
  long=$(git ls-files -z --cached --others --exclude-standard -- '*.rs' '*.py' '*.pyi' '*.c' '*.h' \
    | xargs -0 -r wc -l | awk '$2 != "total" && $1 > 1000 { print $2 ": " $1 " lines" }') || return 1
  [ -z "$long" ] || { printf 'more than 1,000 lines, split it: %s\n' "$long"; return 1; }
}

# Of crates by cargo-deny, offline once they are downloaded; CI has it, and also checks for known vulnerabilities.
licences() {
  .venv/bin/python tools/licences.py || return 1
  if cargo deny --version >/dev/null 2>&1; then cargo deny --locked check bans licenses sources
  else echo "lint: crates' licences left out: needs cargo-deny (cargo install --locked cargo-deny)" >&2; fi
}

rust() {
  check cargo-lock cargo_lock
  check cargo-fmt cargo fmt --all --check
  check clippy with_daemon clippy --all-targets -- -D warnings
  RUSTDOCFLAGS="-D warnings" check rustdoc with_daemon doc --no-deps
}
python() {
  check ruff-check .venv/bin/ruff check --quiet
  check ruff-format .venv/bin/ruff format --check --quiet
  check mypy .venv/bin/mypy
  PYTHONPATH=python check imports .venv/bin/lint-imports --no-logo --no-cache
  check file-length file_length
  check licences licences
  check reuse .venv/bin/reuse lint --quiet
  check workflows .venv/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
}

# Both at the same time: each has parts that use one CPU.
python >"$notes/python" 2>&1 &
rust
wait
cat "$notes/python"

for name in "${chosen[@]}"; do
  grep -qx -e "$name" "$notes/known" || { echo "lint: expected one of $(paste -sd ' ' "$notes/known"), not '$name'" >&2; exit 2; }
done
[ ! -s "$notes/failed" ] || { echo "lint: failed: $(paste -sd ' ' "$notes/failed")"; exit 1; }
echo "lint: all clean"
