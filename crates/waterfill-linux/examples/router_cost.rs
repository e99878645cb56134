//! Measures the router program's time per packet, in nanoseconds.
//!
//! As root: `cargo run --release --features daemon --package waterfill-linux --example router_cost [-- [--in-place]
//! [NAME=OBJECT]...]`. Prints JSON lines. Each object is another version's `cost.bpf.o` (bpf/test/cost.bpf.c), measured in
//! turn with this one, so that other load on the host disturbs all of them alike. `ns` is the median of the differences
//! to a program that does nothing, measured just before.
//!
//! - By test-run (BPF_PROG_TEST_RUN): repetitions of one packet, in the caches, on one CPU and on two at once. A raised value stays raised,
//!   so for "marked" a program resets it first, which is subtracted.
//! - In place (`--in-place`): at the egress of a veth device in a network namespace of its own. The kernel's statistics give
//!   the mean time; both programs run for each packet.

#![cfg_attr(not(feature = "daemon"), allow(unused_crate_dependencies, reason = "the example is empty without"))]

#[cfg(feature = "daemon")]
#[path = "../tests/router/packet.rs"]
#[allow(dead_code, reason = "the test uses the rest")]
mod packet;
#[cfg(feature = "daemon")]
#[path = "../tests/common/requirements.rs"]
mod requirements;
#[cfg(feature = "daemon")]
#[path = "../tests/router/support.rs"]
mod support;

fn main() {
    #[cfg(feature = "daemon")]
    daemon::main();
    #[cfg(not(feature = "daemon"))]
    eprintln!("needs --features daemon");
}

#[cfg(feature = "daemon")]
#[expect(unsafe_code, reason = "sockets for frames, and libbpf functions that libbpf-rs has no safe ones for")]
mod daemon {
    use std::io::{Read as _, Write as _};
    use std::mem::{offset_of, size_of_val};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
    use std::process::Command as Process;
    use std::sync::Barrier;

    use libbpf_rs::{
        AsRawLibbpf as _, MapCore as _, MapFlags, Object, ObjectBuilder, ProgramInput, ProgramMut, libbpf_sys,
    };
    use nix::net::if_::if_nametoindex;

    use super::packet::{ethernet, forward, ipv4, ipv6, tcp, timestamps};
    use super::requirements::can_load_programs;
    use super::support::{Command, Context, LOOPBACK, Request, as_bytes, idle_link};

    const REPEAT: u32 = 20_000;
    const ROUNDS: usize = 101;
    /// Number of frames sent per round of an in-place measurement.
    const FRAMES: usize = 10_000;
    /// Number of bytes sent over TCP per round of an in-place measurement.
    const STREAM_BYTES: usize = 50 << 20;
    const IN_PLACE_ROUNDS: usize = 31;
    /// Largest price that fits into MaxNet's option.
    const RAISED: u32 = (1 << 23) - 1;

    /// One version of the kernel programs, with its name in the output.
    struct Version {
        name: String,
        object: Object,
    }

    impl Version {
        fn load(name: &str, path: &str) -> Self {
            let object = ObjectBuilder::default().open_file(path).unwrap().load().unwrap();
            Self { name: name.into(), object }
        }

        /// Sets up a link whose price changes every millisecond, as on real links.
        fn set(&self, ifindex: u32) {
            let links = self.object.maps().find(|map| map.name() == "links").unwrap();
            let empty = vec![0; links.value_size() as usize];
            links.update(&ifindex.to_ne_bytes(), &empty, MapFlags::ANY).unwrap();
            let request = Request { dt_p: 1000, t_0: 130_000, ..idle_link(ifindex) };
            let mut raw = request.raw(Command::WATERFILL_SET);
            let input = ProgramInput { context_in: Some(as_bytes(&mut raw)), ..ProgramInput::default() };
            assert_eq!(self.program("waterfill_ask").test_run(input).unwrap().return_value, 0);
        }

