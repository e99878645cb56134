#!/usr/bin/env bash
# Builds or checks a package: tools/package.sh WHAT [OPTION …]. Run by 'make package', which has set up what each needs.
#
#   wheel          the source archive and a wheel for Linux (manylinux_2_28, abi3) into dist/, audited; 5 minutes
#   deb            the Debian package of waterfilld into out/; the same commit gives the same bytes
#   deb-test       that package installed, upgraded, run under systemd and removed in fresh Debian roots; as root, 5 minutes
#   oci            OCI images of the command line and of waterfilld into out/oci; as root
#   sbom           lists of all crates and Python packages as CycloneDX into out/sbom; needs cargo-cyclonedx
#   reproducible   deb and wheel (or the one that an option names) built twice in other folders, bytes compared; 20 minutes
#   pgo            the wheel with a profile of the packet engine, apart from the ordinary build; 5 minutes
set -euo pipefail
cd "$(dirname "$0")/.."
what=$1
shift

case $what in
  wheel | sbom | reproducible | pgo) exec "tools/$what.sh" "$@" ;;
  deb) exec packaging/debian/build.sh ;;
  oci) packaging/debian/build.sh && exec packaging/oci/build.sh ;;
  deb-test)
    packaging/debian/build.sh
    packaging/debian/build.sh 0.0.1 # stands for an older release, to upgrade from
    version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n1)
    exec .venv/bin/python -m validation package "out/waterfilld_0.0.1_amd64.deb" "out/waterfilld_${version}_amd64.deb"
    ;;
  *)
    echo "package: WHAT must be wheel, deb, deb-test, oci, sbom, reproducible or pgo, got '$what'" >&2
    exit 2
    ;;
esac
