//! A connection of quinn-proto as an endpoint.

use std::collections::VecDeque;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent, Dir, EcnCodepoint,
    EndpointConfig, Event, Incoming, ServerConfig, StreamEvent, StreamId, TimeSource,
};
use ring::{hkdf, hmac};
use waterfill_endpoint::{Datagram, Ecn, Endpoint, Side, Time};

use crate::null::Null;
use crate::options::Options;
use crate::random::{Random, with_system_seed};
use crate::tls;

/// Size of connection IDs (bytes), as by quinn's default.
const ID_BYTES: usize = 8;
/// Bytes that are written to the stream at once.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Streams of random numbers of one side.
#[derive(Clone, Copy)]
enum Stream {
    Endpoint = 2,
    Ids = 3,
    Keys = 4,
    Crypto = 5,
}

/// Connection IDs by seed.
#[derive(Clone)]
struct Ids(Arc<Mutex<Random>>);

impl Ids {
    fn next(&self) -> ConnectionId {
        let mut random = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ConnectionId::new(&random.array::<ID_BYTES>())
    }
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        self.next()
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// A clock that stands still, for the lifetime of tokens.
struct Still;

impl TimeSource for Still {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// One side of a connection.
pub struct QuinnEndpoint {
    side: Side,
    seed: u64,
    options: Options,
    /// Time zero. Only differences of times matter to quinn.
    epoch: Instant,
    endpoint: Option<quinn_proto::Endpoint>,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    /// Bytes that the application has not written to the stream yet; `u64::MAX` without end.
    unwritten: u64,
    /// Bytes that the application has read and not reported.
    read: u64,
    /// Datagrams that the endpoint sends outside a connection.
    responses: VecDeque<Vec<u8>>,
    timer: Option<Time>,
}

impl fmt::Debug for QuinnEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuinnEndpoint")
            .field("side", &self.side)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl QuinnEndpoint {
    /// Creates an endpoint that is not started.
    #[must_use]
    pub fn new(side: Side, seed: u64) -> Self {
        Self {
            side,
            seed,
            options: Options::default(),
            epoch: Instant::now(),
            endpoint: None,
            connection: None,
            stream: None,
            unwritten: 0,
            read: 0,
            responses: VecDeque::new(),
            timer: None,
        }
    }

    fn random(&self, stream: Stream) -> Random {
        Random::new(self.seed, stream as u64)
    }

    fn at(&self, now: Time) -> Instant {
        self.epoch + Duration::from_nanos(now.as_nanos())
    }

    fn server_config(&self) -> ServerConfig {
        let mut keys = self.random(Stream::Keys);
        let token_key = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(&keys.array::<64>());
        let crypto: Arc<dyn quinn_proto::crypto::ServerConfig> =
            if self.options.tls { tls::server(self.random(Stream::Crypto)) } else { Arc::new(Null) };
        let mut config = ServerConfig::new(crypto, Arc::new(token_key));
        config.transport_config(Arc::new(self.options.transport())).time_source(Arc::new(Still));
        config
    }

    fn client_config(&self, ids: Ids) -> ClientConfig {
        let crypto: Arc<dyn quinn_proto::crypto::ClientConfig> =
            if self.options.tls { tls::client(self.random(Stream::Crypto)) } else { Arc::new(Null) };
        let mut config = ClientConfig::new(crypto);
        config
            .transport_config(Arc::new(self.options.transport()))
            .initial_dst_cid_provider(Arc::new(move || ids.next()));
        config
    }

    fn accept(&mut self, now: Instant, incoming: Incoming) {
        let seed = self.seed;
        let Some(endpoint) = &mut self.endpoint else { return };
        let mut response = Vec::new();
        // An error of type AcceptError is large.
        let accepted = with_system_seed(seed, || endpoint.accept(incoming, now, &mut response, None).map_err(Box::new));
        match accepted {
            Ok(accepted) => self.connection = Some(accepted),
            Err(error) if error.response.is_some() => self.responses.push_back(response),
            Err(_) => {}
        }
    }

    /// Passes events between quinn's parts and to the application until there are none.
    fn settle(&mut self) {
        let (Some(endpoint), Some((handle, connection))) = (&mut self.endpoint, &mut self.connection) else { return };
        loop {
            let mut is_idle = true;
            while let Some(event) = connection.poll_endpoint_events() {
                is_idle = false;
                if let Some(event) = endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            while let Some(event) = connection.poll() {
                is_idle = false;
                match event {
                    Event::Connected if self.side == Side::Client => self.stream = connection.streams().open(Dir::Uni),
                    Event::Stream(StreamEvent::Opened { dir }) => {
                        while let Some(id) = connection.streams().accept(dir) {
                            self.read += read(connection, id);
                        }
                    }
                    Event::Stream(StreamEvent::Readable { id }) => self.read += read(connection, id),
                    _ => {}
                }
            }
            if is_idle {
                break;
            }
        }
        if let Some(id) = self.stream.filter(|_| self.unwritten > 0) {
            self.unwritten = write(connection, id, self.unwritten);
        }
    }
}

/// Reads a stream in order and returns the number of bytes.
fn read(connection: &mut Connection, id: StreamId) -> u64 {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return 0 };
    let mut bytes = 0;
    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
        bytes += chunk.bytes.len() as u64;
    }
    // Whether a window update is due, which `poll_transmit` finds by itself.
    let _ = chunks.finalize();
    bytes
}

/// Writes to a stream until it is full or `bytes` are written, and ends it then. Returns the bytes that are left.
fn write(connection: &mut Connection, id: StreamId, mut bytes: u64) -> u64 {
    let mut stream = connection.send_stream(id);
    while bytes > 0 {
        let size = ZEROS.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
        let Ok(written) = stream.write_chunks(&mut [Bytes::from_static(&ZEROS[..size])]) else { return bytes };
        if bytes != u64::MAX {
            bytes -= written.bytes as u64;
        }
    }
    // It fails only for a stream that the peer has stopped, which the server never does.
    let _ = stream.finish();
    bytes
}

impl Endpoint for QuinnEndpoint {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        self.options.set(key, value)
    }

