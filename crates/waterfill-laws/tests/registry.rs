//! What the registry says of every protocol: parcels of fluid, bytes on the wire, backends.

use waterfill_laws::params::Value;
use waterfill_laws::protocol::{Connection, LinkView, PacketKind, Sending};
use waterfill_laws::protocols::{ixcp, xcp};
use waterfill_laws::registry::{AnyEcho, AnyHeader, ProtocolId};
use waterfill_laws::units::{Instant, Rate, Volume};

const PACKET: Volume = Volume::from_bytes(1500.0);

/// The header of a protocol's first data packet.
fn header(id: ProtocolId) -> AnyHeader {
    let connection =
        Connection { weight: 1.0, packet: PACKET, initial_window: 10.0 * PACKET, claimed_rtt: None, seed: 0 };
    id.params().source(&connection).stamp(&Sending::new(Instant::ZERO, PacketKind::Data, PACKET))
}

/// Two parts of a parcel together are the parcel; only sums over packets are divided.
#[test]
fn parts_of_a_parcel_together_are_the_parcel() {
    let katabi = xcp::Header::Katabi { rtt: 0.1, cwnd: 30_000.0, feedback: -8.0 };
    let falk = xcp::Header::Falk { rtt: 1 << 20, x: 77, delta_throughput: 4000 };
    let part = |header: xcp::Header, share| match AnyHeader::Xcp(header).part(share) {
        AnyHeader::Xcp(part) => part,
        other => panic!("{other:?}"),
    };
    assert_eq!(part(katabi, 0.25), xcp::Header::Katabi { rtt: 0.1, cwnd: 30_000.0, feedback: -2.0 });
    assert_eq!(part(falk, 0.25), xcp::Header::Falk { rtt: 1 << 20, x: 77, delta_throughput: 1000 });
    let named = |congestion| ixcp::Header { congestion, bottleneck: 3, next_bottleneck: 4 };
    for congestion in [katabi, falk] {
        for whole in [AnyHeader::Xcp(congestion), AnyHeader::PXcp(congestion), AnyHeader::IXcp(named(congestion))] {
            assert!(whole.is_extensive());
            assert_eq!(whole.part(0.25).joined(&whole.part(0.75)), whole);
        }
    }
    // Before the first router there is no feedback to divide or add.
    let asks = header(ProtocolId::Xcp);
    assert_eq!((asks.part(0.5), AnyHeader::Xcp(katabi).joined(&asks)), (asks, asks));
    for &id in ProtocolId::ALL {
        let whole = header(id);
        let sums = matches!(id, ProtocolId::Xcp | ProtocolId::IXcp | ProtocolId::PXcp);
        assert_eq!(whole.is_extensive(), sums, "{id:?}");
        assert_eq!((whole.part(0.3), whole.joined(&whole)), (whole, whole), "{id:?}");
        assert_eq!(AnyHeader::Xcp(katabi).joined(&AnyHeader::None), AnyHeader::None);
    }
}

/// A sum of changes keeps within the field, and below the code that asks.
#[test]
fn sums_of_feedback_saturate() {
    let falk = |delta_throughput| AnyHeader::Xcp(xcp::Header::Falk { rtt: 1, x: 1, delta_throughput });
    assert_eq!(falk(i32::MAX - 1).joined(&falk(i32::MAX - 1)), falk(i32::MAX - 1));
    assert_eq!(falk(i32::MIN).joined(&falk(i32::MIN)), falk(i32::MIN));
}

/// Both ways to encode write the same bytes, and not one more.
#[test]
fn encoding_into_a_buffer_is_encoding() {
    for &id in ProtocolId::ALL {
        let header = header(id);
        let (wire, mut buffer) = (header.encode(), [0xa5; 80]);
        header.encode_into(&mut buffer);
        assert_eq!((&buffer[..wire.len()], &buffer[wire.len()..]), (&wire[..], &[0xa5; 80][wire.len()..]), "{id:?}");
        let echo = id.params().receiver().echo(Instant::ZERO);
        let (wire, mut buffer) = (echo.encode(), [0xa5; 80]);
        echo.encode_into(&mut buffer);
        assert_eq!((&buffer[..wire.len()], &buffer[wire.len()..]), (&wire[..], &[0xa5; 80][wire.len()..]), "{id:?}");
        // A protocol without fields has no header of its own.
        assert_eq!(header.protocol().is_some(), header != AnyHeader::None, "{id:?}");
        assert_eq!(id.has_fields(), header != AnyHeader::None || echo != AnyEcho::None, "{id:?}");
    }
    assert_eq!((AnyHeader::None.protocol(), AnyEcho::None.protocol()), (None, None));
}

/// The fluid model has no packets: fixed-point versions that count them, or pace them, do not run there.
#[test]
fn backends_that_cannot_run_an_arithmetic_say_so() {
    for &id in ProtocolId::ALL {
        let of = |word: &str| {
            let mut params = id.params();
            params.set("arithmetic", &Value::Word(word.into())).ok().map(|()| params)
        };
        for backend in ["sim", "fluid", "linux"] {
            assert_eq!(id.params().check_backend(backend), Ok(()), "{id:?} on {backend}");
        }
        let counts = id != ProtocolId::MaxNet && id != ProtocolId::MaxNet2006;
        if let Some(kernel) = of("kernel") {
            assert_eq!(kernel.check_backend("sim"), Ok(()), "{id:?}");
            let said = kernel.check_backend("fluid").map_err(|e| e.0);
            let expected = "arithmetic: expected real on fluid, which has no packets to count";
            assert_eq!(said, if counts { Err(expected.into()) } else { Ok(()) }, "{id:?}");
        }
        if let Some(host) = of("kernel-host") {
            let expected = "arithmetic: expected real or kernel on fluid, which has no packets to pace";
            assert_eq!(host.check_backend("fluid").map_err(|e| e.0), Err(expected.into()), "{id:?}");
        }
    }
}

/// MaxNet's prices reach down to the fastest link that its demand function can name; beyond, it refuses the link.
#[test]
fn links_beyond_a_law_s_range_are_refused() {
    let link = |bps| LinkView { id: 0, capacity: Rate::from_bps(bps), target: None, queue: Volume::ZERO };
    for id in [ProtocolId::MaxNet, ProtocolId::MaxNet2006, ProtocolId::Scone] {
        let params = id.params();
        assert_eq!(params.check_link(&link(1e9)), Ok(()), "{id:?}");
        params.check_link(&link(1e17)).expect_err("above x_max");
    }
    assert_eq!(ProtocolId::Reno.params().check_link(&link(1e17)), Ok(()));
}
