//! Target `wire`: the header and the echo of every protocol of the registry.

use waterfill_laws::registry::ProtocolId;

/// Decodes the bytes after the first as the header and the echo of the protocol that the first selects. What decodes must
/// encode to bytes that decode to the same and encode to themselves; too few bytes must be refused.
///
/// # Panics
/// One of these does not hold.
pub fn wire(data: &[u8]) {
    let Some((&which, bytes)) = data.split_first() else { return };
    let id = ProtocolId::ALL[usize::from(which) % ProtocolId::ALL.len()];
    let header = id.decode_header(bytes);
    assert!(header.is_none() || bytes.len() >= id.header_bytes(), "{id:?} decodes a short header");
    if let Some(header) = header {
        let canonical = header.encode();
        assert_eq!(id.decode_header(&canonical), Some(header), "{id:?}: {canonical:02x?}");
    }
    let echo = id.decode_echo(bytes);
    assert!(echo.is_none() || bytes.len() >= id.echo_bytes(), "{id:?} decodes a short echo");
    if let Some(echo) = echo {
        let canonical = echo.encode();
        assert_eq!(id.decode_echo(&canonical), Some(echo), "{id:?}: {canonical:02x?}");
    }
}
