//! Options of an endpoint: what `--endpoint FLOW=LIB.so:key=value` sets.

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{AckFrequencyConfig, TransportConfig, VarInt};

use crate::laws::{Law, LawConfig};

/// Names of the options, for messages.
const KEYS: &str = "controller, crypto, mtu, initial_window, receive_window, ack_threshold, max_ack_delay_ms";

/// Congestion controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// quinn's CUBIC, its default.
    Cubic,
    /// quinn's NewReno.
    NewReno,
    /// quinn's BBR.
    Bbr,
    /// A law of Waterfill behind quinn's interface.
    Ours(Law),
}

impl Controller {
    const NAMES: [(&'static str, Self); 5] = [
        ("cubic", Self::Cubic),
        ("newreno", Self::NewReno),
        ("bbr", Self::Bbr),
        ("waterfill-cubic", Self::Ours(Law::Cubic)),
        ("waterfill-reno", Self::Ours(Law::Reno)),
    ];
}

/// Options of an endpoint. Values that are `None` are quinn's defaults.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Congestion controller of the client.
    pub controller: Controller,
    /// True for TLS 1.3, false for packets that are not encrypted.
    pub tls: bool,
    /// Size of the UDP payloads (bytes), without MTU discovery.
    pub mtu: Option<u16>,
    /// Initial window (bytes).
    pub initial_window: Option<u64>,
    /// Flow control of the stream and maximum of unacknowledged data (bytes).
    pub receive_window: Option<u32>,
    /// Packets that may stay without an acknowledgement.
    pub ack_threshold: Option<u32>,
    /// Maximum delay of an acknowledgement.
    pub max_ack_delay: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            controller: Controller::Cubic,
            tls: true,
            mtu: None,
            initial_window: None,
            receive_window: None,
            ack_threshold: None,
            max_ack_delay: None,
        }
    }
}

/// Returns a whole number from `least` on.
fn number<T: std::str::FromStr + PartialOrd + std::fmt::Display>(
    key: &str,
    value: &str,
    least: T,
    most: T,
) -> Result<T, String> {
    let found = value.parse().ok().filter(|found| (&least..=&most).contains(&found));
    found.ok_or_else(|| format!("{key} must be a whole number from {least} to {most}, got {value:?}"))
}

/// Returns the choice with a name.
fn choice<T: Copy>(key: &str, value: &str, known: &[(&str, T)]) -> Result<T, String> {
    let found = known.iter().find(|(name, _)| *name == value);
    found.map(|&(_, found)| found).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|&(name, _)| name).collect();
        format!("unknown {key} {value:?}; use {}", names.join(", "))
    })
}

impl Options {
    /// Sets an option.
    ///
    /// # Errors
    /// One sentence: the option is unknown, or the value is wrong.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "controller" => self.controller = choice(key, value, &Controller::NAMES)?,
            "crypto" => self.tls = choice(key, value, &[("tls", true), ("none", false)])?,
            "mtu" => self.mtu = Some(number(key, value, 1200, waterfill_endpoint::MAX_PAYLOAD as u16)?),
            "initial_window" => self.initial_window = Some(number(key, value, 2400, 1 << 30)?),
            "receive_window" => self.receive_window = Some(number(key, value, 1200, 1 << 30)?),
            "ack_threshold" => self.ack_threshold = Some(number(key, value, 0, 1000)?),
            "max_ack_delay_ms" => {
                self.max_ack_delay = Some(Duration::from_millis(number(key, value, 1, 1000)?));
            }
            _ => return Err(format!("unknown option {key:?}; use {KEYS}")),
        }
        Ok(())
    }

    fn factory(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        macro_rules! quinns {
            ($config:ty) => {{
                let mut config = <$config>::default();
                if let Some(bytes) = self.initial_window {
                    config.initial_window(bytes);
                }
                Arc::new(config)
            }};
        }
        match self.controller {
            Controller::Cubic => quinns!(CubicConfig),
            Controller::NewReno => quinns!(NewRenoConfig),
            Controller::Bbr => quinns!(BbrConfig),
            Controller::Ours(law) => Arc::new(LawConfig { law, initial_window: self.initial_window }),
        }
    }

    /// Returns quinn's configuration of a connection.
    pub fn transport(&self) -> TransportConfig {
        let mut config = TransportConfig::default();
        // Each datagram is asked for by itself.
        config.enable_segmentation_offload(false).congestion_controller_factory(self.factory());
        if let Some(mtu) = self.mtu {
            config.initial_mtu(mtu).min_mtu(mtu).mtu_discovery_config(None);
        }
        if let Some(bytes) = self.receive_window {
            config.stream_receive_window(bytes.into()).send_window(bytes.into());
        }
        if self.ack_threshold.is_some() || self.max_ack_delay.is_some() {
            let mut request = AckFrequencyConfig::default();
            request.max_ack_delay(self.max_ack_delay);
            if let Some(threshold) = self.ack_threshold {
                request.ack_eliciting_threshold(VarInt::from_u32(threshold));
            }
            config.ack_frequency_config(Some(request));
        }
        config
    }
}
