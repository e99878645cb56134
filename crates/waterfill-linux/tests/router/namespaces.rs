//! Tests of `waterfilld router` on devices in network namespaces.

use std::process::Command;

use crate::common::WATERFILLD;
use crate::common::requirements::can_load_programs;

/// Runs a script in new namespaces and returns its output. There is a BPF file system at $FS, and a device `wf0` whose
/// peer is `wf1`.
fn in_namespaces(script: &str) -> Option<String> {
    can_load_programs().inspect_err(|why| eprintln!("skipped: {why}")).ok()?;
    let folder =
        std::env::temp_dir().join(format!("waterfill-router-{}-{:?}", std::process::id(), std::thread::current().id()));
    std::fs::create_dir(&folder).unwrap();
    let setup = r#"
set -e
mount -t bpf none "$FS"
unshare -n sleep 50 &
peer=$!
trap 'kill $peer' EXIT
while [ "$(readlink /proc/$peer/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
there() { nsenter -t $peer -n "$@"; }
ip link set lo up
ip link add wf0 type veth peer name wf1 netns $peer
ip address add 10.0.0.1/24 dev wf0
ip link set wf0 up
there ip address add 10.0.0.2/24 dev wf1
there ip link set wf1 up
there ip link set lo up
state() { tc qdisc show; tc filter show dev wf0 egress; tc filter show dev wf0 ingress; find "$FS" -mindepth 1 | sort; }
wf() { command=$1; shift; "$WATERFILLD" $command --pins "$FS/wf" "$@" 2>"$FS.err" || { code=$?; cat "$FS.err"; echo "exit $code"; }; }
"#;
    let output = Command::new("timeout")
        .args(["50", "unshare", "-mn", "sh", "-c", &format!("{setup}{script}")])
        .env("FS", &folder)
        .env("WATERFILLD", WATERFILLD)
        .output()
        .unwrap();
    std::fs::remove_dir(&folder).unwrap();
    for extension in ["err", "in", "out"] {
        let _ = std::fs::remove_file(folder.with_extension(extension));
    }
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{errors}");
    Some(text.into_owned())
}

#[test]
fn unloading_restores_the_device() {
    let Some(text) = in_namespaces(
        r#"
before=$(state)
wf router --dev wf0 --rate 100mbit --shape --overhead 0 --once
tc qdisc show dev wf0
echo --- again, without the shaper
wf router --dev wf0 --rate 200mbit --once
tc qdisc show dev wf0
wf status --json
wf unload
[ "$before" = "$(state)" ] && echo unchanged
"#,
    ) else {
        return;
    };
    assert!(text.contains("qdisc tbf 5746: root") && text.contains("rate 100Mbit"), "{text}");
    let (_, again) = text.split_once("--- again").unwrap();
    assert!(again.contains("qdisc noqueue") && !again.contains("tbf"), "{text}");
    assert!(again.contains(r#""rate_bps":200000000"#), "{text}");
    assert!(text.ends_with("unchanged\n"), "{text}");
}

#[test]
fn another_root_qdisc_is_an_error_and_stays() {
    let Some(text) = in_namespaces(
        r#"
tc qdisc add dev wf0 root handle 7: pfifo limit 50
before=$(state)
wf router --dev wf0 --rate 100mbit --shape --once
[ "$before" = "$(state)" ] && echo unchanged
"#,
    ) else {
        return;
    };
    assert!(text.contains("device wf0 already has a root qdisc, pfifo 7:") && text.contains("exit 2"), "{text}");
    assert!(text.ends_with("unchanged\n"), "{text}");
}

#[test]
fn other_tcp_passes_unchanged_and_the_queue_is_read() {
    if Command::new("iperf3").arg("--version").output().is_err() {
        eprintln!("skipped: needs iperf3");
        return;
    }
    let Some(text) = in_namespaces(
        r"
wf router --dev wf0 --rate 200mbit --shape --once
there iperf3 -s -1 >/dev/null &
for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; there ss -ltn | grep -q 5201 && break; done
iperf3 -c 10.0.0.2 -t 2 -J | tr -d '\n'
echo
wf status --json
$WATERFILLD probe --json
there cat /proc/net/snmp
",
    ) else {
        return;
    };
    let documents: Vec<serde_json::Value> =
        text.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect();
    let [transfer, status, kernel] = &documents[..] else { panic!("{text}") };
    let link = &status["links"][0];
    // How much that is depends on the host: QEMU without KVM carries a fifth of the link's rate.
    let received = transfer["end"]["sum_received"]["bytes"].as_u64().unwrap();
    assert!(received > 1_000_000 && link["bytes"].as_u64().unwrap() > received, "{received} bytes: {status}");
    // Some are super-packets.
    assert!(link["segments"].as_u64() > link["packets"].as_u64(), "{status}");
    assert_eq!(link["marked"], 0);
    let features = kernel["features"].as_array().unwrap();
    let reads = features.iter().find(|feature| feature["name"] == "reading the device's queue").unwrap();
    let readable = reads["present"] == true;
    assert_eq!((link["queue_bytes"].is_u64(), link["virtual_queue_bytes"].is_u64()), (readable, !readable), "{status}");
    // Tcp: … InErrs … InCsumErrors
    let tcp: Vec<Vec<&str>> =
        text.lines().filter(|l| l.starts_with("Tcp:")).map(|l| l.split_whitespace().collect()).collect();
    let column = tcp[0].iter().position(|name| *name == "InCsumErrors").unwrap();
    assert_eq!(tcp[1][column], "0");
}

#[test]
fn the_shaper_of_a_killed_router_without_pins_is_unloaded() {
    let Some(text) = in_namespaces(
        r#"
before=$(state)
mkfifo "$FS.in"
"$WATERFILLD" router --dev wf0 --rate 100mbit --shape --no-pin --line <"$FS.in" >"$FS.out" 2>"$FS.err" &
daemon=$!
exec 5>"$FS.in"
until grep -q ready "$FS.out"; do sleep 0.02; done
wf unload # the daemon runs
tc qdisc show dev wf0
echo --- killed
kill -9 $daemon
wait $daemon || true
tc qdisc show dev wf0
wf unload --dev wf0
cat "$FS.err"
[ "$before" = "$(state)" ] && echo unchanged
wf unload
cat "$FS.err"
wf unload --dev wf0
"#,
    ) else {
        return;
    };
    let (running, killed) = text.split_once("--- killed").unwrap();
    assert!(running.contains("tbf 5746:") && killed.contains("tbf 5746:"), "{text}");
    let (before, after) = killed.split_once("unchanged\n").unwrap_or_else(|| panic!("{text}"));
    assert!(before.contains("removed what a daemon left that was killed: device wf0"), "{text}");
    assert!(after.contains("nothing is loaded") && after.contains("--dev wf0: no router is loaded"), "{text}");
}

#[test]
fn unload_removes_only_pins_of_its_own_and_says_what_else_is_there() {
    let Some(text) = in_namespaces(
        r#"
wf router --dev wf0 --rate 100mbit --once
stat -c '%a %n' "$FS/wf" "$FS/wf/router"
mkdir "$FS/wf/router/of-another"
wf unload
cat "$FS.err"
find "$FS" -mindepth 1 | sort
rmdir "$FS/wf/router/of-another"
chmod 777 "$FS/wf"
wf router --dev wf0 --rate 100mbit --once
chmod 755 "$FS/wf"
chown 12345 "$FS/wf"
wf router --dev wf0 --rate 100mbit --once
chown 0 "$FS/wf"
wf router --dev wf0 --rate 100mbit --once
stat -c '%a %n' "$FS/wf" "$FS/wf/router"
wf unload
[ -e "$FS/wf" ] || echo gone
"#,
    ) else {
        return;
    };
    let fs = text.lines().next().unwrap().strip_prefix("700 ").unwrap_or_else(|| panic!("{text}"));
    let stat = format!("700 {fs}\n700 {fs}/router\n");
    assert_eq!(text.matches(&stat).count(), 2, "{text}");
    let left = format!("waterfilld did not make them: {fs}/router/of-another\n");
    assert!(text.contains(&left), "{text}");
    assert!(text.contains(&format!("\n{fs}\n{fs}/router\n{fs}/router/of-another\n")), "{text}");
    assert!(text.contains("others can write it (mode 0777)") && text.contains("user 12345 owns it"), "{text}");
    assert_eq!(text.matches("exit 2").count(), 2, "{text}");
    assert!(text.ends_with("\ngone\n"), "{text}");
}

#[test]
fn a_running_daemon_follows_a_device_that_comes_back() {
    let Some(text) = in_namespaces(
        r#"
mkfifo "$FS.in"
"$WATERFILLD" router --dev wf0 --rate 100mbit --shape --no-pin --line <"$FS.in" >"$FS.out" 2>"$FS.err" &
daemon=$!
exec 5>"$FS.in"
until grep -q ready "$FS.out"; do sleep 0.02; done
again() { ip link del wf0; $1; ip link add wf0 type veth peer name wf1 netns $peer; ip link set wf0 up; }
shaped() { tc qdisc show dev wf0 2>/dev/null | grep -q tbf; }
for between in true "sleep 0.2"; do
    again "$between"
    there ip link set wf1 up # the first packets of IPv6 follow
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do shaped && break; sleep 0.05; done
    shaped && echo "shaped again"
done
for i in $(seq 80); do # IPv6 sends its first packets within seconds
    echo >&5
    sleep 0.1
    tail -n 1 "$FS.out" | grep -q '"packets":[1-9]' && break
done
tail -n 1 "$FS.out"
echo "index $(ip -o link show wf0 | cut -d: -f1)"
exec 5>&-
wait $daemon
cat "$FS.err"
"#,
    ) else {
        return;
    };
    assert_eq!(text.matches("shaped again").count(), 2, "{text}");
    let status = text.lines().find(|line| line.contains("links")).unwrap_or_else(|| panic!("{text}"));
    let status: serde_json::Value = serde_json::from_str(status).unwrap();
    let [link] = &status["links"].as_array().unwrap()[..] else { panic!("one link: {text}") };
    assert!(text.contains(&format!("\nindex {}\n", link["ifindex"])), "{text}");
    assert!(link["packets"].as_u64().unwrap() > 0, "{text}");
    assert_eq!((&link["device"], &link["rate_bps"]), (&"wf0".into(), &100_000_000.into()));
    assert_eq!(text.matches("device wf0 came: attached").count(), 2, "{text}");
}
