//! A test of connections whose law the kernel does not run.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};

use super::{Host, HostSetup};
use crate::daemon::kernel::pins::Pins;
use crate::daemon::kernel::{object, privileges};

/// Sends data over loopback under a law. With `skipped`, TCP runs another program instead of the law's `cong_control`.
/// Returns how often that was noticed, and the number of echoes that the sender received.
fn missed(skipped: bool) -> (u64, u32) {
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    let name = format!("bpf_miss{}", std::process::id() % 1_000_000);
    let setup = HostSetup::read(&format!("name = '{name}'\nunrestricted = true\npeers = ['127.0.0.0/8']"));
    let open = if skipped { object::open_without_control(setup.law.host) } else { object::open_host(setup.law.host) };
    let host = Host::load_object(open.unwrap(), &Pins::none(), &setup, true, None).unwrap();
    let script = format!("ip link set lo up; sysctl -qw net.ipv4.tcp_congestion_control={name}");
    assert!(Command::new("sh").args(["-ec", &script]).status().unwrap().success());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut server = listener.accept().unwrap().0;
    let end = Instant::now() + Duration::from_secs(1);
    let mut buffer = vec![0; 1 << 16];
    let reader = thread::spawn(move || while server.read(&mut buffer).is_ok_and(|n| n > 0) {});
    while Instant::now() < end {
        client.write_all(&[0; 1 << 14]).unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    let local = client.local_addr().unwrap().to_string();
    let flow = host.flows().unwrap().into_iter().find(|flow| flow.local == local).unwrap();
    drop(client);
    reader.join().unwrap();
    (host.counters().unwrap().control_missed, flow.echoes)
}

#[test]
fn echoes_without_a_run_of_the_law_are_counted_once_in_a_row() {
    if let Err(why) = privileges::check() {
        eprintln!("skipped: {why:#}");
        return;
    }
    let (noticed, echoes) = thread::spawn(|| missed(true)).join().unwrap();
    assert!(noticed == 1 && echoes > 100, "{noticed}, {echoes} echoes");
    assert_eq!(thread::spawn(|| missed(false)).join().unwrap().0, 0);
}