    fn start(&mut self, now: Time) {
        let ids = Ids(Arc::new(Mutex::new(self.random(Stream::Ids))));
        let mut config =
            EndpointConfig::new(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &self.random(Stream::Keys).array::<64>())));
        let generator = ids.clone();
        config.rng_seed(Some(self.random(Stream::Endpoint).array())).cid_generator(move || Box::new(generator.clone()));
        if let Some(mtu) = self.options.mtu {
            config.max_udp_payload_size(mtu).expect("options bound it");
        }
        let server = (self.side == Side::Server).then(|| Arc::new(self.server_config()));
        let mut endpoint = quinn_proto::Endpoint::new(Arc::new(config), server, true, None);
        if self.side == Side::Client {
            let (at, config) = (self.at(now), self.client_config(ids));
            let connected = with_system_seed(self.seed, || endpoint.connect(at, config, address(), tls::SERVER));
            self.connection = Some(connected.expect("a valid name and version"));
        }
        self.endpoint = Some(endpoint);
    }

    fn write(&mut self, _now: Time, bytes: u64) {
        self.unwritten = self.unwritten.saturating_add(bytes);
        self.settle();
    }

    fn read(&mut self, _now: Time) -> u64 {
        std::mem::take(&mut self.read)
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        let at = self.at(now);
        if let Some(payload) = self.responses.pop_front() {
            return Some(Datagram { ecn: Ecn::NotEct, payload });
        }
        let (_, connection) = self.connection.as_mut()?;
        while connection.poll_timeout().is_some_and(|due| due <= at) {
            connection.handle_timeout(at);
        }
        self.settle();
        let (_, connection) = self.connection.as_mut()?;
        let mut payload = Vec::with_capacity(usize::from(connection.current_mtu()));
        let transmit = connection.poll_transmit(at, 1, &mut payload);
        let due = connection.poll_timeout();
        self.timer = due.map(|due| Time(due.saturating_duration_since(self.epoch).as_nanos() as u64));
        let ecn = match transmit?.ecn {
            None => Ecn::NotEct,
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::Ce,
        };
        Some(Datagram { ecn, payload })
    }

    fn handle(&mut self, now: Time, datagram: &Datagram) {
        let at = self.at(now);
        let Some(endpoint) = &mut self.endpoint else { return };
        let ecn = match datagram.ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(EcnCodepoint::Ect0),
            Ecn::Ect1 => Some(EcnCodepoint::Ect1),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        };
        let mut response = Vec::new();
        let data = BytesMut::from(&*datagram.payload);
        match endpoint.handle(at, address(), None, ecn, data, &mut response) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            // A second first packet belongs to the connection that exists.
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => self.accept(at, incoming),
            Some(DatagramEvent::NewConnection(incoming)) => endpoint.ignore(incoming),
            Some(DatagramEvent::Response(_)) => self.responses.push_back(response),
            None => {}
        }
        self.settle();
    }

    fn next_timer(&self) -> Option<Time> {
        self.timer
    }
}

/// Address of the peer, which is all that there is.
fn address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 4433).into()
}
