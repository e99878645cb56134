//! A session without encryption, whose packets have the sizes of those with TLS.
//!
//! The handshake has the flights of TLS 1.3: a hello of the client, a hello and a second message of the server, and a message
//! by which the client finishes. Messages are a length of two bytes and a content, which is the transport parameters, padded to
//! about the size of TLS. Tags and header protection have their sizes but change nothing.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

/// Sizes of the messages without transport parameters, about those of TLS 1.3 with X25519 and a key of Ed25519.
const CLIENT_HELLO: usize = 180;
const SERVER_HELLO: usize = 90;
const SERVER_FLIGHT: usize = 220;
const FINISHED: usize = 36;
/// Size of a tag of AES-GCM, and of the sample for header protection.
const TAG: usize = 16;

/// Configuration of both sides.
#[derive(Debug)]
pub(crate) struct Null;

/// Steps of a session. A side leaves each by a message that it writes or reads, and `Keys` when its keys are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Start,
    Hello,
    Keys,
    Flight,
    Finish,
    Done,
}

#[derive(Debug)]
struct NullSession {
    side: Side,
    step: Step,
    /// Transport parameters as sent.
    own: Vec<u8>,
    peer: Option<TransportParameters>,
    /// Bytes of messages that are not complete.
    read: Vec<u8>,
}

#[derive(Debug)]
struct NullKey;

impl PacketKey for NullKey {
    fn encrypt(&self, _packet: u64, _buf: &mut [u8], _header_len: usize) {}

    fn decrypt(&self, _packet: u64, _header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let size = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        payload.truncate(size);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for NullKey {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

fn pair() -> KeyPair<Box<dyn PacketKey>> {
    KeyPair { local: Box::new(NullKey), remote: Box::new(NullKey) }
}

fn keys() -> Keys {
    Keys { header: KeyPair { local: Box::new(NullKey), remote: Box::new(NullKey) }, packet: pair() }
}

fn session(side: Side, params: &TransportParameters) -> Box<dyn Session> {
    let mut own = Vec::new();
    params.write(&mut own);
    Box::new(NullSession { side, step: Step::Start, own, peer: None, read: Vec::new() })
}

impl ClientConfig for Null {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(session(Side::Client, params))
    }
}

impl ServerConfig for Null {
    fn initial_keys(&self, _version: u32, _dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: &ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(self: Arc<Self>, _version: u32, params: &TransportParameters) -> Box<dyn Session> {
        session(Side::Server, params)
    }
}

/// Writes a message: its length, the length of its parameters, these, and a padding.
fn write(buf: &mut Vec<u8>, params: &[u8], padding: usize) {
    let size = 2 + params.len() + padding;
    buf.extend_from_slice(&(size as u16).to_be_bytes());
    buf.extend_from_slice(&(params.len() as u16).to_be_bytes());
    buf.extend_from_slice(params);
    buf.resize(buf.len() + padding, 0);
}

impl NullSession {
    /// Takes a complete message out of the bytes read, and returns its parameters.
    fn message(&mut self) -> Option<Vec<u8>> {
        let number = |at: usize| Some(usize::from(u16::from_be_bytes([*self.read.get(at)?, *self.read.get(at + 1)?])));
        let (size, params) = (number(0)?, number(2)?);
        let found = self.read.get(2..2 + size)?.get(2..2 + params)?.to_vec();
        self.read.drain(..2 + size);
        Some(found)
    }
}

impl Session for NullSession {
    fn initial_keys(&self, _dst_cid: &ConnectionId, _side: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.step != Step::Done
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.read.extend_from_slice(buf);
        while let Some(params) = self.message() {
            if !params.is_empty() {
                self.peer = Some(TransportParameters::read(self.side, &mut params.as_slice())?);
            }
            self.step = match (self.side, self.step) {
                (Side::Client, Step::Hello) => Step::Keys,
                (Side::Client, Step::Flight) => Step::Finish,
                (Side::Server, Step::Start) => Step::Hello,
                (Side::Server, Step::Finish) => Step::Done,
                (_, step) => step,
            };
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let empty: &[u8] = &[];
        let (params, padding, next) = match (self.side, self.step) {
            (Side::Client, Step::Start) => (&*self.own, CLIENT_HELLO, Step::Hello),
            (Side::Client, Step::Keys) => {
                self.step = Step::Flight;
                return Some(keys());
            }
            (Side::Client, Step::Finish) => (empty, FINISHED, Step::Done),
            (Side::Server, Step::Hello) => (empty, SERVER_HELLO, Step::Flight),
            (Side::Server, Step::Flight) => (&*self.own, SERVER_FLIGHT, Step::Finish),
            _ => return None,
        };
        write(buf, params, padding);
        self.step = next;
        (next != Step::Hello).then(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(pair())
    }

    fn is_valid_retry(&self, _orig_dst_cid: &ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
