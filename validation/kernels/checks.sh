#!/bin/sh
# Runs the daemon on this kernel and prints facts, lines "@@ KEY VALUE", which judge.py reads. As root, in namespaces of its own:
# a network with hosts a and b and a router between them, a BPF file system and a cgroup. Needs waterfilld on PATH, and
# waterfill-delay, and OFFLOADS, the command of offloads.py, where the kernel has no netem.

tag=${TAG:-k0}  # begins the names of congestion controls and of the cgroup: other tests may run on the same kernel
law=${tag}_maxnet
dir=$(mktemp -d)
pins=$dir/bpf/pins
cgroups=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/mounts | head -n1)
cgroup=$cgroups/waterfill-$tag
available=/proc/sys/net/ipv4/tcp_available_congestion_control

say() { key=$1; shift; printf '@@ %s %s\n' "$key" "$*"; }

# Prints the exit code of a command, and the last line that it printed.
try() {
  key=$1; shift
  code=0; out=$("$@" 2>&1) || code=$?
  say "$key" "$code $(printf %s "$out" | tail -n1)"
  return $code
}

# What is left of host and router in the kernel and in the pins' folder.
left() {
  found=
  grep -qw "$law" $available && found="$found law"
  for device in ra rb; do
    tc qdisc show dev $device | grep -q 'clsact' && found="$found clsact"
    tc qdisc show dev $device | grep -q ' tbf ' && found="$found tbf"
    [ -z "$(tc filter show dev $device egress 2>/dev/null)" ] || found="$found filter"
  done
  [ ! -e "$pins" ] || [ -z "$(find "$pins" -type f)" ] || found="$found pins"
  printf '%s\n' $found | sort -u | tr '\n' ' '
}

# Waits up to 20 s for a condition; a guest without KVM is slow to start programs.
until_true() { for _ in $(seq 100); do eval "$1" && return 0; sleep 0.2; done; return 1; }

run= # `exec` where the daemon's own process is needed, to send it a signal
host() { $run waterfilld host --cgroup "$cgroup" --name "$law" "$@"; }
router() { $run waterfilld router --dev ra --rate 5mbit --dev rb --rate 5mbit --shape "$@"; }
status() { waterfilld status --pins "$pins" --json | tr '\n' ' '; }

# Hosts a and b, each behind a device of the router: RTT 40 ms, by netem or by the testbed's delay line.
network() {
  mkdir -p "$dir/bpf" "$cgroup" /run/netns
  mount -t bpf bpf "$dir/bpf"
  echo $$ >"$cgroup/cgroup.procs"
  ip link set lo up
  echo 1 >/proc/sys/net/ipv4/ip_forward
  for side in a b; do ip netns add $side; done
  ip link add ra type veth peer name eth0 netns a
  if ip netns exec a tc qdisc add dev eth0 root netem delay 20ms limit 10000 2>/dev/null; then
    say delay netem
    ip link add rb type veth peer name eth0 netns b
    ip netns exec b tc qdisc add dev eth0 root netem delay 20ms limit 10000
  else
    say delay waterfill-delay
    ip netns add d
    ip link add rb type veth peer name near netns d
    ip -n d link add far type veth peer name eth0 netns b
    for device in near far; do ip -n d link set $device promisc on up; done
    mkfifo "$dir/delay"
    ip netns exec d waterfill-delay <"$dir/delay" >"$dir/delay.log" 2>&1 &
    exec 9>"$dir/delay"
    line='"delay_ns": 20000000, "hold_bytes": 1000000'
    echo '{"realtime": false, "lines": [{"name": "there", "from": "near", "to": "far", '"$line"'},' \
      '{"name": "back", "from": "far", "to": "near", '"$line"'}]}' >&9
    until_true "grep -q ready $dir/delay.log" || say delay-failed "$(tail -n1 "$dir/delay.log")"
  fi
  connect a 10.0.1 ra
  connect b 10.0.2 rb
  if [ -p "$dir/delay" ]; then
    $OFFLOADS ra rb
    for side in a b; do ip netns exec $side $OFFLOADS eth0; done
  fi
}

connect() { # namespace, network, the router's device
  ip -n $1 link set lo up
  ip -n $1 address add $2.1/24 dev eth0
  ip -n $1 link set eth0 up
  ip address add $2.2/24 dev $3
  ip link set $3 up
  ip -n $1 route add default via $2.2
}

flow() { ip netns exec a iperf3 -c 10.0.2.1 -C "$law" -t "$1" >"$dir/flow" 2>&1 & client=$!; }

