//! Application of a flow: messages that become available to the sender at their times.
//!
//! A message begins with a packet of its own and ends with a packet that may be short. Numbers of packets therefore stay
//! positions in the stream, as recovery needs them. On periods, ticks, responses and segments of a video differ only in when
//! the next message is written: the first two by the clock, the others after the client has received the last one.
//!
//! The client's reactions are computed at the sender. An acknowledgement states when it left the receiver, so times at the
//! client are exact; a request arrives with the acknowledgement of what it follows, later by the client's pause.

use std::collections::VecDeque;

use rand_pcg::Pcg64;
use waterfill_laws::units::{Duration, Instant, Rate};
use waterfill_network::ApplicationSpec;
use waterfill_network::distribution::Sampler;
use waterfill_network::random::uniform;
use waterfill_network::summary::PlaybackSummary;

use crate::sender::{PacketSizes, SenderSpec};
use crate::traffic::{CompletionTimes, draw_time};

/// First random stream of applications, beyond the streams of links and traffic.
const STREAMS: u128 = u128::from_be_bytes(*b"\0\0\0\0\0application");

/// Messages of a flow, in the order of its packets.
#[derive(Clone, Debug)]
pub(crate) struct Application {
    sizes: PacketSizes,
    source: MessageSource,
    rng: Pcg64,
    /// Messages that are not acknowledged, oldest first. The last one may lie in the future.
    messages: VecDeque<Message>,
    /// Number of the next message's first packet.
    next_packet: u64,
    /// Messages that are acknowledged, in their order.
    completed: Vec<Completed>,
    /// Completion times of the messages written in the measurement window.
    times: CompletionTimes,
    counted: (Instant, Instant),
    stop: Instant,
}

/// A message: packets from `first` to the one before `end`, of which the last one has `last_bytes`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Message {
    first: u64,
    end: u64,
    last_bytes: u16,
    /// Time at which the first packet is available.
    written: Instant,
    /// Time between two packets; zero if the whole message is available at once.
    spacing: Duration,
}

/// A message that the client has received.
#[derive(Clone, Copy, Debug)]
struct Completed {
    written: Instant,
    bytes: u64,
    received: Instant,
}

/// Rule for the next message.
#[derive(Clone, Debug)]
enum MessageSource {
    /// A packet at each interval of the on periods. `on_total` is the length of all on periods so far, `next_on` the start of
    /// the next one.
    OnOff { interval: Duration, on: Sampler, off: Sampler, on_total: Duration, next_on: Instant },
    /// The next response after the client's pause.
    Responses { sizes: Sampler, think: Option<Sampler> },
    /// The next segment as soon as the client's buffer has space for it.
    Segments { bytes: u64, player: Player },
    /// A message at each interval.
    Ticks { sizes: Sampler, interval: Duration, next: Instant },
}

impl Application {
    /// Creates the application of a flow. Its random stream is the flow's own.
    pub(crate) fn new(spec: &ApplicationSpec, sender: &SenderSpec, seed: u64) -> Self {
        let source = match spec {
            ApplicationSpec::Onoff { rate_bps, on_s, off_s } => MessageSource::OnOff {
                interval: Rate::from_bps(*rate_bps).time_for(u32::from(sender.sizes.packet_bytes())),
                on: on_s.sampler(),
                off: off_s.sampler(),
                on_total: Duration::ZERO,
                next_on: Instant::NEVER,
            },
            ApplicationSpec::RequestResponse { sizes_bytes, think_s } => MessageSource::Responses {
                sizes: sizes_bytes.sampler(),
                think: think_s.as_ref().map(waterfill_network::Distribution::sampler),
            },
            ApplicationSpec::Video { bit_rate_bps, segment_s, buffer_s, startup_segments } => MessageSource::Segments {
                bytes: whole_bytes(bit_rate_bps * segment_s / 8.0),
                player: Player::new(Duration::from_secs(*segment_s), Duration::from_secs(*buffer_s), *startup_segments),
            },
            ApplicationSpec::Ticks { sizes_bytes, interval_s } => MessageSource::Ticks {
                sizes: sizes_bytes.sampler(),
                interval: Duration::from_secs(*interval_s),
                next: Instant::NEVER,
            },
        };
        Self {
            sizes: sender.sizes,
            source,
            rng: Pcg64::new(u128::from(seed), STREAMS + u128::from(sender.flow)),
            messages: VecDeque::new(),
            next_packet: 0,
            completed: Vec::new(),
            times: CompletionTimes::default(),
            counted: sender.measure,
            stop: sender.stop,
        }
    }

