//! A lower bound on a packet's cost. A loop touches the memory that a packet and its acknowledgement must touch, in the
//! engine's order, and computes nothing.
//!
//! Two rings as long as the packets in flight hold 64 bytes a packet. A data packet is read from the first, changes its
//! receiver and writes its acknowledgement into the second; that is read, changes the sender and a bucket of its
//! histogram, and writes the next packet into the first. Flows take turns, as the packets of windows do.

use std::hint::black_box;

use nix::time::{ClockId, clock_gettime};

/// One line of a cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u64; 8]);

/// Lines of a flow that its receiver and its sender must change, and those between: specification, law, cold state.
const RECEIVER_LINES: usize = 3;
const SENDER_LINES: usize = 5;
const FLOW_LINES: usize = 16;
/// Lines of a link: its ring's ends, its state and its meter.
const LINK_LINES: usize = 5;
/// Lines of a flow's histogram in use.
const HISTOGRAM_LINES: usize = 8;

const PACKETS: usize = 20_000_000;
const ROUNDS: usize = 5;

fn main() {
    println!("| flows | packets in flight | floor, ns a packet |");
    println!("|---|---|---|");
    for (flows, in_flight) in [(10, 4_166), (10_000, 41_666)] {
        let times = (0..ROUNDS).map(|_| measure(flows, in_flight));
        println!("| {flows} | {in_flight} | {:.1} |", times.fold(f64::INFINITY, f64::min));
    }
}

/// Returns the nanoseconds of CPU time that a packet and its acknowledgement take.
fn measure(flows: usize, in_flight: usize) -> f64 {
    let line = Line([1; 8]);
    let half = in_flight / 2;
    let (mut data, mut acks) = (vec![line; half], vec![line; half]);
    let mut hosts = vec![[line; FLOW_LINES]; flows];
    let mut histograms = vec![[line; HISTOGRAM_LINES]; flows];
    let mut links = [[line; LINK_LINES]; 2];
    for (i, packet) in data.iter_mut().enumerate() {
        packet.0[0] = (i % flows) as u64;
    }
    let started = cpu_s();
    let mut slot = 0;
    for number in 0..PACKETS as u64 {
        let packet = data[slot];
        let flow = packet.0[0] as usize % flows;
        change(&mut links[0], number);
        change(&mut hosts[flow][..RECEIVER_LINES], number);
        change(&mut links[1], number);
        let ack = std::mem::replace(&mut acks[slot], Line([packet.0[0], number, packet.0[2], 0, 0, 0, 0, number]));
        let flow = ack.0[0] as usize % flows;
        change(&mut hosts[flow][RECEIVER_LINES..RECEIVER_LINES + SENDER_LINES], number);
        histograms[flow][ack.0[2] as usize % HISTOGRAM_LINES].0[3] += 1;
        data[slot] = Line([packet.0[0], number, number, 0, 0, 0, 0, number]);
        slot = if slot + 1 == half { 0 } else { slot + 1 };
    }
    black_box((&data, &acks, &hosts, &histograms, &links));
    (cpu_s() - started) * 1e9 / PACKETS as f64
}

/// Reads and writes two words of each line.
fn change(lines: &mut [Line], number: u64) {
    for line in lines {
        line.0[1] = line.0[1].wrapping_add(number);
        line.0[6] ^= line.0[1];
    }
}

fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("a process has a CPU clock");
    std::time::Duration::from(time).as_secs_f64()
}
