//! Tests of a run from its request to encoded results, through the functions that a page calls as well.

use serde_json::{Value, json};
use waterfill_wasm::{exports, finish};

fn link(name: &str) -> Value {
    json!({
        "name": name, "rate_bps": 1e7, "delay_s": 0.005, "buffer": {"unit": "bytes", "size": 12500},
        "queue": {"kind": "droptail", "mark_at": null}, "loss": 0.0, "duplicate": 0.0,
    })
}

/// Returns a request for 1 s of two MaxNet flows on one link.
fn request(backend: &str) -> Value {
    let flow = json!({
        "name": "f", "count": 2, "protocol": "maxnet", "forward": [0], "reverse": [1], "start_s": 0.0, "stagger_s": 0.0,
        "start_jitter_s": [], "stop_s": 1.0, "pad_s": 0.0, "pad_jitter_s": [], "base_rtt_s": 0.01, "weight": 1.0,
        "initial_window_packets": 10, "delayed_ack": false,
    });
    json!({
        "backend": backend,
        "network": {
            "name": "tiny", "seed": 1, "duration_s": 1.0, "measure_s": [0.5, 1.0], "sample_s": 0.1, "packet_bytes": 1500,
            "ack_bytes": 40, "rto_min_s": 1.0, "syn_rto_s": 1.0, "rttvar_min_s": 0.2, "params": {}, "links": [link("l"), link("l:rev")],
            "flows": [flow], "traffic": [],
        },
    })
}

fn refusal(request: &Value) -> String {
    finish(request.to_string().as_bytes()).unwrap_err()
}

/// Splits encoded results into the header and the numbers of all columns.
fn decode(bytes: &[u8]) -> (Value, Vec<f64>) {
    let (length, rest) = bytes.split_first_chunk().unwrap();
    let (header, columns) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let numbers = columns.chunks_exact(8).map(|chunk| f64::from_le_bytes(chunk.try_into().unwrap()));
    (serde_json::from_slice(header).unwrap(), numbers.collect())
}

#[test]
fn results_hold_the_summary_and_every_column() {
    for (backend, tables) in [("sim", 4), ("fluid", 3)] {
        let finished = finish(request(backend).to_string().as_bytes()).unwrap();
        let bytes = finished.encode().unwrap();
        assert_eq!(bytes.len() % 8, 0);
        let (header, numbers) = decode(&bytes);
        assert_eq!(header["digest"], finished.digest().unwrap());
        assert_eq!(header["summary"]["flows"][1]["name"], "f[1]");
        let described = header["tables"].as_array().unwrap();
        assert_eq!(described.len(), tables);
        let sizes =
            described.iter().map(|t| t["rows"].as_u64().unwrap() * t["columns"].as_array().unwrap().len() as u64);
        assert_eq!(sizes.sum::<u64>(), numbers.len() as u64);
        // Ten samples of two flows: the first column is the time, the second the flow.
        assert_eq!(described[0]["rows"], 20);
        assert_eq!(described[0]["columns"][1], json!({"name": "flow", "type": "u32"}));
        assert_eq!(numbers[20..24], [0.0, 1.0, 0.0, 1.0]);
    }
}

#[test]
fn a_number_of_events_ends_a_run() {
    let mut request = request("sim");
    request["events"] = json!(100);
    let (header, _) = decode(&finish(request.to_string().as_bytes()).unwrap().encode().unwrap());
    assert_eq!(header["summary"]["engine"]["events"], 100);
}

#[test]
fn wrong_requests_are_refused_with_a_sentence() {
    let with = |key: &str, value: Value| {
        let mut request = request("sim");
        request[key] = value;
        refusal(&request)
    };
    assert!(refusal(&json!({})).starts_with("the request cannot be read: missing field"));
    assert!(with("steps", json!(1)).contains("unknown field `steps`"));
    assert!(with("backend", json!("linux")).contains("unknown variant `linux`"));
    assert_eq!(with("step_s", json!(0.1)), "step_s: only the fluid model has a time step, got \"backend\": \"sim\"");
    let mut request = request("sim");
    request["network"]["links"][0]["loss"] = json!(2);
    assert!(refusal(&request).starts_with("link.l.loss: must be"));
}

#[test]
#[expect(unsafe_code, reason = "a page writes and reads at addresses, too")]
fn a_page_gets_what_finish_returns() {
    let run = |request: &[u8]| {
        let input = exports::waterfill_input(request.len());
        // SAFETY: `waterfill_input` has returned the address of so many bytes, and nothing else uses them now.
        unsafe { std::ptr::copy_nonoverlapping(request.as_ptr(), input, request.len()) };
        let succeeded = exports::waterfill_run();
        let (start, length) = (exports::waterfill_output(), exports::waterfill_output_len());
        // SAFETY: the output has so many bytes at this address until the next run.
        (succeeded, unsafe { std::slice::from_raw_parts(start, length) }.to_vec())
    };
    let request = request("fluid").to_string();
    let wanted = finish(request.as_bytes()).unwrap().encode().unwrap();
    assert_eq!(run(request.as_bytes()), (1, wanted));
    let (succeeded, sentence) = run(b"{}");
    assert_eq!((succeeded, String::from_utf8(sentence).unwrap()), (0, refusal(&json!({}))));
}