traffic() {
  loaded=
  try router router --pins "$pins" --once && loaded=yes
  try host host --pins "$pins" --once && loaded=yes || return
  [ -e "$pins/router" ] || return
  if [ -n "$(tc filter show dev rb egress 2>/dev/null)" ]; then say hook clsact; else say hook tcx; fi
  # Sockets that listened before have not been seen by the option's program.
  ip netns exec b iperf3 -s >/dev/null 2>&1 &
  server=$!
  until_true "ip netns exec a iperf3 -c 10.0.2.1 -n 1000 --connect-timeout 2000 >/dev/null 2>&1"
  flow 600
  sleep 7
  say status "$(status)"
  # A second start replaces the programs under the flow.
  try router-again router --pins "$pins" --once
  try host-again host --pins "$pins" --once
  sleep 3
  say status-again "$(status)"
  kill -INT $client
  wait $client
  # What we end is no error of the flow's.
  say flow "$(grep -qE 'error|unable' "$dir/flow" && echo 1 || echo 0) $(grep -E 'receiver|error' "$dir/flow" | tail -n1)"
  connections
  try unload waterfilld unload --pins "$pins"
  say unload-left "$(left)"
}

# 1024 short connections, 16 at a time, under the law: a kernel that skips its programs now and then shows it here.
connections() {
  host --pins "$pins" --unrestricted --once >/dev/null 2>&1
  for side in a b; do
    ip netns exec $side sh -c "echo $law >/proc/sys/net/ipv4/tcp_congestion_control"
  done
  mkdir "$dir/www"
  head -c 2000 /dev/zero >"$dir/www/file"
  ip netns exec b busybox httpd -f -p 8080 -h "$dir/www" &
  web=$!
  until_true "ip netns exec a busybox wget -q -O /dev/null http://10.0.2.1:8080/file 2>/dev/null"
  loops=
  for _ in $(seq 16); do
    ip netns exec a sh -c 'for _ in $(seq 64); do busybox wget -q -O /dev/null http://10.0.2.1:8080/file; done' 2>/dev/null &
    loops="$loops $!"
  done
  wait $loops
  say connections "$(status)"
  kill $web
  for side in a b; do
    ip netns exec $side sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control'
  done
}

# A role without pins, ended by a signal: what stays, and what becomes of it.
ended() { # key, signal, function
  { run=exec; "$3" --no-pin; } >"$dir/log" 2>&1 &
  process=$!
  if [ "$3" = host ]; then until_true "grep -qw $law $available"; else until_true "tc qdisc show dev rb | grep -q tbf"; fi
  sleep 1
  kill -"$2" $process
  wait $process 2>/dev/null
  sleep 2
  say "$1-left" "$(left)"
  try "$1-unload" waterfilld unload --pins "$pins"
  say "$1-unload-left" "$(left)"
  try "$1-start" "$3" --pins "$pins" --once
  waterfilld unload --pins "$pins" >/dev/null 2>&1
}

laws() {
  for one in maxnet maxnet2006 aecp rcp vcp xcp pxcp ixcp jetmax; do
    try "law-router-$one" waterfilld router --pins "$pins" --dev rb --rate 5mbit --law $one --once
    try "law-host-$one" waterfilld host --pins "$pins" --cgroup "$cgroup" --name "${tag}_$one" --law $one --once
    waterfilld unload --pins "$pins" >/dev/null 2>&1
  done
}

# Options of the router that a kernel may lack. A daemon must run for --separate.
options() {
  for one in improved paper; do
    try "cohabit-$one" router --pins "$pins" --cohabit $one --once
    waterfilld unload --pins "$pins" >/dev/null 2>&1
  done
  router --pins "$pins" --cohabit improved --separate --line </dev/null >"$dir/log" 2>&1
  say cohabit-separate "$? $(tail -n1 "$dir/log")"
  waterfilld unload --pins "$pins" >/dev/null 2>&1
  try scone router --pins "$pins" --scone --once
  say scone-left "$(waterfilld unload --pins "$pins" >/dev/null 2>&1; left)"
  try csig waterfilld csig --pins "$pins" --inside ra --edge rb --once
  say csig-left "$(waterfilld csig --pins "$pins" --off >/dev/null 2>&1; left)"
  try csig-end waterfilld csig --pins "$pins" --end ra --once
  waterfilld csig --pins "$pins" --off >/dev/null 2>&1
}

# As in a container: the modules are loaded, and their folder is not there.
without_modules() {
  for module in sch_ingress sch_tbf sch_htb; do modprobe $module 2>/dev/null; done
  try probe-without-modules unshare --mount sh -c '[ ! -d /lib/modules ] || mount -t tmpfs none /lib/modules; waterfilld probe --json'
}

clean() {
  exec 9>&-
  [ -z "$server" ] || kill "$server" 2>/dev/null
  wait 2>/dev/null
  echo 0 >"$cgroups/cgroup.procs" 2>/dev/null || echo $$ >"$cgroups/cgroup.procs"
  rmdir "$cgroup" 2>/dev/null
  umount "$dir/bpf" 2>/dev/null
  rm -rf "$dir"
}

trap clean EXIT
say probe "$(waterfilld probe --json)"
say version "$(waterfilld --version)"
network 2>"$dir/network.log" || say network-failed "$(tail -n1 "$dir/network.log")"
traffic
[ "$loaded" ] || exit 0 # refused: what follows would only wait
ended host-term TERM host
ended host-kill KILL host
ended router-term TERM router
ended router-kill KILL router
laws
options
without_modules
say warnings "$(dmesg 2>/dev/null | grep -E 'WARNING|BUG:|Call Trace|Oops' | head -n1)"
