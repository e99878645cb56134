//! Tests of connections that fell back and ask again whether routers answer.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Daemon, End, Network, SERVER, number};

pub(crate) const REASON: &str = "no router on the path writes a price";

/// Connection over a bottleneck, whose path has no router at first and writes a price after the fallback.
pub(crate) struct Late {
    network: Network,
    daemon: Daemon,
    client: End,
    server: End,
}

impl Late {
    /// Starts the connection, which sends as much as the bottleneck carries in a time, and waits for its fallback.
    pub(crate) fn start(network: Network, daemon: Daemon, mbit: usize, seconds: usize) -> Self {
        let mut late = Self::begin(network, daemon, mbit, seconds);
        late.wait(|flow| flow["fallback_reason"] == REASON);
        late.network.path("price", &['b']);
        late
    }

    /// Starts the connection.
    fn begin(network: Network, daemon: Daemon, mbit: usize, seconds: usize) -> Self {
        network.spaces.use_law();
        let tbf = format!("tc qdisc add dev to-b root tbf rate {mbit}mbit burst 64kb latency 20ms");
        network.spaces.run_in('r', &tbf).unwrap();
        let mut server = End::start(&network, 'b', "serve", 0, true);
        assert_eq!(server.next(), "listening");
        let client = End::start(&network, 'a', SERVER[0], mbit * 125_000 * seconds, true);
        Self { network, daemon, client, server }
    }

    fn new(mbit: usize, seconds: usize) -> Option<Self> {
        let network = Network::new()?;
        let daemon = network.daemon("--no-pin");
        Some(Self::start(network, daemon, mbit, seconds))
    }

    /// Waits until the sender's state is as wanted, for at most five seconds.
    pub(crate) fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        let mut last = Value::Null;
        while begin.elapsed() < Duration::from_secs(5) {
            let flows = self.daemon.flows();
            if let Some(flow) = flows.into_iter().find(|flow| flow["remote"].as_str().unwrap().ends_with(":7001")) {
                if wanted(&flow) {
                    return flow;
                }
                last = flow;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("not seen in five seconds; last: {last}")
    }

    fn returns(&mut self) -> f64 {
        number(&self.daemon.status()["counters"]["returns"], REASON)
    }

    pub(crate) fn end(mut self) {
        let sent = self.client.next();
        self.client.go_on();
        self.server.go_on();
        assert_eq!(self.server.next(), "sent 0 cbf29ce484222325");
        assert_eq!(self.server.next(), sent.replace("sent", "received"));
    }
}

#[test]
fn a_connection_comes_back_when_a_router_answers() {
    let Some(mut late) = Late::new(60, 8) else { return };
    let begin = Instant::now();
    let flow = late.wait(|flow| flow["mode"] == "priced");
    let seconds = begin.elapsed().as_secs_f64();
    assert!((0.5..3.0).contains(&seconds), "back after {seconds} s: {flow}");
    assert_eq!(flow["fallback_reason"], Value::Null, "{flow}");
    assert_eq!(late.returns(), 1.0);
    let counters = &late.daemon.status()["counters"];
    // Both ends run the law, and a return is no new connection.
    assert_eq!(number(counters, "started"), 2.0, "{counters}");
    late.end();
}

#[test]
fn a_connection_does_not_come_back_to_less_than_half_of_its_rate() {
    let Some(mut late) = Late::new(200, 5) else { return };
    late.wait(|flow| late_flags(flow).contains(&"probation"));
    let flow = late.wait(|flow| !late_flags(flow).contains(&"probation"));
    assert_eq!((&flow["mode"], &flow["fallback_reason"]), (&"fallen back".into(), &REASON.into()), "{flow}");
    assert_eq!(late.returns(), 0.0);
    late.end();
}

/// The path's router is missing for a while. Its flows fell back together, so the connection comes back even though it
/// had four times the price's rate meanwhile.
#[test]
fn a_connection_comes_back_to_a_router_that_was_away() {
    let Some(network) = Network::new() else { return };
    let daemon = network.daemon("--no-pin");
    network.path("price", &['b']);
    let mut late = Late::begin(network, daemon, 200, 4);
    late.wait(|flow| flow["mode"] == "priced");
    late.network.path("remove_from_data", &['b']);
    late.wait(|flow| flow["fallback_reason"] == "no echo arrives");
    std::thread::sleep(Duration::from_millis(500));
    late.network.path("price", &['b']);
    late.wait(|flow| flow["mode"] == "priced");
    late.end();
}

fn late_flags(flow: &Value) -> Vec<&str> {
    flow["flags"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}