    /// Writes the first message when the connection opens.
    pub(crate) fn open(&mut self, now: Instant) {
        match &mut self.source {
            MessageSource::OnOff { next_on: next, .. } | MessageSource::Ticks { next, .. } => *next = now,
            MessageSource::Segments { player, .. } => player.opened = now,
            MessageSource::Responses { .. } => {}
        }
        self.add(now);
    }

    /// Returns the time at which a packet that has not been sent is available; `NEVER` if it follows a message that its
    /// client has not received.
    pub(crate) fn written_at(&self, number: u64) -> Instant {
        match self.messages.back() {
            Some(last) if number < last.end => last.written + last.spacing * number.saturating_sub(last.first),
            _ => Instant::NEVER,
        }
    }

    /// Returns the size of a packet that is not acknowledged, in bytes.
    pub(crate) fn bytes_of(&self, number: u64) -> u16 {
        let at = self.messages.partition_point(|message| message.end <= number);
        match self.messages.get(at) {
            Some(message) if number + 1 == message.end => message.last_bytes,
            _ => self.sizes.packet_bytes(),
        }
    }

    /// Handles the departure of a new packet. After the last one of a message the clock gives the time of the next.
    pub(crate) fn on_sent(&mut self, number: u64) {
        let ended = self.messages.back().is_some_and(|last| number + 1 == last.end);
        if ended && matches!(self.source, MessageSource::OnOff { .. } | MessageSource::Ticks { .. }) {
            self.add(Instant::ZERO);
        }
    }

    /// Handles an acknowledgement of all packets below `una`, which the receiver had at `received`. The client's requests
    /// take as long to the sender as the acknowledgement, so that they arrive at `now` without a pause.
    pub(crate) fn on_acked(&mut self, now: Instant, received: Instant, una: u64) {
        while let Some(message) = self.messages.front().copied().filter(|message| message.end <= una) {
            self.messages.pop_front();
            self.completed.push(Completed { written: message.written, bytes: self.bytes_in(&message), received });
            if self.counted.0 <= message.written && message.written <= self.counted.1 {
                self.times.add(received.since(message.written));
            }
            let pause = match &mut self.source {
                MessageSource::OnOff { .. } | MessageSource::Ticks { .. } => continue,
                MessageSource::Responses { think: None, .. } => Duration::ZERO,
                MessageSource::Responses { think: Some(think), .. } => draw_time(think, &mut self.rng),
                MessageSource::Segments { player, .. } => player.on_segment(received),
            };
            self.add(now + pause);
        }
    }

