#!/bin/sh
# In a fresh Debian root without systemd: installs the package, upgrades, removes and purges it, and prints facts for judge.py.
# /packages has old.deb, of a lower version, and new.deb.

export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
config=/etc/waterfill/waterfilld.toml

say() { key=$1; shift; printf '@@ %s %s\n' "$key" "$*"; }
try() {
  key=$1; shift
  code=0; out=$("$@" 2>&1) || code=$?
  say "$key" "$code $(printf %s "$out" | tail -n1)"
}
version() { dpkg-query -W -f '${Version}' waterfilld 2>/dev/null; }
# Every path that has to do with us. APT keeps lists of what it downloads, which are not the package's.
ours() { find / -xdev \( -path /proc -o -path /sys -o -path /packages \) -prune -o -iname '*waterfill*' -print | sort | tr '\n' ' '; }

try update apt-get update -q
try install apt-get install -q -y --no-install-recommends /packages/old.deb
say old-version "$(version)"
try runs waterfilld --version
try check waterfilld check $config
try probe waterfilld probe
say files "$(ours)"
say dependencies "$(ldd /usr/sbin/waterfilld | grep -c 'not found')"
echo '# edited by the operator' >>$config
try upgrade apt-get install -q -y --no-install-recommends /packages/new.deb
say new-version "$(version)"
say edited "$(grep -c 'edited by the operator' $config)"
try runs-new waterfilld --version
try remove apt-get remove -q -y waterfilld
say after-remove "$(ours)"
try purge apt-get purge -q -y waterfilld
say after-purge "$(ours)"
say status "$(dpkg-query -W -f '${Status}' waterfilld 2>&1 | tail -n1)"
