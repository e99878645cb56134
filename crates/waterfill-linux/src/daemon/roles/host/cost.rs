//! Measures the cost of a scrape of 10,000 connections, as sums and as a list. Run the test by name: `ulimit -n 30000;
//! cargo test -p waterfill-linux --features daemon --lib -- --ignored --nocapture scrape_cost`.

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};

use super::{FLOWS, Host, HostSetup, SUMMARY, Summary};
use crate::daemon::kernel::pins::Pins;

/// Number of connections to measure. Both ends of each are on this host.
const CONNECTIONS: usize = 5000;
const ROUNDS: usize = 51;

#[expect(unsafe_code, reason = "no library reads SO_NETNS_COOKIE")]
fn netns_cookie() -> u64 {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (mut cookie, mut bytes) = (0_u64, 8);
    // SAFETY: the kernel writes up to `bytes` bytes, which the number has.
    let code = unsafe {
        let into = (&raw mut cookie).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, into, &raw mut bytes)
    };
    assert_eq!(code, 0);
    cookie
}

fn median(mut of: Vec<Duration>) -> f64 {
    of.sort();
    of[of.len() / 2].as_secs_f64() * 1e3
}

/// Measures the cost of a scrape in a new network namespace, which the calling thread enters.
fn measure() {
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    let name = format!("bpf_cost{}", std::process::id() % 1_000_000);
    let cookie = netns_cookie();
    let setup = HostSetup::read(&format!(
        "name = '{name}'
netns_cookies = [{cookie}]
unrestricted = true"
    ));
    let host = Host::load(&Pins::none(), &setup).unwrap();
    let script = format!("ip link set lo up; sysctl -qw net.ipv4.tcp_congestion_control={name}");
    assert!(Command::new("sh").args(["-ec", &script]).status().unwrap().success());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let ends: Vec<_> = (0..CONNECTIONS)
        .map(|_| (TcpStream::connect(address).expect("ulimit -n 30000"), listener.accept().unwrap().0))
        .collect();
    let (mut lists, mut sums, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let flows = host.flows().unwrap();
        lists.push(start.elapsed());
        let start = Instant::now();
        let summary: Summary = host.summary().unwrap();
        sums.push(start.elapsed());
        ratios.push(lists[lists.len() - 1].div_duration_f64(sums[sums.len() - 1]));
        assert_eq!(flows.len(), 2 * CONNECTIONS);
        for (mode, (n, rate_bps)) in &summary.modes {
            let of: Vec<_> = flows.iter().filter(|flow| flow.mode == *mode).collect();
            assert_eq!(of.len() as u64, *n, "{mode}");
            assert_eq!(of.iter().map(|flow| flow.rate_bps).sum::<u64>(), *rate_bps, "{mode}");
        }
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "{} connections: {FLOWS} {:.2} ms, {SUMMARY} {:.2} ms (medians of {ROUNDS}), median ratio {:.1}",
        2 * CONNECTIONS,
        median(lists),
        median(sums),
        ratios[ROUNDS / 2]
    );
    drop(ends);
}

#[test]
#[ignore = "a measurement, which needs 10,000 descriptors"]
fn scrape_cost() {
    if let Err(why) = crate::daemon::kernel::privileges::check() {
        eprintln!("skipped: {why:#}");
        return;
    }
    thread::spawn(measure).join().unwrap();
}