    /// Adds the next message. `requested` is the time at which its request arrives, for a client that requests.
    fn add(&mut self, requested: Instant) {
        let payload = u64::from(self.sizes.payload(self.sizes.packet_bytes()));
        let (written, bytes, spacing) = match &mut self.source {
            MessageSource::OnOff { interval, on, off, on_total, next_on } => {
                // The clock of the packets stops in off periods, so the mean rate is exact however short the periods are.
                let mut packets = 0;
                let mut written = *next_on;
                while packets == 0 && written < self.stop {
                    let before = on_total.as_ps() / interval.as_ps().max(1);
                    written = *next_on;
                    let on = draw_time(on, &mut self.rng);
                    *on_total += on;
                    packets = on_total.as_ps() / interval.as_ps().max(1) - before;
                    *next_on = written + on + draw_time(off, &mut self.rng);
                }
                (written, packets.max(1) * payload, *interval)
            }
            MessageSource::Responses { sizes, .. } => (requested, drawn_bytes(sizes, &mut self.rng), Duration::ZERO),
            MessageSource::Segments { bytes, .. } => (requested, *bytes, Duration::ZERO),
            MessageSource::Ticks { sizes, interval, next } => {
                let written = *next;
                *next += *interval;
                (written, drawn_bytes(sizes, &mut self.rng), Duration::ZERO)
            }
        };
        let packets = bytes.div_ceil(payload);
        let last_payload = bytes - (packets - 1) * payload;
        let first = self.next_packet;
        self.next_packet += packets;
        let last_bytes = last_payload as u16 + self.sizes.header_bytes();
        self.messages.push_back(Message { first, end: first + packets, last_bytes, written, spacing });
    }

    /// Returns the messages written up to `now` that are not acknowledged, also those that wait behind others.
    fn waiting(&self, now: Instant) -> VecDeque<Message> {
        let until = now.min(self.stop);
        let mut ahead = self.clone();
        if matches!(self.source, MessageSource::OnOff { .. } | MessageSource::Ticks { .. }) {
            while ahead.messages.back().is_some_and(|last| last.written <= until) {
                ahead.add(Instant::ZERO);
            }
        }
        ahead.messages.retain(|message| message.written <= until);
        ahead.messages
    }

    /// Returns the number of messages written up to `now`, also those that wait behind others.
    pub(crate) fn written_by(&self, now: Instant) -> u64 {
        self.completed() + self.waiting(now).len() as u64
    }

    /// Returns the messages written up to `now`, in their order: the time of writing (s), the payload (bytes), and the time
    /// at which the client has received all of it (s). The last one is NaN without an acknowledgement.
    pub(crate) fn rows(&self, now: Instant) -> impl Iterator<Item = [f64; 3]> {
        let done = self
            .completed
            .iter()
            .map(|message| [message.written.as_secs(), message.bytes as f64, message.received.as_secs()]);
        let open = self.waiting(now).into_iter();
        done.chain(open.map(|message| [message.written.as_secs(), self.bytes_in(&message) as f64, f64::NAN]))
    }

    /// Returns the payload of a message in bytes.
    fn bytes_in(&self, message: &Message) -> u64 {
        let full = u64::from(self.sizes.payload(self.sizes.packet_bytes()));
        (message.end - 1 - message.first) * full + u64::from(message.last_bytes - self.sizes.header_bytes())
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.messages.capacity() * size_of::<Message>()
            + self.completed.capacity() * size_of::<Completed>()
    }

    pub(crate) fn completed(&self) -> u64 {
        self.completed.len() as u64
    }

    /// Returns the completion times of the messages written in the measurement window.
    pub(crate) const fn times(&self) -> &CompletionTimes {
        &self.times
    }

    /// Returns the playback of a video up to `now`.
    pub(crate) fn playback(&self, now: Instant) -> Option<PlaybackSummary> {
        let MessageSource::Segments { player, .. } = &self.source else { return None };
        Some(player.summary(now))
    }
}

/// Returns a size in whole bytes, at least one.
fn whole_bytes(bytes: f64) -> u64 {
    bytes.round().max(1.0) as u64
}

fn drawn_bytes(from: &Sampler, rng: &mut Pcg64) -> u64 {
    whole_bytes(from.quantile(uniform(rng)))
}

/// Client of a video. It plays at the speed of the video and pauses while its buffer is empty.
#[derive(Clone, Debug)]
struct Player {
    segment: Duration,
    buffer: Duration,
    startup: Duration,
    opened: Instant,
    /// Length of the video received.
    received: Duration,
    /// Time at which playback would have begun to be where it is now without a stall; `None` before it begins.
    origin: Option<Instant>,
    startup_took: Option<Duration>,
    stalls: u64,
    stalled: Duration,
}

