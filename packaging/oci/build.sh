#!/usr/bin/env bash
# Packs two OCI images from the lock files, without a base image to pull. Run by `make package WHAT=oci`, as root.
#
#   out/oci/waterfill     the command line with the papers' experiments: reproduces every figure
#   out/oci/waterfilld    the daemon: libc, libelf, zlib and the files of the Debian package, no shell
#
# Each is an OCI layout, and beside it an archive NAME-VERSION.oci.tar. mmdebstrap installs Debian's packages into an empty
# folder, umoci makes a layer of it. Files and layers have the time SOURCE_DATE_EPOCH (the commit's unless set).
set -euo pipefail
cd "$(dirname "$0")/../.."
exec >&2
die() { echo "oci: $*"; exit 1; }

[ "$(id -u)" = 0 ] || die "needs root, to write files of other owners"
for tool in mmdebstrap umoci; do command -v $tool >/dev/null || die "needs $tool (Debian: $tool)"; done
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n1)
package=out/waterfilld_${version}_amd64.deb
[ -e "$package" ] || die "$package is missing: make package WHAT=deb"
core=$(ls python/waterfill/_core*.so 2>/dev/null | head -n1)
[ -n "$core" ] || die "the Python extension is missing: make build"
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.lock)}
created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
# The programs are linked with this host's libraries, so the images have the same Debian release.
suite=$(. /etc/os-release; [ "$ID" = debian ] && echo "$VERSION_CODENAME" || echo bookworm)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

layer() { # name, folder, options of umoci config
  local image=out/oci/$1:$version
  # mmdebstrap copies these two from this host.
  rm -f "$2"/etc/{resolv.conf,hostname}
  find "$2" -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  rm -rf "out/oci/$1" "out/oci/$1-$version.oci.tar"
  mkdir -p out/oci
  umoci init --layout "out/oci/$1"
  umoci new --image "$image"
  umoci insert --history.created "$created" --image "$image" "$2" /
  umoci config --history.created "$created" --created "$created" --image "$image" --author "The Waterfill authors" \
    --config.label org.opencontainers.image.version="$version" \
    --config.label org.opencontainers.image.licenses="(Apache-2.0 OR MIT) AND (GPL-2.0-only OR BSD-2-Clause)" "${@:3}"
  umoci gc --layout "out/oci/$1"
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "out/oci/$1" \
    -cf "out/oci/$1-$version.oci.tar" .
  echo "oci: wrote out/oci/$1 and out/oci/$1-$version.oci.tar, $(du -sm "out/oci/$1" | cut -f1) MB"
}

# --- The daemon. The variant "extract" unpacks packages and runs none of their scripts.
echo "oci: packing waterfilld with Debian's $suite"
needs=$(dpkg-deb -f "$package" Depends | sed 's/([^)]*)//g; s/ //g')
mmdebstrap --quiet --variant=extract --include="$needs" "$suite" "$work/waterfilld" 2>"$work/log" \
  || die "mmdebstrap: $(tail -n1 "$work/log")"
dpkg-deb -x "$package" "$work/waterfilld"
rm -rf "$work"/waterfilld/{usr/share/{doc,man,locale,lintian,bash-completion,fish,zsh},var/lib/{apt,dpkg},var/cache,lib/systemd,etc/{apt,dpkg,fstab}}
layer waterfilld "$work/waterfilld" --config.entrypoint /usr/sbin/waterfilld --config.cmd run

# --- The command line. The layout is that of a checkout: the package looks for papers/ there.
echo "oci: packing waterfill with Debian's $suite"
mmdebstrap --quiet --variant=minbase --include=python3 "$suite" "$work/waterfill" 2>"$work/log" \
  || die "mmdebstrap: $(tail -n1 "$work/log")"
home=$work/waterfill/opt/waterfill
mkdir -p "$home/python" "$work/waterfill/work"
python=$(chroot "$work/waterfill" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
.venv/bin/uv pip install --quiet --no-deps --require-hashes --only-binary :all: --python-version "$python" \
  --target "$home/lib" -r requirements.lock || die "could not install what requirements.lock pins"
# Of the lock file's packages these only build.
rm -rf "$home"/lib/{bin,uv,uv-*,maturin,maturin-*}
tar -c --exclude=__pycache__ python/waterfill papers examples docs/scenario.toml docs/scenario.schema.json README.md \
  LICENSE LICENSES | tar -x --no-same-owner -C "$home"
cat >"$work/waterfill/usr/bin/waterfill" <<'TEXT'
#!/bin/sh
PYTHONPATH=/opt/waterfill/python:/opt/waterfill/lib exec python3 -m waterfill "$@"
TEXT
chmod 755 "$work/waterfill/usr/bin/waterfill"
rm -rf "$work"/waterfill/{var/cache/apt,var/cache/ldconfig,var/lib/apt/lists,var/log}/*
layer waterfill "$work/waterfill" --config.entrypoint /usr/bin/waterfill --config.workingdir /work \
  --config.env PATH=/usr/local/bin:/usr/bin:/bin --config.env PYTHONDONTWRITEBYTECODE=1
