#!/usr/bin/env bash
# Builds out/waterfilld_VERSION_amd64.deb from the lock files. Run by `make package WHAT=deb`.
#
#   packaging/debian/build.sh [VERSION]    VERSION: of the package, if not the one in Cargo.toml, as for a test of upgrades
#
# The same commit gives the same bytes, in whatever folder: SOURCE_DATE_EPOCH (the commit's time unless set) dates the files,
# and no path of this host gets into the program.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec >&2
die() { echo "deb: $*"; exit 1; }

why=$(tools/daemon.sh) || die "$why"
command -v dh >/dev/null || die "needs debhelper (Debian: debhelper)"
command -v dpkg-deb >/dev/null || die "needs dpkg-deb (Debian: dpkg)"
[ "$(dpkg --print-architecture)" = amd64 ] || die "needs an amd64 host: the package is built for no other"
version=${1:-$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n1)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.lock)}
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC

# Other flags than `make build` has, so other build products: a folder of their own keeps both.
target=$PWD/target/package
cargo=${CARGO_HOME:-$HOME/.cargo}
echo "deb: compiling in release mode, two to four minutes the first time"
separator=$(printf '\037')
for name in ${CLANG:-clang-19 clang-18 clang-17 clang-16 clang-15 clang}; do # as in tools/daemon.sh
  if command -v "$name" >/dev/null; then WATERFILL_CLANG=$name; break; fi
done
export WATERFILL_CLANG CLANG=$PWD/packaging/debian/clang.sh
CARGO_ENCODED_RUSTFLAGS="--remap-path-prefix=$PWD=/usr/src/waterfill$separator--remap-path-prefix=$cargo=/usr/src/cargo" \
CFLAGS="-g -O2 -ffile-prefix-map=$PWD=/usr/src/waterfill -ffile-prefix-map=$cargo=/usr/src/cargo" \
CARGO_TARGET_DIR=$target cargo build --release --locked --quiet --package waterfill-linux --features daemon --bin waterfilld
program=$target/release/waterfilld

stage=$target/deb
rm -rf "$stage"
mkdir -p "$stage/docs"
cp -r packaging/debian "$stage/debian"
cd "$stage"
rm debian/build.sh debian/clang.sh
root=../../..

put() { # file, path in the package
  [ -e "$1" ] || die "$1 is missing"
  mkdir -p "$(dirname "files$2")"
  cp -r "$1" "files$2"
}
put "$program" /usr/sbin/waterfilld
put $root/packaging/waterfilld.toml /etc/waterfill/waterfilld.toml
put $root/packaging/wireshark/waterfill.lua /usr/share/waterfill/wireshark/waterfill.lua
put $root/packaging/grafana /usr/share/waterfill/grafana
put $root/packaging/prometheus /usr/share/waterfill/prometheus
put $root/packaging/systemd/waterfilld-containers.conf /usr/share/waterfill/systemd/waterfilld-containers.conf
put $root/packaging/kubernetes /usr/share/waterfill/kubernetes
put $root/docs/waterfilld.schema.json /usr/share/waterfill/waterfilld.schema.json
cp $root/packaging/systemd/waterfilld.service debian/
for part in README.md tutorial howto reference explanation validation; do cp -r $root/docs/$part docs/; done
cp $root/CHANGELOG.md docs/

shells=files/usr/share
mkdir -p $shells/bash-completion/completions $shells/zsh/vendor-completions $shells/fish/vendor_completions.d
"$program" completions bash >$shells/bash-completion/completions/waterfilld
"$program" completions zsh >$shells/zsh/vendor-completions/_waterfilld
"$program" completions fish >$shells/fish/vendor_completions.d/waterfilld.fish
"$program" man man

# What is linked into the program. The project's own crates are those with a path.
cargo tree --manifest-path $root/Cargo.toml --locked --package waterfill-linux --features daemon --edges normal \
  --prefix none --format '{p} {l}' | sed 's/ (\*)$//' | grep -v ' (/' | sort -u >crates.txt
mit=$(sed -n '/^Permission/,$p' $root/LICENSES/MIT.txt | sed 's/^$/./; s/^/ /')
copyright=$(<debian/copyright)
printf '%s\n' "${copyright/@MIT@/$mit}" >debian/copyright
cat >debian/changelog <<TEXT
waterfilld ($version) unstable; urgency=medium

  * Built from the project's lock files. CHANGELOG.md has what users notice.

 -- The Waterfill authors <maintainers@waterfill.invalid>  $(date -R -d "@$SOURCE_DATE_EPOCH")
TEXT

# debhelper fixes owners and modes itself, so no fakeroot is needed.
find . -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
DEB_RULES_REQUIRES_ROOT=no debian/rules binary >build.log 2>&1 || { tail -n 20 build.log; die "debhelper failed"; }
cd "$root"
mkdir -p out
mv "$target/waterfilld_${version}_amd64.deb" out/
echo "deb: wrote out/waterfilld_${version}_amd64.deb"