impl Player {
    fn new(segment: Duration, buffer: Duration, startup_segments: u32) -> Self {
        Self {
            segment,
            buffer,
            startup: segment * u64::from(startup_segments),
            opened: Instant::ZERO,
            received: Duration::ZERO,
            origin: None,
            startup_took: None,
            stalls: 0,
            stalled: Duration::ZERO,
        }
    }

    /// Handles the arrival of a segment. Returns the pause until the buffer has space for another one.
    fn on_segment(&mut self, now: Instant) -> Duration {
        let stall = self.stall_until(now);
        if !stall.is_zero() {
            self.stalls += 1;
            self.stalled += stall;
            self.origin = self.origin.map(|origin| origin + stall);
        }
        self.received += self.segment;
        if self.origin.is_none() && self.received >= self.startup {
            self.origin = Some(now);
            self.startup_took = Some(now.since(self.opened));
        }
        let level = self.received - self.played_until(now);
        (level + self.segment) - self.buffer
    }

    /// Returns the length of the stall in progress at `now`.
    fn stall_until(&self, now: Instant) -> Duration {
        self.origin.map_or(Duration::ZERO, |origin| now.since(origin) - self.received)
    }

    /// Returns the length of the video played up to `now`.
    fn played_until(&self, now: Instant) -> Duration {
        self.origin.map_or(Duration::ZERO, |origin| now.since(origin).min(self.received))
    }

