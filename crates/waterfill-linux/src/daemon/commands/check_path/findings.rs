//! Finds devices on the path that strip or drop the option, from the packet counts at both ends.

use serde::Serialize;

use super::Measured;
use super::watch::{Connection, Seen};

/// Result of one check of the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// Name of the check: `syn`, `syn-ack`, `data`, `echo`, `price`, `path` or `connection`.
    pub(super) check: &'static str,
    pub(super) ok: bool,
    pub(super) text: String,
}

fn good(check: &'static str, text: impl Into<String>) -> Finding {
    Finding { check, ok: true, text: text.into() }
}

fn bad(check: &'static str, text: impl Into<String>) -> Finding {
    Finding { check, ok: false, text: text.into() }
}

/// MTU of Ethernet in bytes.
const USUAL_MTU: u32 = 1500;
/// Initial TTLs that operating systems use.
const FIRST_TTLS: [u8; 4] = [32, 64, 128, 255];
/// Minimum number of segments needed to judge rare losses of the option.
const SHARE_SEGMENTS: u32 = 20;

/// Returns the findings about the path, in the order of the checks. Checks of the option end after the first failure.
/// `served` is true if the far end reported its counts.
pub(super) fn find(baseline: &Measured, measured: &Measured, served: bool) -> Vec<Finding> {
    let mut found = path(baseline);
    // A connection that never reached the far end is unknown there; that it is served is known from the baseline.
    // One whose SYN its packet socket missed says nothing.
    let far = measured.far_end.or_else(|| served.then(Connection::default));
    let far = far.filter(|far| measured.error.is_some() || far.forward.syns > 0);
    // The baseline's handshake has the option too, also where an earlier loss kept it from the law's.
    let first = baseline.here.forward.syns_with_option > 0 && measured.here.forward.syns_with_option == 0;
    let handshake = if first { handshake(baseline, baseline.far_end) } else { handshake(measured, far) };
    for check in [handshake, data(measured, far), echo(measured, far), price(measured)] {
        let failed = check.iter().any(|finding| !finding.ok);
        found.extend(check);
        if failed {
            break;
        }
    }
    found
}

fn path(baseline: &Measured) -> Vec<Finding> {
    let mut found = Vec::new();
    let mtu = baseline.info.path_mtu;
    if (1..USUAL_MTU).contains(&mtu) {
        let text = format!(
            "packets of the path have at most {mtu} bytes: a tunnel or PPPoE, inside which routers count load and write nothing"
        );
        found.push(good("path", text));
    }
    let ttl = baseline.far_end.map_or(0, |far| far.forward.ttl);
    if let Some(first) = FIRST_TTLS.iter().find(|&&first| first >= ttl && ttl > 0) {
        let routers = first - ttl;
        let plural = if routers == 1 { "" } else { "s" };
        found.push(good("path", format!("{routers} router{plural} on the way there")));
    }
    found
}

fn handshake(measured: &Measured, far: Option<Connection>) -> Vec<Finding> {
    let here = measured.here;
    if here.forward.syns_with_option == 0 && measured.error.is_none() {
        return vec![bad(
            "syn",
            "this host sends no option there: earlier connections lost it (remembered for up to ten minutes), or `waterfilld host` \
             excludes it by --peers, --cgroup or --netns-cookie",
        )];
    }
    if let Some(error) = &measured.error {
        return vec![bad("connection", format!("no connection with {}: {error}", measured.congestion_control))];
    }
    // The host sends the option with the first SYN only.
    if here.forward.syns > here.forward.syns_with_option && here.reverse.syns_with_option == 0 {
        let text = match far {
            Some(far) if far.forward.syns_with_option > 0 => {
                "the answer to a SYN with the option is dropped on the way back"
            }
            Some(_) => "SYNs with the option are dropped on the way there",
            None => "SYNs with the option are dropped, or their answers",
        };
        return vec![bad("syn", text)];
    }
    if far.is_some_and(|far| far.forward.syns > 0 && far.forward.syns_with_option == 0) {
        return vec![bad("syn", "the option is stripped from SYNs on the way there")];
    }
    if here.reverse.syns_with_option == 0 {
        return vec![match far {
            Some(far) if far.reverse.syns_with_option > 0 => {
                bad("syn-ack", "the option is stripped from SYN-ACKs on the way back")
            }
            Some(_) => {
                let text = "the far end does not answer the option: start `waterfilld host` of this law there; before Linux 6.12 \
                            also restart servers there that listened before it";
                bad("syn-ack", text)
            }
            None => bad(
                "syn-ack",
                "the far end does not answer the option, or the path strips it; `waterfilld check-path --serve` there tells which",
            ),
        }];
    }
    vec![good("syn", "the option passes in SYN and SYN-ACK")]
}

fn data(measured: &Measured, far: Option<Connection>) -> Vec<Finding> {
    let here = measured.here.forward;
    if here.data_with_option == 0 {
        return vec![bad(
            "data",
            "this host sends data without the option: nothing was sent, or no space was left for it",
        )];
    }
    let Some(far) = far.map(|far| far.forward) else {
        return Vec::new(); // seen by the echo alone
    };
    if far.data == 0 {
        return vec![bad("data", "data with the option are dropped on the way there")];
    }
    if far.data_with_option == 0 {
        return vec![bad("data", "the option is stripped from data on the way there")];
    }
    let share = |seen: Seen| f64::from(seen.data_with_option) / f64::from(seen.data.max(1));
    // After a fallback most data have no option here either.
    if far.data >= SHARE_SEGMENTS && share(here) > 0.9 && share(far) < 0.9 * share(here) {
        let text = format!("the option is stripped from {:.0} % of the data", 100.0 * (1.0 - share(far) / share(here)));
        return vec![bad("data", text)];
    }
    vec![good("data", "the option passes with data")]
}

fn echo(measured: &Measured, far: Option<Connection>) -> Vec<Finding> {
    if measured.here.reverse.echoes > 0 {
        return vec![good("echo", "echoes arrive")];
    }
    vec![match far {
        Some(far) if far.reverse.echoes > 0 => bad("echo", "echoes are stripped or dropped on the way back"),
        Some(_) => bad("echo", "the far end sends no echoes"),
        None => bad("echo", "no echo arrives: the option is lost from data, or from acknowledgements"),
    }]
}

fn price(measured: &Measured) -> Vec<Finding> {
    if measured.here.reverse.echoes_written == 0 {
        let text = "no router on the path writes a value: connections fall back; start `waterfilld router` of this law at the \
                    bottleneck";
        return vec![bad("price", text)];
    }
    vec![good("price", "a router on the path writes values")]
}