        fn program(&self, name: &str) -> ProgramMut<'_> {
            let program = self.object.progs().find(|program| program.name() == name).unwrap();
            // SAFETY: a shared view of a loaded program, which test runs do not change.
            unsafe { ProgramMut::new_mut(&mut *program.as_libbpf_object().as_ptr()) }
        }

        /// Returns the mean time of one program run with `frame`, in ns.
        fn run(&self, program: &str, frame: &[u8]) -> f64 {
            let mut context = [0_u8; size_of::<Context>()];
            let at = offset_of!(Context, ifindex);
            context[at..at + 4].copy_from_slice(&LOOPBACK.to_ne_bytes());
            let mut out = vec![0; frame.len() + 256];
            let input = ProgramInput {
                context_in: Some(&mut context),
                data_in: Some(frame),
                data_out: Some(&mut out),
                repeat: REPEAT,
                ..ProgramInput::default()
            };
            self.program(program).test_run(input).unwrap().duration.as_nanos() as f64
        }
    }

    /// Run times in ns, in pairs: the empty program, then the measured program.
    #[derive(Clone, Default)]
    struct Times(Vec<(f64, f64)>);

    impl Times {
        fn print(&self, head: &str, version: &Version) {
            let sorted = |of: fn(&(f64, f64)) -> f64| {
                let mut of: Vec<f64> = self.0.iter().map(of).collect();
                of.sort_by(f64::total_cmp);
                of
            };
            let (floors, totals, differences) = (sorted(|t| t.0), sorted(|t| t.1), sorted(|t| t.1 - t.0));
            let (least, median) = (totals[0] - floors[0], differences[differences.len() / 2]);
            let (name, floor) = (&version.name, floors[0]);
            println!(
                r#"{{{head}, "version": "{name}", "floor_ns": {floor:.0}, "least_ns": {least:.1}, "ns": {median:.1}}}"#
            );
        }
    }

    pub(super) fn main() {
        if let Err(why) = can_load_programs() {
            eprintln!("router_cost: {why}");
            std::process::exit(2);
        }
        let mut versions = vec![Version::load("this", env!("COST_OBJECT"))];
        let mut in_place = false;
        for argument in std::env::args().skip(1) {
            match argument.split_once('=') {
                Some((name, path)) => versions.push(Version::load(name, path)),
                None if argument == "--in-place" => in_place = true,
                None => {
                    eprintln!("router_cost: {argument}: expected --in-place or NAME=OBJECT");
                    std::process::exit(2);
                }
            }
        }
        if in_place { measure_in_place(&versions) } else { measure_by_test_run(&versions) }
    }

    fn v4(inside: &[u8]) -> Vec<u8> {
        ethernet(&[], 0x0800, &ipv4(&[], 0, 6, inside))
    }

    fn segment(options: &[u8], data: usize) -> Vec<u8> {
        tcp(16, options, &vec![0; data])
    }

    fn maxnet(value: u32, data: usize) -> Vec<u8> {
        v4(&segment(&[timestamps(), forward(value)].concat(), data))
    }

    // ------------------------------------------------------------------------------ by test-run

    fn measure_by_test_run(versions: &[Version]) {
        for version in versions {
            version.set(LOOPBACK);
        }
        let udp = ethernet(&[], 0x0800, &ipv4(&[], 0, 17, &segment(&[], 1400)));
        let tagged =
            ethernet(&[0x88a8, 0x8100], 0x86dd, &ipv6(&[(60, vec![0; 8])], 6, &segment(&forward(RAISED), 1400)));
        let v6 = ethernet(&[], 0x86dd, &ipv6(&[], 6, &segment(&[timestamps(), forward(RAISED)].concat(), 1400)));
        let (plain, marking) = (("cost_empty", "waterfill_router"), ("cost_reset", "cost_reset_and_mark"));
        for (packet, frame, (floor, program)) in [
            ("UDP", udp, plain),
            ("TCP without options", v4(&segment(&[], 1400)), plain),
            ("TCP with timestamps", v4(&segment(&timestamps(), 1400)), plain),
            ("raised before", maxnet(RAISED, 1400), plain),
            ("raised before, IPv6", v6, plain),
            ("raised before, IPv6 after two VLAN tags and an extension header", tagged, plain),
            ("marked", maxnet(0, 1400), marking),
            ("SYN with a start rate", v4(&tcp(2, &[timestamps(), forward(1 << 23)].concat(), &[])), plain),
        ] {
            for threads in [1, 2] {
                let mut times = vec![Times::default(); versions.len()];
                for _ in 0..ROUNDS {
                    for (version, times) in versions.iter().zip(&mut times) {
                        let without = on_cpus(version, floor, &frame, threads);
                        times.0.push((without, on_cpus(version, program, &frame, threads)));
                    }
                }
                for (version, times) in versions.iter().zip(times) {
                    times.print(&format!(r#""packet": "{packet}", "cpus": {threads}"#), version);
                }
            }
        }
    }

    /// Returns the mean time of a program run on `threads` CPUs at once, in ns.
    fn on_cpus(version: &Version, program: &str, frame: &[u8], threads: usize) -> f64 {
        let start = Barrier::new(threads);
        let shared = Shared(version);
        std::thread::scope(|scope| {
            let runs: Vec<_> = (0..threads)
                .map(|cpu| {
                    let (start, shared) = (&start, &shared);
                    scope.spawn(move || {
                        let mut cpus = nix_cpu_set(cpu);
                        // SAFETY: a valid set of this thread's CPUs.
                        unsafe { libc::sched_setaffinity(0, size_of_val(&cpus), &raw mut cpus) };
                        start.wait();
                        shared.0.run(program, frame)
                    })
                })
                .collect();
            runs.into_iter().map(|run| run.join().unwrap()).sum::<f64>() / threads as f64
        })
    }

    /// A [`Version`] that several threads can use.
    struct Shared<'a>(&'a Version);
    // SAFETY: test runs only read the object's descriptors.
    unsafe impl Sync for Shared<'_> {}

    fn nix_cpu_set(cpu: usize) -> libc::cpu_set_t {
        // SAFETY: a set of integers, for which zeros are valid; the index is within it.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            set
        }
    }

    // ------------------------------------------------------------------------------ in place

    /// Two network namespaces joined by a veth pair, both removed on drop. The measuring thread enters the first one.
    struct VethPair {
        names: [String; 2],
    }

    impl VethPair {
        fn new() -> Self {
            let names = ["a", "b"].map(|end| format!("wfcost{}{end}", std::process::id()));
            let place = Self { names };
            let [a, b] = &place.names;
            shell(&format!(
                "ip netns add {a}; ip netns add {b}
                 ip -n {a} link add wf0 type veth peer name wf1 netns {b}
                 for n in {a} {b}; do ip netns exec $n sysctl -qw net.ipv6.conf.all.disable_ipv6=1; ip -n $n link set lo up; done
                 ip -n {a} address add 10.0.0.1/24 dev wf0; ip -n {b} address add 10.0.0.2/24 dev wf1
                 ip -n {a} link set wf0 up; ip -n {b} link set wf1 up"
            ));
            place
        }

        fn enter(&self, end: usize) {
            let file = std::fs::File::open(format!("/run/netns/{}", self.names[end])).unwrap();
            // SAFETY: the descriptor of a network namespace.
            assert_eq!(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
        }
    }

    impl Drop for VethPair {
        fn drop(&mut self) {
            let [a, b] = &self.names;
            shell(&format!("ip netns del {a}; ip netns del {b}"));
        }
    }

    fn shell(script: &str) {
        let out = Process::new("sh").args(["-ec", script]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    /// Attaches a program behind all others at a device's egress. Dropping the link detaches the program.
    fn attach(program: &ProgramMut<'_>, ifindex: u32) -> libbpf_rs::Link {
        // SAFETY: the program is loaded; a null pointer means default options.
        let link = unsafe {
            libbpf_sys::bpf_program__attach_tcx(program.as_libbpf_object().as_ptr(), ifindex as i32, std::ptr::null())
        };
        // SAFETY: a new link without another owner.
        unsafe { libbpf_rs::Link::from_ptr(std::ptr::NonNull::new(link).expect("tcx, of Linux 6.6")) }
    }

    /// Returns a program's total run time in ns and its number of runs.
    fn statistics(program: &ProgramMut<'_>) -> (f64, f64) {
        let mut info = libbpf_sys::bpf_prog_info::default();
        let mut size = size_of_val(&info) as u32;
        // SAFETY: the structure's size is given.
        let failed = unsafe {
            libbpf_sys::bpf_obj_get_info_by_fd(program.as_fd().as_raw_fd(), (&raw mut info).cast(), &raw mut size)
        };
        assert_eq!(failed, 0);
        (info.run_time_ns as f64, info.run_cnt as f64)
    }

    fn measure_in_place(versions: &[Version]) {
        let place = VethPair::new();
        place.enter(0);
        let ifindex = if_nametoindex("wf0").unwrap();
        for version in versions {
            version.set(ifindex);
        }
        // SAFETY: no memory is involved; statistics are on until the descriptor is closed.
        let on = unsafe { OwnedFd::from_raw_fd(libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME)) };
        let udp = ethernet(&[], 0x0800, &ipv4(&[], 0, 17, &segment(&[], 1400)));
        let mut stream = connect(&place);
        let frames = [
            ("UDP of 1448 bytes", Some(udp)),
            ("TCP with timestamps, 1466 bytes", Some(v4(&segment(&timestamps(), 1400)))),
            ("marked, 74 bytes", Some(maxnet(0, 0))),
            ("marked, 1474 bytes", Some(maxnet(0, 1400))),
            ("super-packets of a CUBIC flow", None),
        ];
        for (packet, frame) in frames {
            let mut times = vec![Times::default(); versions.len()];
            for _ in 0..IN_PLACE_ROUNDS {
                for (version, times) in versions.iter().zip(&mut times) {
                    let programs = ["cost_empty", "waterfill_router"].map(|name| version.program(name));
                    let links = programs.each_ref().map(|program| attach(program, ifindex));
                    let before = programs.each_ref().map(statistics);
                    match &frame {
                        Some(frame) => send(ifindex, frame),
                        None => stream.write_all(&vec![0; STREAM_BYTES]).unwrap(),
                    }
                    let after = programs.each_ref().map(statistics);
                    let [empty, router] = [0, 1].map(|i| (after[i].0 - before[i].0) / (after[i].1 - before[i].1));
                    times.0.push((empty, router));
                    drop(links);
                }
            }
            for (version, times) in versions.iter().zip(times) {
                times.print(&format!(r#""in place": "{packet}""#), version);
            }
        }
        drop(on);
    }

    /// Opens a TCP connection to the second namespace, where a thread reads and discards the data.
    fn connect(place: &VethPair) -> TcpStream {
        let (ready, wait) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                place.enter(1);
                ready.send(TcpListener::bind("10.0.0.2:9").unwrap()).unwrap();
            });
        });
        let listener = wait.recv().unwrap();
        std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let mut buffer = vec![0; 1 << 20];
            while peer.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
        });
        TcpStream::connect("10.0.0.2:9").unwrap()
    }

    /// Sends [`FRAMES`] copies of a frame through a packet socket, which bypasses the network stack but not the
    /// device's egress programs.
    fn send(ifindex: u32, frame: &[u8]) {
        // SAFETY: system calls with the sizes of what they read.
        unsafe {
            let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
            assert!(socket >= 0);
            let socket = OwnedFd::from_raw_fd(socket);
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_ifindex = ifindex as i32;
            address.sll_protocol = u16::from_be_bytes([frame[12], frame[13]]).to_be();
            for _ in 0..FRAMES {
                let sent = libc::sendto(
                    socket.as_raw_fd(),
                    frame.as_ptr().cast(),
                    frame.len(),
                    0,
                    (&raw const address).cast(),
                    size_of_val(&address) as u32,
                );
                assert_eq!(sent, frame.len() as isize);
            }
        }
    }
}
