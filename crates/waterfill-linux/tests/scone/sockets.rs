//! Tests of datagrams from sockets through `waterfilld router --scone`, in network namespaces.
#![expect(unsafe_code, reason = "namespaces of threads, and socket options that std has no functions for")]

use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use waterfill_laws::scone::{Packet, UNKNOWN};

use super::common::{Daemon, Namespaces, number, run};
use super::datagram;

const SOL_UDP: libc::c_int = 17;
const UDP_SEGMENT: libc::c_int = 103;
const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_STXCSUM: u32 = 0x17;
/// SCONE signal nearest to a rate of 50 Mbit/s.
const ADVICE: u8 = 54;

/// Creates two namespaces with a veth pair: `v0` in `a` and `v1` in `b`. If that is not possible, prints the reason and
/// returns `None`.
fn network(tools: &[&str]) -> Option<Namespaces> {
    let spaces = Namespaces::new(&['a', 'b'], tools)?;
    let [a, b] = ['a', 'b'].map(|end| spaces.name(end));
    run(&format!(
        "ip -n {a} link add v0 type veth peer name v1 netns {b}
         ip -n {a} address add 10.97.0.1/24 dev v0; ip -n {b} address add 10.97.0.2/24 dev v1
         ip -n {a} address add fd97::1/64 dev v0 nodad; ip -n {b} address add fd97::2/64 dev v1 nodad
         ip -n {a} link set v0 up; ip -n {b} link set v1 up"
    ))
    .unwrap();
    Some(spaces)
}

/// Runs a function in a new thread inside a namespace. Returns its result.
fn within<T: Send + 'static>(spaces: &Namespaces, end: char, what: impl FnOnce() -> T + Send + 'static) -> T {
    let file = File::open(format!("/run/netns/{}", spaces.name(end))).unwrap();
    std::thread::spawn(move || {
        // SAFETY: the descriptor of a network namespace.
        assert_eq!(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
        what()
    })
    .join()
    .unwrap()
}

fn set_option(socket: &UdpSocket, level: libc::c_int, name: libc::c_int, value: libc::c_int) {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option's value is an integer of that size.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), size) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Mirror of `struct ifreq` with a data pointer.
#[repr(C)]
struct Request {
    name: [u8; 16],
    data: *mut u32,
    rest: [u64; 2],
}

/// Makes the kernel compute checksums before packets reach `v0`.
fn switch_checksum_offload_off() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut value = [ETHTOOL_STXCSUM, 0];
    let mut request = Request { name: [0; 16], data: value.as_mut_ptr(), rest: [0; 2] };
    request.name[..2].copy_from_slice(b"v0");
    // SAFETY: a `struct ifreq` whose data is a `struct ethtool_value`.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Sends datagrams from a new socket, either as one super-packet or one by one.
fn send(to: &'static str, datagrams: usize, bytes: usize, together: bool) {
    let any = if to.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(any).unwrap();
    socket.connect(to).unwrap();
    let one = datagram(UNKNOWN, bytes);
    if together {
        set_option(&socket, SOL_UDP, UDP_SEGMENT, bytes as libc::c_int);
        socket.send(&one.repeat(datagrams)).unwrap();
    } else {
        (0..datagrams).for_each(|_| assert_eq!(socket.send(&one).unwrap(), bytes));
    }
}

/// Every datagram arrives, which requires a valid checksum if the device does not compute it. The first four datagrams
/// of a flow carry the advice.
#[test]
fn datagrams_of_sockets_arrive_with_the_advice() {
    let Some(spaces) = network(&["ip"]) else { return };
    let mut daemon = Daemon::start(&spaces.enter('a'), "router --dev v0 --rate 50mbit --shape --scone --no-pin");
    let mut lowered = 0;
    for offload in [true, false] {
        if !offload {
            within(&spaces, 'a', switch_checksum_offload_off);
        }
        for (at, to) in [("10.97.0.2:7007", "10.97.0.2:7007"), ("[fd97::2]:7007", "[fd97::2]:7007")] {
            let receiver = within(&spaces, 'b', move || UdpSocket::bind(at).unwrap());
            receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            for (datagrams, bytes, together) in [(6, 1200, false), (20, 1200, true), (50, 300, true)] {
                within(&spaces, 'a', move || send(to, datagrams, bytes, together));
                let signals: Vec<u8> = (0..datagrams)
                    .map(|n| {
                        let mut buffer = [0; 2048];
                        let length = receiver.recv(&mut buffer).unwrap_or_else(|e| {
                            panic!("offload {offload}, {to}, {datagrams} of {bytes}: datagram {n} is lost: {e}")
                        });
                        let packet = Packet::decode(&buffer[..length]).unwrap();
                        assert_eq!(buffer[2..length], datagram(UNKNOWN, bytes)[2..]);
                        packet.signal
                    })
                    .collect();
                let expected: Vec<u8> = (0..datagrams).map(|n| if n < 4 { ADVICE } else { UNKNOWN }).collect();
                assert_eq!(signals, expected, "offload {offload}, {to}");
                lowered += 4;
            }
        }
    }
    let status = &daemon.status()["links"][0]["scone"];
    assert_eq!(
        (number(status, "lowered"), number(status, "held")),
        (f64::from(lowered), 2.0 * 2.0 * (2.0 + 16.0 + 46.0))
    );
    assert_eq!((number(status, "signal"), number(status, "malformed")), (f64::from(ADVICE), 0.0));
    let errors = spaces.run_in('b', "cat /proc/net/snmp /proc/net/snmp6").unwrap();
    assert!(errors.lines().any(|line| line.starts_with("Udp6InCsumErrors") && line.ends_with("\t0")), "{errors}");
}
