//! TLS 1.3 by rustls that repeats: a key of Ed25519 made from the seed, and seeded random numbers.
//!
//! The key exchange has the messages of X25519 but no secret: the shared secret is the exclusive or of both public keys.
//! Everything else is real: the server signs the handshake, the client verifies it, and packets are encrypted by AES-128-GCM.

use std::sync::{Arc, Mutex, PoisonError};

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::time_provider::TimeProvider;
use rustls::{
    CipherSuite, ClientConfig, DigitallySignedStruct, Error, NamedGroup, ServerConfig, SignatureScheme, version,
};

use crate::random::Random;

/// Name of the server, which nothing resolves.
pub(crate) const SERVER: &str = "server.invalid";
/// A private key of Ed25519 in PKCS #8 (RFC 8410), up to its 32 bytes.
const PKCS8: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// Seeded random numbers of one side.
#[derive(Debug)]
struct Seeded(Mutex<Random>);

impl Seeded {
    fn array(&self) -> [u8; 32] {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).array()
    }
}

impl SecureRandom for Seeded {
    fn fill(&self, buf: &mut [u8]) -> Result<(), GetRandomFailed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fill(buf);
        Ok(())
    }
}

#[derive(Debug)]
struct KeyExchange(&'static Seeded);

struct Started([u8; 32]);

impl SupportedKxGroup for KeyExchange {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Ok(Box::new(Started(self.0.array())))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

impl ActiveKeyExchange for Started {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let secret: Vec<u8> = self.0.iter().zip(peer).map(|(own, peer)| own ^ peer).collect();
        Ok(SharedSecret::from(secret))
    }

    fn pub_key(&self) -> &[u8] {
        &self.0
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

/// A clock that stands still: certificates and tickets do not expire in a simulation.
#[derive(Debug)]
struct Still;

impl TimeProvider for Still {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(std::time::Duration::ZERO))
    }
}

/// Returns the provider of one side. Each side keeps about 100 bytes until the process ends, because rustls takes references
/// without an end.
fn provider(random: Random) -> Arc<CryptoProvider> {
    let seeded: &'static Seeded = Box::leak(Box::new(Seeded(Mutex::new(random))));
    let mut provider = rustls::crypto::ring::default_provider();
    provider.cipher_suites.retain(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
    provider.kx_groups = vec![Box::leak(Box::new(KeyExchange(seeded)))];
    provider.secure_random = seeded;
    Arc::new(provider)
}

/// Verifies the server's signature, and accepts any key.
#[derive(Debug)]
struct AnyKey(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyKey {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("QUIC uses TLS 1.3".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(cert.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// Returns the configuration of a client.
pub(crate) fn client(random: Random) -> Arc<QuicClientConfig> {
    let provider = provider(random);
    let mut config = ClientConfig::builder_with_details(provider.clone(), Arc::new(Still))
        .with_protocol_versions(&[&version::TLS13])
        .expect("the provider has a suite of TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyKey(provider)))
        .with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    Arc::new(config.try_into().expect("the provider has QUIC's suite"))
}

/// Returns the configuration of a server.
pub(crate) fn server(mut random: Random) -> Arc<QuicServerConfig> {
    let key: Vec<u8> = PKCS8.into_iter().chain(random.array::<32>()).collect();
    let provider = provider(random);
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key));
    let key = provider.key_provider.load_private_key(key).expect("a key of Ed25519");
    let public = key.public_key().expect("keys of Ed25519 have one");
    let certified = CertifiedKey::new(vec![CertificateDer::from(public.as_ref().to_vec())], key);
    let mut config = ServerConfig::builder_with_details(provider, Arc::new(Still))
        .with_protocol_versions(&[&version::TLS13])
        .expect("the provider has a suite of TLS 1.3")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::new(certified))));
    config.send_tls13_tickets = 0;
    Arc::new(config.try_into().expect("the provider has QUIC's suite"))
}
