//! The block types of pcapng that a capture needs (draft-ietf-opsawg-pcapng): section, interface, names, packet, statistics.
//!
//! Numbers are little-endian. A packet's block is written from borrowed bytes, so nothing is allocated per packet.

use std::io::{self, Write};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const NAMES: u32 = 4;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Link type of packets that begin with an IP header (LINKTYPE_RAW).
const RAW_IP: u32 = 101;

const COMMENT: u16 = 1;
const APPLICATION: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_SPEED: u16 = 8;
const IF_RESOLUTION: u16 = 9;
const ISB_RECEIVED: u16 = 4;
const ISB_DROPPED: u16 = 5;
/// Timestamp resolution: 10⁻⁹ s.
const NANOSECONDS: u8 = 9;
const IPV4_NAME: u16 = 1;

const PADDING: [u8; 3] = [0; 3];

const fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// Returns the length of an option that holds `value` bytes, in bytes.
const fn option_bytes(value: usize) -> usize {
    4 + padded(value)
}

/// Contents of a packet block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Captured<'a> {
    pub(super) interface: u32,
    pub(super) time_ns: u64,
    /// First bytes of the packet, up to the capture's limit.
    pub(super) bytes: &'a [u8],
    /// Length of the packet on the wire, in bytes.
    pub(super) length: u32,
    pub(super) comment: Option<&'static str>,
}

/// A description of one interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interface<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) speed_bps: u64,
    pub(super) snaplen: u32,
}

/// Writer of pcapng blocks that counts the bytes written.
#[derive(Debug)]
pub(super) struct Writer<W> {
    out: W,
    written: u64,
}

impl<W: Write> Writer<W> {
    /// Creates a writer and writes the section header block.
    pub(super) fn new(out: W, application: &str, comment: &str) -> io::Result<Self> {
        let mut writer = Self { out, written: 0 };
        let mut body = Vec::new();
        body.extend(BYTE_ORDER.to_le_bytes());
        body.extend([1, 0, 0, 0]); // version 1.0
        body.extend(u64::MAX.to_le_bytes()); // of unknown length
        push_option(&mut body, COMMENT, comment.as_bytes());
        push_option(&mut body, APPLICATION, application.as_bytes());
        writer.block(SECTION, body)?;
        Ok(writer)
    }

    /// Returns the number of bytes written so far.
    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// Adds an interface. Interfaces are numbered from 0.
    pub(super) fn interface(&mut self, interface: &Interface<'_>) -> io::Result<()> {
        let mut body = Vec::new();
        body.extend(RAW_IP.to_le_bytes());
        body.extend(interface.snaplen.to_le_bytes());
        push_option(&mut body, IF_NAME, interface.name.as_bytes());
        push_option(&mut body, IF_DESCRIPTION, interface.description.as_bytes());
        push_option(&mut body, IF_SPEED, &interface.speed_bps.to_le_bytes());
        push_option(&mut body, IF_RESOLUTION, &[NANOSECONDS]);
        self.block(INTERFACE, body)
    }

    /// Adds a block with names of IPv4 addresses.
    pub(super) fn names(&mut self, names: impl Iterator<Item = (u32, String)>) -> io::Result<()> {
        let mut body = Vec::new();
        for (address, name) in names {
            let record = [&address.to_be_bytes(), name.as_bytes(), &[0]].concat();
            push_field(&mut body, IPV4_NAME, &record);
        }
        body.extend([0; 4]); // the end of records
        self.block(NAMES, body)
    }

    /// Adds a packet block.
    pub(super) fn packet(&mut self, packet: &Captured<'_>) -> io::Result<()> {
        let comment = packet.comment.map_or(0, |comment| option_bytes(comment.len()) + 4);
        let total = (32 + padded(packet.bytes.len()) + comment) as u32;
        let mut head = [0; 28];
        let words = [
            PACKET,
            total,
            packet.interface,
            (packet.time_ns >> 32) as u32,
            packet.time_ns as u32,
            packet.bytes.len() as u32,
            packet.length,
        ];
        for (bytes, word) in head.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        self.out.write_all(&head)?;
        self.padded(packet.bytes)?;
        if let Some(comment) = packet.comment {
            self.out.write_all(&COMMENT.to_le_bytes())?;
            self.out.write_all(&(comment.len() as u16).to_le_bytes())?;
            self.padded(comment.as_bytes())?;
            self.out.write_all(&[0; 4])?; // the end of options
        }
        self.out.write_all(&total.to_le_bytes())?;
        self.written += u64::from(total);
        Ok(())
    }

