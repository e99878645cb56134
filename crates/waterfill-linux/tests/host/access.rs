//! Tests of the users that may select the law.

use std::ffi::OsString;
use std::process::Command;

use nix::sys::socket::sockopt::TcpCongestion;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket};

use super::common::Namespaces;
use super::{Daemon, print_line};

/// Selects a law for a socket and prints the result, if [`select_as`] has started this program again.
#[test]
fn select() {
    let Some(law) = std::env::var_os("WATERFILL_SELECT") else { return };
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).unwrap();
    print_line(&format!("{:?}", setsockopt(&socket, TcpCongestion, &law)));
}

/// Returns the result of selecting a law in a process that starts with `prefix`.
fn select_as(prefix: &str, law: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let out = Command::new("sh")
        .args(["-c", &format!("exec {prefix} \"$0\" --exact access::select --nocapture")])
        .arg(program)
        .env("WATERFILL_SELECT", OsString::from(law))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.lines().find_map(|line| line.strip_prefix('@')).unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn only_an_administrator_selects_the_law_unless_it_is_open() {
    let Some(spaces) = Namespaces::new(&['a'], &["ip", "nsenter", "setpriv", "sysctl"]) else { return };
    let user = "setpriv --bounding-set=-net_admin --inh-caps=-net_admin";
    let law = spaces.law();
    let host = format!("host --no-pin --name {law} --cgroup {}", spaces.cgroup.display());
    let set = format!("sysctl -qw net.ipv4.tcp_congestion_control={law}");
    // A refused sysctl would leave the law's maps in the kernel, so the condition is read that refuses it.
    let allowed = || {
        let laws = spaces.run_in('a', "sysctl -n net.ipv4.tcp_allowed_congestion_control").unwrap();
        laws.split_whitespace().any(|allowed| allowed == law)
    };
    let daemon = Daemon::start("", &host);
    assert_eq!(select_as(user, &law), "Err(EPERM)");
    assert_eq!(select_as("", &law), "Ok(())");
    assert_eq!(select_as(&spaces.enter('a'), &law), "Ok(())");
    assert!(!allowed());
    spaces.run_in('a', &format!("ip route add 10.0.0.0/8 dev lo congctl {law}")).unwrap();
    spaces.run_in('a', "ip route del 10.0.0.0/8 dev lo").unwrap();
    drop(daemon);
    let daemon = Daemon::start("", &format!("{host} --unrestricted"));
    assert_eq!(select_as(user, &law), "Ok(())");
    assert!(allowed());
    spaces.run_in('a', &set).unwrap();
    drop(daemon);
}
