//! Tables of the configuration file. Their doc comments are the descriptions in its JSON Schema.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::reading::{OneOrMany, table, word};
use super::values::{Address, Burst, LogInterval};
use super::{CsigOptions, HostOptions, RouterOptions};

/// Default path of the configuration file.
pub(crate) const DEFAULT_FILE: &str = "/etc/waterfill/waterfilld.toml";
/// Default path of the control socket.
pub(crate) const DEFAULT_CONTROL: &str = "/run/waterfill/control.sock";

/// Maximum length of a socket's path in bytes. `sun_path` has 108 bytes, including the final NUL.
const MAX_PATH_BYTES: usize = 107;

/// Configuration of `waterfilld run`: roles, laws and devices to load, and services.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "waterfilld.toml")]
pub(crate) struct File {
    /// Law of this end host, or several laws as [[host]].
    #[serde(default)]
    pub(crate) host: OneOrMany<HostOptions>,
    /// Links of this router: a table for each device and law.
    #[serde(default)]
    pub(crate) router: OneOrMany<RouterOptions>,
    /// Devices of a CSIG domain: a table for each device.
    #[serde(default)]
    pub(crate) csig: OneOrMany<CsigOptions>,
    /// Metrics for Prometheus.
    #[serde(default, deserialize_with = "table")]
    pub(crate) metrics: MetricsOptions,
    /// Logging to standard error.
    #[serde(default, deserialize_with = "table")]
    pub(crate) log: LogOptions,
    /// Location of pinned kernel programs.
    #[serde(default, deserialize_with = "table")]
    pub(crate) pins: PinsOptions,
    /// The socket of `waterfilld reload`.
    #[serde(default, deserialize_with = "table")]
    pub(crate) control: ControlOptions,
}

/// Metrics for Prometheus.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetricsOptions {
    /// Address and port, such as 127.0.0.1:9465. Default: no metrics.
    pub(crate) listen: Option<Address>,
}

/// Logging to standard error.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LogOptions {
    /// Minimum level to log; the environment variable `RUST_LOG` overrides it. Default: info.
    #[serde(deserialize_with = "word")]
    pub(crate) level: LogLevel,
    /// Format of messages: text, or one JSON object per line. Default: text.
    #[serde(deserialize_with = "word")]
    pub(crate) format: LogFormat,
    /// Number of messages of one kind to log per interval; further ones are only counted. Default: 20.
    pub(crate) burst: Burst,
    /// Interval in which `burst` limits messages. Default: 10 s.
    pub(crate) interval: LogInterval,
}

impl Default for LogOptions {
    fn default() -> Self {
        let interval = LogInterval(Duration::from_secs(10));
        Self { level: LogLevel::Info, format: LogFormat::Text, burst: Burst(20), interval }
    }
}

/// The minimum level to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    /// Returns the name of the level.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// The format of log messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Location of pinned kernel programs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PinsOptions {
    /// Directory on a BPF file system. Default: waterfill on the mounted BPF file system.
    pub(crate) directory: Option<PathBuf>,
}

/// The socket of `waterfilld reload`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ControlOptions {
    /// Path of the socket; its directory is created with mode 0700. Default: /run/waterfill/control.sock.
    pub(crate) path: PathBuf,
}

impl Default for ControlOptions {
    fn default() -> Self {
        Self { path: DEFAULT_CONTROL.into() }
    }
}

/// Checks the text of a socket's path, without looking at the file system.
pub(crate) fn check_socket_path(path: &Path) -> Result<(), String> {
    let bytes = path.as_os_str().as_bytes();
    if !path.is_absolute() || path.parent().is_none() {
        return Err("must be the absolute path of a file".into());
    }
    if bytes.contains(&0) {
        return Err("must not contain a NUL character".into());
    }
    if bytes.len() > MAX_PATH_BYTES {
        return Err(format!("must be at most {MAX_PATH_BYTES} bytes long, got {}", bytes.len()));
    }
    Ok(())
}
