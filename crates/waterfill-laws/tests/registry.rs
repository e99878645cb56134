//! Tests of every protocol in the registry: parcels of fluid and bytes on the wire.

use waterfill_laws::params::Value;
use waterfill_laws::protocol::{Connection, LinkView, PacketKind, Sending};
use waterfill_laws::protocols::{ixcp, xcp};
use waterfill_laws::registry::{AnyEcho, AnyHeader, ProtocolId, kernel_protocols};
use waterfill_laws::units::{Instant, Rate, Volume};

const PACKET: Volume = Volume::from_bytes(1500.0);

/// Returns the header of a protocol's first data packet.
fn header(id: ProtocolId) -> AnyHeader {
    let connection = Connection {
        weight: 1.0,
        packet: PACKET,
        initial_window: 10.0 * PACKET,
        claimed_rtt: None,
        path: waterfill_laws::protocol::PathView::UNKNOWN,
        validation: waterfill_laws::protocol::Validation::Off,
        seed: 0,
    };
    id.params().source(&connection).stamp(&Sending::new(Instant::ZERO, PacketKind::Data, PACKET))
}

/// Two parts of a parcel combine to the original parcel. Only sums over packets are divided.
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

/// A sum of feedback saturates within the field, below the code for a request.
#[test]
fn sums_of_feedback_saturate() {
    let falk = |delta_throughput| AnyHeader::Xcp(xcp::Header::Falk { rtt: 1, x: 1, delta_throughput });
    assert_eq!(falk(i32::MAX - 1).joined(&falk(i32::MAX - 1)), falk(i32::MAX - 1));
    assert_eq!(falk(i32::MIN).joined(&falk(i32::MIN)), falk(i32::MIN));
}

/// Encoding into a buffer writes the same bytes as encoding to a vector, and no other bytes.
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

/// Packets in kernel arithmetic carry a kernel's TCP option, padded to whole words of four bytes.
#[test]
fn headers_in_kernel_arithmetic_are_a_kernels_options() {
    for (name, form) in kernel_protocols() {
        // Kind, length, ExID and type are 5 bytes.
        let [forward, echo] =
            [form.law().forward_bytes(), form.law().echo_bytes()].map(|bytes| (5 + bytes).next_multiple_of(4));
        let mut params = ProtocolId::by_name(name).expect("a protocol").params();
        for word in ["kernel", "kernel-host"] {
            params.set("arithmetic", &Value::Word(word.into())).expect("a word of it");
            assert_eq!((params.header_bytes(), params.echo_bytes()), (forward, echo), "{name}");
        }
        let connection = Connection {
            weight: 1.0,
            packet: PACKET,
            initial_window: 10.0 * PACKET,
            claimed_rtt: None,
            path: waterfill_laws::protocol::PathView::UNKNOWN,
            validation: waterfill_laws::protocol::Validation::Off,
            seed: 0,
        };
        let header = params.source(&connection).stamp(&Sending::new(Instant::ZERO, PacketKind::Data, PACKET));
        let wire = header.encode();
        assert_eq!((wire.len(), header.wire_bytes(), wire[0]), (forward, forward, 253), "{name}");
        assert_eq!(header.decode_alike(&wire), Some(header), "{name}");
        assert_eq!(header.decode_alike(&wire[..forward - 1]), None, "{name}");
        let other = if name == "maxnet" { "rcp" } else { "maxnet" };
        assert_eq!(ProtocolId::by_name(other).and_then(|id| id.decode_header(&wire)), None, "{name}");
        let echo = params.receiver().echo(Instant::ZERO);
        assert_eq!(echo.decode_alike(&echo.encode()), Some(echo), "{name}");
    }
}

/// MaxNet and SCONE refuse links that are faster than the demand function can represent.
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
