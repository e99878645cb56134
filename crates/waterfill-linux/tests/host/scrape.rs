//! Tests of scrapes, which read sums over connections instead of a list.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use super::{BYTES, End, Network, SERVER, assert_priced, number};

/// Scrapes the metrics at an address and returns the response.
fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    text
}

/// Returns the value of a sample in the metrics.
fn sample(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} is not in:\n{text}")).parse().unwrap()
}

#[test]
fn a_scrape_agrees_with_the_list_of_connections() {
    let Some(network) = Network::new() else { return };
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut daemon = network.daemon(&format!("--no-pin --metrics {address}"));
    network.spaces.use_law();
    network.path("price", &['a', 'b']);
    let mut server = End::start(&network, 'b', "serve", 0, true);
    assert_eq!(server.next(), "listening");
    let mut client = End::start(&network, 'a', SERVER[0], BYTES, true);
    let _ = (client.next(), server.next());
    let (flows, text) = (daemon.flows(), scrape(&address));
    let sender = flows.iter().find(|flow| flow["remote"].as_str().unwrap().ends_with(":7001")).unwrap();
    assert_priced(sender);
    for mode in ["asking", "rising", "priced", "restarting", "receiving", "closing", "fallen back"] {
        let listed = flows.iter().filter(|flow| flow["mode"] == mode).count();
        let name = format!("waterfill_flows{{law=\"maxnet\",mode=\"{mode}\"}}");
        assert_eq!(sample(&text, &name), listed as f64, "{name}: {flows:?}");
    }
    let rate = sample(&text, "waterfill_flows_rate_bytes_per_second{law=\"maxnet\",mode=\"priced\"}");
    assert!((8.0 * rate / number(sender, "rate_bps") - 1.0).abs() < 0.2, "{rate}: {sender}");
    // The price of path.bpf.c never changes, and one connection has all quantiles.
    for at in ["least", "median", "p90", "most"] {
        let price = sample(&text, &format!("waterfill_flows_price_seconds{{at=\"{at}\",law=\"maxnet\"}}"));
        assert_eq!(price, number(sender, "price_s"), "{at}");
    }
    assert_eq!(sample(&text, "waterfill_flows_priced_total{law=\"maxnet\"}"), 1.0);
    client.go_on();
    server.go_on();
}
