//! Tests `docs/howto/try-on-one-host.md` by running every command of the page in order, up to the removal of
//! everything.

#![cfg(feature = "daemon")]

#[path = "common/requirements.rs"]
mod requirements;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, id};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/howto/try-on-one-host.md");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/prometheus/prometheus.yml");
/// Tools from the packages that the page installs, and tools with which this test isolates its own host.
const TOOLS: [&str; 10] = ["ip", "tc", "ss", "sysctl", "iperf3", "curl", "prometheus", "promtool", "unshare", "mount"];

/// Script that sets up an isolated host with its own mounts, processes, network and control groups.
///
/// The test's group is the root of the control groups. The page waits a fixed time for people; here `sleep` is short,
/// and `until_true` waits as long as necessary.
const HOST: &str = r#"
mount -t proc proc /proc
mount -t tmpfs run /run
mount -t bpf bpf "$BPF"
umount -l "$CGROUPS"
mount -t cgroup2 cgroup2 "$CGROUPS"
ip link set lo up
cd "$FOLDER"
PATH="$FOLDER/bin:$PATH"
sleep() { command sleep 0.3; }
until_true() { for i in $(seq 100); do "$@" >/dev/null 2>&1 && return; sleep; done; echo "never: $*"; cat ./*.log; exit 1; }
ready() { grep -q ready try.log; }
listens() { nsenter --net=/run/netns/b ss -ltnH | grep -q :5201; }
shared() { test "$(waterfilld status | grep -c " priced .* $1 Mbit")" = 2; }
answered() { nsenter --net=/run/netns/r promtool query instant http://127.0.0.1:9090 "$1" | grep -q "=>"; }
"#;

/// Returns the fenced blocks of the page, each with its language.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("\n```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').unwrap()).collect()
}

/// Converts the page to a script, without the live view, which has its own test.
fn script(page: &str) -> String {
    let waits = [
        ("run --config try.toml", "until_true ready"),
        ("iperf3 -s", "until_true listens"),
        ("iperf3 -c", "until_true shared '4[3-7][.0-9]*'"),
        ("waterfilld reload", "until_true shared '2[3-7][.0-9]*'"),
        ("--storage.tsdb.path", "until_true answered 'rate(waterfill_link_bytes_total[1m])'"),
    ];
    let mut script = HOST.to_owned();
    let mut done = 0;
    for (language, text) in blocks(page) {
        match language {
            "" => {
                for line in text.lines().filter(|line| *line != "waterfilld status --watch") {
                    writeln!(script, "{line}").unwrap();
                    // A command of two lines is waited for after its second one.
                    for (_, wait) in waits.iter().filter(|(command, _)| line.contains(command)) {
                        writeln!(script, "{wait}").unwrap();
                        done += 1;
                    }
                }
            }
            "toml" => write!(script, "cat >try.toml <<'END'\n{text}\nEND\n").unwrap(),
            // Output, and other ways to do the same.
            _ => assert_eq!(language, "text"),
        }
    }
    assert_eq!(done, waits.len(), "{page}");
    script
        + "echo left: $(ip netns) $(ls \"$BPF\" | grep -v debug) $(grep -o \"$LAW\" /proc/sys/net/ipv4/tcp_available_congestion_control)\n"
}

/// Returns the mount point of the first file system of this type, or `None` if none is mounted.
fn mounted(kind: &str) -> Option<String> {
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(kind))?;
    line.split(' ').nth(1).map(Into::into)
}

fn missing() -> Result<(String, String), String> {
    requirements::can_load_programs()?;
    for tool in TOOLS {
        let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output().unwrap();
        found.status.success().then_some(()).ok_or(format!("needs {tool}"))?;
    }
    let needs = |kind| mounted(kind).ok_or(format!("no {kind} file system is mounted"));
    Ok((needs("cgroup2")?, needs("bpf")?))
}

#[test]
fn every_command_of_the_page_works_and_leaves_nothing() {
    let (groups, bpf) = match missing() {
        Ok(mounts) => mounts,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let law = format!("bpf_try{}", id() % 10_000_000);
    // The law's name is the kernel's: another one at the same time on this kernel must be possible.
    let page = fs::read_to_string(PAGE).unwrap().replace("bpf_maxnet", &law);
    let page = page.replace("\n[host]\n", &format!("\n[host]\nname = \"{law}\"\n"));
    let folder = std::env::temp_dir().join(format!("waterfill-try-{}", id()));
    fs::create_dir_all(folder.join("bin")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_waterfilld"), folder.join("bin/waterfilld")).unwrap();
    // The packaged example, scraped more often.
    let example = fs::read_to_string(EXAMPLE).unwrap().replace(": 15s", ": 500ms");
    let example = example.lines().filter(|line| !line.contains("rule")).collect::<Vec<_>>().join("\n");
    fs::write(folder.join("prometheus.yml"), example).unwrap();
    let installed = "/usr/share/waterfill/prometheus/prometheus.yml";
    assert!(page.contains(installed), "{page}");
    let page = page.replace(installed, &folder.join("prometheus.yml").display().to_string());
    fs::write(folder.join("script"), script(&page)).unwrap();
    let group = Path::new(&groups).join(format!("waterfill-try-{}", id()));
    fs::create_dir(&group).unwrap();
    // First into the group, then a namespace of groups, which has it as its root.
    let enter = "echo $$ >\"$GROUP/cgroup.procs\"; exec timeout 120 unshare --cgroup --mount --net --pid --fork --kill-child \
                 sh -e \"$FOLDER/script\"";
    let output = Command::new("sh")
        .args(["-ec", enter])
        .env("FOLDER", &folder)
        .env("GROUP", &group)
        .env("CGROUPS", &groups)
        .env("BPF", &bpf)
        .env("LAW", &law)
        .output()
        .unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    fs::remove_dir_all(&folder).unwrap();
    // The last processes may still be leaving it.
    for _ in 0..50 {
        if fs::remove_dir(&group).is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(output.status.success(), "{text}{errors}");
    assert!(!group.exists(), "{text}{errors}");
    assert!(text.contains("try.toml: valid") && text.contains("ready: 1 host law, 1 link"), "{text}");
    for metric in ["waterfill_link_price_seconds{", "waterfill_link_queue_bytes{", "mode=\"priced\"}"] {
        assert!(text.lines().any(|line| line.contains(metric) && line.contains("=>")), "{metric}: {text}{errors}");
    }
    assert_eq!(text.lines().last(), Some("left:"), "{text}{errors}");
}
