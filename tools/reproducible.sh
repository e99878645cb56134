#!/usr/bin/env bash
# Builds the Debian package and the wheel twice, from copies of this commit in folders of different names, and compares bytes.
# Run by 'make package WHAT=reproducible' (OPTIONS=deb or OPTIONS=wheel: only one of them). Ten to twenty minutes; what differs
# stays in target.
set -euo pipefail
cd "$(dirname "$0")/.."
exec >&2

what=${*:-deb wheel}
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$PWD/target/reproducible
rm -rf "$work"
mkdir -p "$work"
[ -z "$(git status --porcelain)" ] || echo "reproducible: builds the last commit, not what is changed since"

build() { # folder, umask, time zone
  git worktree prune
  git clone --quiet --no-hardlinks . "$work/$1"
  git -C "$work/$1" checkout --quiet --detach "$commit" # another may have come since the first build
  # Two clones differ in their path, their files' times, the umask, the time zone and the language.
  (
    cd "$work/$1"
    umask "$2"
    export TZ=$3 LC_ALL=$4
    ln -s "$OLDPWD/.venv" .venv
    for target in $what; do make --no-print-directory --assume-old=.venv/.run package WHAT="$target"; done
  )
}
build first 022 UTC C.UTF-8
build a-second-folder 077 Pacific/Auckland C

code=0
for target in $what; do
  case $target in
    deb) pattern='out/*.deb' ;;
    wheel) pattern='dist/*' ;;
    *) echo "reproducible: expected deb or wheel, found '$target'"; exit 2 ;;
  esac
  for file in "$work"/first/$pattern; do
    other=$work/a-second-folder/${file#"$work"/first/}
    if cmp "$file" "$other"; then
      echo "reproducible: $(basename "$file"): the same bytes twice, $(sha256sum <"$file" | cut -c1-16)"
    else
      code=1
    fi
  done
done
exit $code
