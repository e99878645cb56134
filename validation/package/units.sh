#!/bin/sh
# In a guest that systemd has booted: installs the package, runs its unit under traffic, upgrades and removes it, and prints
# facts for judge.py. /packages has old.deb, of a lower version, and new.deb. There is no network: dependencies are installed.

export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin
config=/etc/waterfill/waterfilld.toml

say() { key=$1; shift; printf '@@ %s %s\n' "$key" "$*"; }
try() {
  key=$1; shift
  code=0; out=$("$@" 2>&1) || code=$?
  say "$key" "$code $(printf %s "$out" | tail -n1)"
}
yes_no() { if "$@" >/dev/null 2>&1; then echo yes; else echo no; fi; }
law() { grep -qw bpf_maxnet /proc/sys/net/ipv4/tcp_available_congestion_control; }
priced() { waterfilld status --json | grep -q '"mode":"priced"'; }
target() { waterfilld status --json | tr ',' '\n' | sed -n 's/.*"target":\([0-9.]*\).*/\1/p' | sort -u | tr '\n' ' ' | sed 's/ $//'; }
until_true() { for _ in $(seq 100); do "$@" && return 0; sleep 0.3; done; return 1; }
state() { say "active-$1" "$(systemctl is-active waterfilld)"; }

network() {
  echo 1 >/proc/sys/net/ipv4/ip_forward
  for side in a b; do
    ip netns add $side
    ip link add r$side type veth peer name eth0 netns $side
    ip netns exec $side tc qdisc add dev eth0 root netem delay 20ms limit 10000
  done
  n=0
  for side in a b; do
    n=$((n + 1))
    ip -n $side link set lo up
    ip -n $side address add 10.0.$n.1/24 dev eth0
    ip -n $side link set eth0 up
    ip address add 10.0.$n.2/24 dev r$side
    ip link set r$side up
    ip -n $side route add default via 10.0.$n.2
  done
}

settings() { # the routers' target
  cat >$config <<TOML
[host]
law = "maxnet"

[[router]]
device = "ra"
rate = "5 Mbit/s"
target = $1
shape = true

[[router]]
device = "rb"
rate = "5 Mbit/s"
target = $1
shape = true

[metrics]
listen = "127.0.0.1:9465"
TOML
}

say system "$(systemctl is-system-running --wait 2>&1)"
say kernel "$(uname -r)"
network
try install dpkg -i /packages/old.deb
say enabled "$(systemctl is-enabled waterfilld 2>&1)"
settings 0.9
try check waterfilld check $config
try start systemctl enable --now waterfilld
state start
say type "$(systemctl show -P Type waterfilld)"
say security "$(systemd-analyze security waterfilld --no-pager 2>/dev/null | tail -n1)"
say law-start "$(yes_no law)"
# After the start: sockets that listened before have not been seen by the option's program.
ip netns exec b iperf3 -s -D
sleep 2
ip netns exec a iperf3 -c 10.0.2.1 -C bpf_maxnet -t 240 >/flow 2>&1 &
client=$!
say priced "$(yes_no until_true priced)"
say metrics "$(curl -s http://127.0.0.1:9465/metrics | base64 -w0)"
settings 0.5
try reload systemctl reload waterfilld
sleep 1
say target "$(target)"
say journal "$(journalctl -u waterfilld -p warning -q -o cat | tr '\n' ' ')"
echo 'nonsense = ' >>$config
try reload-bad systemctl reload waterfilld
state reload-bad
say target-bad "$(target)"
settings 0.5
try upgrade dpkg -i --force-confold /packages/new.deb
state upgrade
say new-version "$(dpkg-query -W -f '${Version}' waterfilld)"
sleep 2
say priced-upgrade "$(yes_no until_true priced)"
wait $client
say flow "$? $(grep -E 'receiver|error' /flow | tail -n1)"
try stop systemctl stop waterfilld
state stop
say law-stop "$(yes_no law)"
try unload waterfilld unload
say law-unload "$(yes_no law)"
# Removal has to find what the unit has pinned in another folder.
printf '[pins]\ndirectory = "/sys/fs/bpf/elsewhere"\n' >>$config
try start-again systemctl start waterfilld
say law-elsewhere "$(yes_no law)"
try remove dpkg --remove waterfilld
say law-remove "$(yes_no law)"
say filters-remove "$(for device in ra rb; do tc filter show dev $device egress; tc qdisc show dev $device | grep -E 'clsact|tbf'; done | tr '\n' ' ')"
say pins-remove "$(ls /sys/fs/bpf | grep -E 'elsewhere|waterfill' | tr '\n' ' ')"
try purge dpkg --purge waterfilld
say left "$(find / -xdev \( -path /proc -o -path /sys -o -path /packages \) -prune -o -iname '*waterfill*' -print | tr '\n' ' ')"
say warnings "$(dmesg | grep -E 'WARNING|BUG:|Call Trace|Oops' | head -n1)"
journalctl -u waterfilld -q -o cat
say exit 0
