//! The daemon's log: text or JSON on standard error, with a limit on repeated messages.
//!
//! A kind is a place in the program. In an interval each logs a number of messages; the others are counted, and when the
//! interval has ended one line says how many there were. Debug messages are not limited.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::sys::signal::SigSet;
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

use crate::daemon::options::file::{LogFormat, LogOptions};

/// Tracing target of the lines about suppressed messages, which are never suppressed themselves.
const SUPPRESSED: &str = "suppressed";

static LIMIT: Mutex<Option<MessageLimit>> = Mutex::new(None);
static JSON: AtomicBool = AtomicBool::new(false);
static LEVEL: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Starts the log as text, at the level of RUST_LOG or, by default, `info`. Messages are not limited until
/// [`configure`].
pub(crate) fn start() {
    let (filter, handle) = reload::Layer::new(filter("info"));
    let _ = LEVEL.set(handle); // a process starts it once
    let text = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_target(false);
    // The journal has a time of its own.
    let text: Box<dyn Layer<_> + Send + Sync> =
        if std::env::var_os("JOURNAL_STREAM").is_some() { Box::new(text.without_time()) } else { Box::new(text) };
    let json = tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(io::stderr).with_target(false);
    tracing_subscriber::registry().with(filter).with(Output { text, json: Box::new(json) }).init();
    // The verifier's log has many pages, so it is shown at the debug level only.
    libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Debug, |_, text| {
        tracing::debug!("libbpf: {}", text.trim_end());
    })));
}

fn filter(level: &str) -> EnvFilter {
    EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level))
}

/// Sets the log's level, format and limit on repeated messages.
pub(crate) fn configure(config: &LogOptions) -> Result<()> {
    flush();
    if let Some(handle) = LEVEL.get() {
        handle.reload(filter(config.level.name())).context("cannot set the log's level")?;
    }
    JSON.store(config.format == LogFormat::Json, Ordering::Relaxed);
    *LIMIT.lock().unwrap_or_else(PoisonError::into_inner) = Some(MessageLimit::new(config.burst.0, config.interval.0));
    Ok(())
}

/// Logs the number of messages that were suppressed since the last call.
pub(crate) fn flush() {
    let suppressed = LIMIT.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(MessageLimit::take);
    for (n, example) in suppressed.unwrap_or_default() {
        tracing::warn!(target: SUPPRESSED, suppressed = n, "suppressed {n} messages like this one: {example}");
    }
}

/// Log layer that writes events as text or JSON, unless too many have been logged.
struct Output<S> {
    text: Box<dyn Layer<S> + Send + Sync>,
    json: Box<dyn Layer<S> + Send + Sync>,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Output<S> {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if !admit(event) {
            return;
        }
        if JSON.load(Ordering::Relaxed) {
            self.json.on_event(event, context);
        } else {
            self.text.on_event(event, context);
        }
    }
}

/// Returns true if an event is to be written, and counts it as suppressed otherwise.
fn admit(event: &Event<'_>) -> bool {
    let about = event.metadata();
    if *about.level() > Level::INFO || about.target() == SUPPRESSED {
        return true;
    }
    let mut limit = LIMIT.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(limit) = limit.as_mut() else { return true };
    let admitted = limit.admit(about.callsite(), Instant::now(), || {
        let mut message = Message::default();
        event.record(&mut message);
        message.0
    });
    if !admitted && !limit.waits {
        limit.waits = true;
        let interval = limit.interval;
        thread::spawn(move || {
            let _ = SigSet::all().thread_block(); // signals are for the thread that waits for them
            thread::sleep(interval);
            flush();
        });
    }
    admitted
}

/// Limit on the messages that each call site of the program logs in an interval.
struct MessageLimit {
    burst: u32,
    interval: Duration,
    kinds: HashMap<Identifier, MessageKind>,
    /// True if a thread waits to report suppressed messages.
    waits: bool,
}

/// Messages from one call site of the program in the current interval.
struct MessageKind {
    since: Instant,
    logged: u32,
    suppressed: u64,
    /// First message that was suppressed.
    example: String,
}

impl MessageLimit {
    fn new(burst: u32, interval: Duration) -> Self {
        Self { burst, interval, kinds: HashMap::new(), waits: false }
    }

    fn admit(&mut self, kind: Identifier, now: Instant, message: impl FnOnce() -> String) -> bool {
        let new = || MessageKind { since: now, logged: 0, suppressed: 0, example: String::new() };
        let kind = self.kinds.entry(kind).or_insert_with(new);
        if now.saturating_duration_since(kind.since) >= self.interval {
            (kind.since, kind.logged) = (now, 0);
        }
        if kind.logged < self.burst {
            kind.logged += 1;
            return true;
        }
        if kind.suppressed == 0 {
            kind.example = message();
        }
        kind.suppressed += 1;
        false
    }

    /// Returns the number of suppressed messages of each call site that has any, with an example, and resets the
    /// counts.
    fn take(&mut self) -> Vec<(u64, String)> {
        self.waits = false;
        let some = self.kinds.values_mut().filter(|kind| kind.suppressed > 0);
        some.map(|kind| (std::mem::take(&mut kind.suppressed), std::mem::take(&mut kind.example))).collect()
    }
}

/// Text of a log event.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing::Callsite as _;

    use super::*;

    #[test]
    fn a_kind_logs_a_burst_an_interval_and_the_others_are_counted() {
        let [one, other] = [
            tracing::callsite!(name: "one", kind: tracing::metadata::Kind::EVENT, fields: message),
            tracing::callsite!(name: "other", kind: tracing::metadata::Kind::EVENT, fields: message),
        ]
        .map(|callsite| callsite.metadata().callsite());
        let start = Instant::now();
        let mut limit = MessageLimit::new(2, Duration::from_secs(10));
        let mut admit = |kind, s: u64, text: &str| limit.admit(kind, start + Duration::from_secs(s), || text.into());
        assert_eq!([0, 1, 2, 9].map(|s| admit(one.clone(), s, &format!("at {s}"))), [true, true, false, false]);
        assert!(admit(other, 9, ""), "another kind has its own burst");
        assert!(admit(one.clone(), 10, ""), "a new interval");
        assert_eq!(limit.take(), [(2, "at 2".into())]);
        assert_eq!(limit.take(), []);
    }
}