    fn summary(&self, now: Instant) -> PlaybackSummary {
        let stall = self.stall_until(now);
        PlaybackSummary {
            startup_s: self.startup_took.map(Duration::as_secs),
            played_s: self.played_until(now).as_secs(),
            stalls: self.stalls + u64::from(!stall.is_zero()),
            stalled_s: (self.stalled + stall).as_secs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::FlowProtocol;
    use crate::sender::FlowIndex;
    use waterfill_laws::registry::ProtocolId;
    use waterfill_laws::units::Volume;
    use waterfill_network::{Distribution, Network};

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn constant(mean: f64) -> Distribution {
        Distribution::Constant { mean }
    }

    /// Returns an application that opens at 1 s, on packets of 1460 bytes of payload.
    fn opened(spec: &ApplicationSpec) -> Application {
        let second = Duration::from_millis(1000);
        let network = Network::builder(second * 100)
            .link("l", Rate::from_bps(1e6), second, Volume::from_bytes(1e4))
            .flow("f", "window", &["l"])
            .with(|network| network.measure_s = [0.0, 100.0])
            .build()
            .expect("valid");
        let law = FlowProtocol { protocol: ProtocolId::Window, params: ProtocolId::Window.params() };
        let sender = SenderSpec::new(&network, &network.flows[0], &law, FlowIndex { flow: 0, index: 0 });
        let mut application = Application::new(spec, &sender, 1);
        application.open(at(1000));
        application
    }

    /// Sends and acknowledges the packets from `first` up to `end`, all at one time.
    fn carry(application: &mut Application, packets: std::ops::Range<u64>, now: Instant) {
        packets.clone().for_each(|number| application.on_sent(number));
        application.on_acked(now, now, packets.end);
    }

    #[test]
    fn ticks_come_at_each_interval_also_behind_others() {
        let mut ticks = opened(&ApplicationSpec::Ticks { sizes_bytes: constant(2000.0), interval_s: 0.5 });
        assert_eq!([0, 1, 2].map(|number| ticks.written_at(number)), [at(1000), at(1000), Instant::NEVER]);
        ticks.on_sent(0);
        assert_eq!(ticks.written_at(2), Instant::NEVER, "the first message has a second packet");
        ticks.on_sent(1);
        assert_eq!([2, 3].map(|number| ticks.written_at(number)), [at(1500), at(1500)]);
        assert_eq!([0, 1, 2, 3].map(|number| ticks.bytes_of(number)), [1500, 580, 1500, 580]);
        assert_eq!((ticks.written_by(at(1499)), ticks.written_by(at(1500)), ticks.written_by(at(3600))), (1, 2, 6));
        ticks.on_acked(at(1200), at(1100), 2);
        assert_eq!((ticks.completed(), ticks.times().max_s()), (1, Some(0.1)), "when the receiver has it");
        let rows: Vec<_> = ticks.rows(at(2000)).collect();
        assert_eq!(rows[0], [1.0, 2000.0, 1.1]);
        assert_eq!(rows[1..].iter().map(|row| row[..2].to_vec()).collect::<Vec<_>>(), [[1.5, 2000.0], [2.0, 2000.0]]);
        assert!(rows[1..].iter().all(|row| row[2].is_nan()), "one is not acknowledged, one waits behind it");
    }

    #[test]
    fn the_next_response_follows_the_last_after_a_pause() {
        let think_s = Some(constant(0.25));
        let mut responses = opened(&ApplicationSpec::RequestResponse { sizes_bytes: constant(1460.0), think_s });
        assert_eq!((responses.written_at(0), responses.bytes_of(0)), (at(1000), 1500));
        responses.on_sent(0);
        assert_eq!(responses.written_at(1), Instant::NEVER, "the client waits for the first");
        responses.on_acked(at(1080), at(1040), 1);
        assert_eq!(responses.written_at(1), at(1080 + 250));
        assert_eq!((responses.written_by(at(1329)), responses.written_by(at(1330))), (1, 2));
    }

    /// Packets of 1500 bytes at 1.2 Mbit/s take 10 ms. Periods of 25 ms have two and three in turn.
    #[test]
    fn on_periods_have_their_rate_exactly() {
        let mut bursts =
            opened(&ApplicationSpec::Onoff { rate_bps: 1.2e6, on_s: constant(0.025), off_s: constant(0.975) });
        assert_eq!([0, 1, 2].map(|number| bursts.written_at(number)), [at(1000), at(1010), Instant::NEVER]);
        carry(&mut bursts, 0..2, at(1050));
        assert_eq!([2, 3, 4].map(|number| bursts.written_at(number)), [at(2000), at(2010), at(2020)]);
        carry(&mut bursts, 2..5, at(2050));
        assert_eq!((bursts.completed(), bursts.written_at(5)), (2, at(3000)));
    }

    /// Segments of 4 s, at once in playback, in a buffer of 10 s: two are requested at once, the third when 6 s are left.
    #[test]
    fn a_video_is_requested_into_its_buffer_and_stalls_without_data() {
        let video =
            ApplicationSpec::Video { bit_rate_bps: 8.0 * 365.0, segment_s: 4.0, buffer_s: 10.0, startup_segments: 1 };
        let mut video = opened(&video);
        assert_eq!((video.bytes_of(0), video.written_at(1)), (1500, Instant::NEVER), "one packet");
        carry(&mut video, 0..1, at(2000));
        assert_eq!(video.written_at(1), at(2000), "the buffer has 4 of 10 s");
        carry(&mut video, 1..2, at(2500));
        assert_eq!(video.written_at(2), at(4000), "7.5 s, and at 4 s only 6");
        let before = video.playback(at(10_000)).expect("a video");
        assert_eq!((before.startup_s, before.played_s, before.stalls, before.stalled_s), (Some(1.0), 8.0, 0, 0.0));
        let stalled = video.playback(at(10_500)).expect("a video");
        assert_eq!((stalled.played_s, stalled.stalls, stalled.stalled_s), (8.0, 1, 0.5));
        carry(&mut video, 2..3, at(11_000));
        let after = video.playback(at(12_000)).expect("a video");
        assert_eq!((after.played_s, after.stalls, after.stalled_s), (9.0, 1, 1.0));
    }
}
