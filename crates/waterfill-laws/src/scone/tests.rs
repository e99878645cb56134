use super::*;

/// Rates match the table of draft-ietf-scone-protocol.
#[test]
fn rates_of_the_drafts_table() {
    let table = [
        (0, 100e3),
        (1, 112e3),
        (2, 126e3),
        (3, 141e3),
        (20, 1e6),
        (21, 1.12e6),
        (40, 10e6),
        (41, 11.2e6),
        (60, 100e6),
        (61, 112e6),
        (80, 1e9),
        (81, 1.12e9),
        (100, 10e9),
        (101, 11.2e9),
        (120, 100e9),
        (121, 112e9),
        (126, 199.5e9),
    ];
    for (signal, bps) in table {
        let exact = rate(signal).unwrap().as_bps();
        assert!((exact / bps - 1.0).abs() < 3e-3, "{signal}: {exact}");
        assert_eq!(fixed_rate(signal), (exact + 1e-6) as u64, "{signal}");
    }
    assert_eq!((rate(UNKNOWN), fixed_rate(UNKNOWN)), (None, 0));
}

#[test]
fn both_versions_agree_at_every_signal_and_boundary() {
    for n in 0..UNKNOWN {
        let exact = rate(n).unwrap();
        assert_eq!((signal(exact), fixed_signal(fixed_rate(n))), (n, n));
        assert!((fixed_rate(n) as f64 - exact.as_bps()).abs() <= 1.0, "{n}");
        // The last whole rate below the upper boundary, and the first above it.
        let boundary = (exact.as_bps() * HALF_STEP).floor() as u64;
        for (bps, expected) in [(boundary, n), (boundary + 1, n + 1)] {
            assert_eq!((fixed_signal(bps), signal(Rate::from_bps(bps as f64))), (expected, expected), "{bps}");
        }
    }
    for (bps, expected) in [(0, 0), (1, 0), (94_000, 0), (212_000_000_000, UNKNOWN), (1 << 62, UNKNOWN)] {
        assert_eq!((fixed_signal(bps), signal(Rate::from_bps(bps as f64))), (expected, expected), "{bps}");
    }
}

#[test]
fn advice_is_within_half_a_step_of_the_rate() {
    let mut bps = 1e5;
    while bps < 2e11 {
        let advised = fixed_rate(fixed_signal(bps as u64)) as f64;
        assert!(advised / bps < HALF_STEP + 1e-5 && bps / advised < HALF_STEP + 1e-5, "{bps}: {advised}");
        bps *= 1.000_37;
    }
}

/// [maxnet-2007:eq7] The fair rate equals the demand of a source in equilibrium.
#[test]
fn the_fair_rate_is_the_laws_demand() {
    for (x_max, t) in [(1e15, 0.4), (1e12, 0.05), (1e9, 100.0), (1e15, 0.001)] {
        let advice =
            Advice { x_max: x_max as u64, t: (t * 1e3) as u32, rule: Rule::Demand as u32, ..Advice::default() };
        for step in 0..400 {
            let price: f64 = t * f64::from(step) * 0.11;
            let expected = x_max * (-price / t).exp();
            let got = advice.fair_rate((price * 2_f64.powi(34)) as u64) as f64;
            assert!((got - expected).abs() <= 1e-5 * expected + 1.0, "{x_max} {t} {price}: {got} {expected}");
        }
        assert_eq!(advice.fair_rate(u64::MAX), 0);
        assert_eq!(advice.signal(u64::MAX), 0, "no rate is a limit, too");
    }
    let rcp = Advice { rule: Rule::Rate as u32, shift: 10, ..Advice::default() };
    assert_eq!((rcp.fair_rate(10_000_000 << 10), rcp.signal(10_000_000 << 10)), (10_000_000, 40));
    assert_eq!(rcp.signal(0), UNKNOWN, "a law that has computed no rate yet");
    assert_eq!(Advice::default().signal(1 << 40), UNKNOWN, "a law without a fair rate");
}

fn packet(signal: u8, destination: usize, source: usize) -> Packet {
    Packet { signal, reserved: signal % 3 == 0, destination: vec![0xd1; destination], source: vec![0x5c; source] }
}

#[test]
fn every_signal_is_lowered_to_every_lower_one_and_never_raised() {
    for before in 0..=UNKNOWN {
        let original = packet(before, 8, 5);
        let mut bytes = original.encode();
        bytes.extend([0x40; 30]);
        for advice in 0..=UNKNOWN {
            let mut datagram = bytes.clone();
            assert_eq!(lower(&mut datagram, advice), Ok(before));
            let after = Packet::decode(&datagram).unwrap();
            assert_eq!(after, Packet { signal: before.min(advice), ..original.clone() });
            assert_eq!(datagram[2..], bytes[2..]);
        }
    }
}

#[test]
fn datagrams_without_a_whole_scone_packet_stay() {
    for (destination, source) in [(0, 0), (8, 0), (0, 20), (20, 20), (255, 255)] {
        let mut bytes = packet(UNKNOWN, destination, source).encode();
        let whole = bytes.len() + 1 + destination;
        bytes.resize(whole + 40, 0x40);
        for length in 0..bytes.len() {
            let mut datagram = bytes[..length].to_vec();
            let expected = if length < 5 {
                Err(NotScone::Other)
            } else if length < whole {
                Err(NotScone::Malformed)
            } else {
                Ok(UNKNOWN)
            };
            assert_eq!(Packet::decode(&datagram).map(|packet| packet.signal), expected, "{length}");
            assert_eq!(lower(&mut datagram, 3), expected, "{length}");
            assert_eq!(datagram == bytes[..length], expected.is_err());
        }
    }
    // Another version, a short header, and each single bit of the version.
    for (at, bit) in (1..5).flat_map(|at| (0..8).map(move |bit| (at, bit))).chain([(0, 7)]) {
        let mut datagram = packet(100, 8, 8).encode();
        datagram.extend([0; 40]);
        datagram[at] ^= 1 << bit;
        let expected = if (at, bit) == (1, 7) { Ok(101) } else { Err(NotScone::Other) };
        assert_eq!(Packet::decode(&datagram).map(|p| p.signal), expected);
        assert_eq!(lower(&mut datagram, 3).is_ok(), expected.is_ok());
    }
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_flow_is_written_a_few_times_a_period() {
    // A sender that puts a SCONE packet into every burst, one a millisecond.
    let mut flow = Flow::default();
    let writes: Vec<u64> = (0..134_000).map(|ms| ms * 1_000_000 + 5).filter(|now| flow.may_write(*now, 40)).collect();
    let periods = writes.partition_point(|at| *at < 67 * SECOND);
    assert_eq!((periods, writes.len()), (12, 24));
    assert!(writes.windows(2).all(|pair| pair[1] - pair[0] <= 8 * SECOND + 1_000_000));

    // One that sends every 20 s: each is written.
    let mut flow = Flow::default();
    assert!((0..100).all(|n| flow.may_write(n * 20 * SECOND, 40)));

    // A lower signal is news at any time, a higher one is not.
    let mut flow = Flow::default();
    let wrote: Vec<bool> = [40, 40, 40, 40, 40, 39, 39, 41, 38].iter().map(|n| flow.may_write(7, *n)).collect();
    assert_eq!(wrote, [true, true, true, true, false, true, false, false, true]);
}
