//! Tests of `waterfilld status --watch` on a terminal of 80 by 24 characters (tmux): its content, its keys, and the
//! terminal afterwards.

#![cfg(feature = "daemon")]

#[path = "common/requirements.rs"]
mod requirements;

use std::process::{Command, id};

/// Script that sets up a router in a network namespace with its own pins, and defines helpers.
///
/// `view` starts the live view in a terminal and waits until its keys are shown. `screen` prints the screen, and
/// `after` prints the state of the terminal after the view has ended.
const SETUP: &str = r#"
mount -t bpf none "$FS"
ip link set lo up
ip link add wf0 type veth peer name wf1
ip link set wf0 up
$WATERFILLD router --pins "$FS/wf" --dev wf0 --rate 100mbit --once 2>/dev/null
views=0
terminal() { tmux -u -L "$NAME-$views" -f /dev/null "$@"; }
screen() { terminal capture-pane -p; }
until_shown() { for i in $(seq 100); do screen | grep -q "$1" && return; sleep 0.1; done; echo "never shown: $1"; screen; }
view() {
    views=$((views + 1)) # a server of its own: that of the last view may still be ending
    cat >"$FS.sh" <<END
stty -g >"$FS.before"
sh -c 'echo \$\$ >"$FS.pid"; exec $WATERFILLD status --watch --pins "$FS/wf"'
echo "code \$?"
stty -g >"$FS.after"
cmp "$FS.before" "$FS.after" && echo "terminal as before"
sleep 30
END
    terminal new-session -d -x 80 -y 24 "sh $FS.sh"
    until_shown "q quit"
}
after() {
    until_shown "terminal as before"
    screen
    terminal display-message -p 'alternate screen #{alternate_on}, cursor #{cursor_flag}'
    terminal kill-server
}
trap 'terminal kill-server 2>/dev/null || true; $WATERFILLD unload --pins "$FS/wf" 2>/dev/null' EXIT
"#;

fn in_terminal(script: &str) -> Option<String> {
    requirements::can_load_programs().inspect_err(|why| eprintln!("skipped: {why}")).ok()?;
    if Command::new("tmux").arg("-V").output().is_err() {
        eprintln!("skipped: needs tmux");
        return None;
    }
    let name = format!("waterfill-watch-{}-{:?}", id(), std::thread::current().id()).replace(['(', ')'], "");
    let folder = std::env::temp_dir().join(&name);
    std::fs::create_dir(&folder).unwrap();
    let output = Command::new("timeout")
        .args(["60", "unshare", "-mn", "sh", "-ec", &format!("{SETUP}{script}")])
        .env("FS", &folder)
        .env("NAME", &name)
        .env("WATERFILLD", env!("CARGO_BIN_EXE_waterfilld"))
        .env_remove("TMUX")
        .output()
        .unwrap();
    std::fs::remove_dir(&folder).unwrap();
    for extension in ["sh", "pid", "before", "after"] {
        let _ = std::fs::remove_file(folder.with_extension(extension));
    }
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{errors}");
    Some(text.into_owned())
}

#[test]
fn the_view_shows_links_answers_keys_and_gives_the_terminal_back() {
    let Some(text) = in_terminal(
        r#"
view
screen
terminal send-keys s p
until_shown "sort (signal)"
until_shown PAUSED
echo --- narrow
terminal resize-window -x 50 -y 12
sleep 1
screen
terminal send-keys q
echo --- after
after
"#,
    ) else {
        return;
    };
    let (first, rest) = text.split_once("--- narrow\n").unwrap_or_else(|| panic!("{text}"));
    let (narrow, after) = rest.split_once("--- after\n").unwrap();
    let lines: Vec<_> = first.lines().collect();
    assert_eq!(lines.len(), 24, "{text}");
    assert!(lines[0].starts_with("waterfilld: 1 link, 0 connections"), "{text}");
    assert!(lines[1].starts_with("link") && lines[1].contains("queue") && lines[2].starts_with("wf0"), "{text}");
    assert!(lines[2].contains("100 Mbit/s") && lines[2].contains('\u{2581}'), "a rate, and the price's course: {text}");
    assert!(lines[23].starts_with("q quit  s sort (rate)  / filter  p pause"), "{text}");
    assert!(!text.contains("never shown"), "{text}");
    assert!(narrow.lines().count() == 12 && narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");
    assert!(after.contains("code 0") && !after.contains("q quit"), "{after}");
    assert!(after.ends_with("alternate screen 0, cursor 1\n"), "{after}");
}

#[test]
fn a_signal_ends_the_view_and_gives_the_terminal_back() {
    let Some(text) =
        in_terminal("view\nkill -INT \"$(cat \"$FS.pid\")\"\nafter\nview\nterminal send-keys C-c\nafter\n")
    else {
        return;
    };
    assert_eq!(text.matches("code 0").count(), 2, "{text}");
    assert_eq!(text.matches("alternate screen 0, cursor 1\n").count(), 2, "{text}");
    assert!(!text.contains("never shown"), "{text}");
}

#[test]
fn without_a_terminal_the_tables_are_repeated() {
    let Some(text) = in_terminal("$WATERFILLD status --watch --pins \"$FS/wf\" | head -n 4\n") else { return };
    assert_eq!(text.matches("wf0 ").count(), 2, "{text}");
    assert!(!text.contains('\x1b'), "{text}");
}