    /// Adds a block with the statistics of an interface.
    pub(super) fn statistics(
        &mut self,
        interface: u32,
        time_ns: u64,
        received: u64,
        dropped: u64,
        comment: Option<&str>,
    ) -> io::Result<()> {
        let mut body = Vec::new();
        for word in [interface, (time_ns >> 32) as u32, time_ns as u32] {
            body.extend(word.to_le_bytes());
        }
        if let Some(comment) = comment {
            push_field(&mut body, COMMENT, comment.as_bytes());
        }
        push_option(&mut body, ISB_RECEIVED, &received.to_le_bytes());
        push_option(&mut body, ISB_DROPPED, &dropped.to_le_bytes());
        self.block(STATISTICS, body)
    }

    /// Writes the buffer to the file.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn padded(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.out.write_all(&PADDING[..padded(bytes.len()) - bytes.len()])
    }

    /// Writes a block, with an end-of-options marker at the end of its body.
    fn block(&mut self, kind: u32, mut body: Vec<u8>) -> io::Result<()> {
        body.extend([0; 4]);
        let total = (body.len() + 12) as u32;
        for word in [kind, total] {
            self.out.write_all(&word.to_le_bytes())?;
        }
        self.out.write_all(&body)?;
        self.out.write_all(&total.to_le_bytes())?;
        self.written += u64::from(total);
        Ok(())
    }
}

/// Appends a field: its code, its length and the padded value.
fn push_field(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.resize(padded(body.len()), 0);
}

/// Appends an option unless its value is empty.
fn push_option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    if !value.is_empty() {
        push_field(body, code, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the kind and body of each block after checking both of its length fields.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
        let word = |b: &[u8]| u32::from_le_bytes(*b.first_chunk().unwrap());
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let length = word(&bytes[4..]) as usize;
            assert!(length % 4 == 0 && word(&bytes[length - 4..]) as usize == length);
            found.push((word(bytes), &bytes[8..length - 4]));
            bytes = &bytes[length..];
        }
        found
    }

    #[test]
    fn blocks_have_their_lengths_at_both_ends() {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, "app", "a comment").unwrap();
        let interface = Interface { name: "link1", description: "", speed_bps: 10, snaplen: 96 };
        writer.interface(&interface).unwrap();
        writer.names([(0x0a00_0001, "a".to_owned())].into_iter()).unwrap();
        let packet =
            Captured { interface: 0, time_ns: 1 << 33 | 5, bytes: &[1, 2, 3, 4, 5], length: 60, comment: Some("lost") };
        writer.packet(&packet).unwrap();
        writer.packet(&Captured { comment: None, ..packet }).unwrap();
        writer.statistics(0, 7, 2, 1, Some("done")).unwrap();
        let written = writer.written();
        assert_eq!(written, out.len() as u64);
        let blocks = blocks(&out);
        let kinds: Vec<u32> = blocks.iter().map(|block| block.0).collect();
        assert_eq!(kinds, [SECTION, INTERFACE, NAMES, PACKET, PACKET, STATISTICS]);
        // Time in two words, 5 of 60 bytes, padding, then the comment.
        let expected = [[0, 0, 0, 0], [2, 0, 0, 0], [5, 0, 0, 0], [5, 0, 0, 0], [60, 0, 0, 0], [1, 2, 3, 4]];
        assert_eq!(blocks[3].1[..24], *expected.as_flattened());
        assert_eq!(blocks[3].1[24..], [5, 0, 0, 0, 1, 0, 4, 0, b'l', b'o', b's', b't', 0, 0, 0, 0]);
        assert_eq!(blocks[4].1[24..], [5, 0, 0, 0]);
    }
}
