//! Targets of the daemon `waterfilld`: its file, its command line, its control socket, its metrics, its maps.

use waterfill_linux::daemon::testing;

/// Checks that a refusal is one sentence.
fn assert_sentence(why: &str) {
    assert!(!why.trim().is_empty() && !why.contains('\n'), "expected one line: {why:?}");
}

/// Parses the bytes as a configuration file.
///
/// # Panics
/// A refusal is not one sentence that begins with the file's name.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match testing::config(&text) {
        Ok(summary) => assert!(!summary.is_empty()),
        Err(why) => {
            assert_sentence(&why);
            assert!(why.starts_with("f.toml"), "{why}");
        }
    }
}

/// Parses the lines as the words of a command line.
///
/// # Panics
/// A refusal is not one sentence with exit code 2.
pub fn arguments(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let words: Vec<&str> = std::iter::once("waterfilld").chain(text.split('\n')).collect();
    match testing::arguments(&words) {
        Ok(()) => {}
        Err((0, help)) => assert!(!help.is_empty()),
        Err((code, why)) => {
            assert_eq!(code, 2, "{why}");
            assert_sentence(&why);
        }
    }
}

/// Sends the bytes to the control socket, and to the server of metrics; reads them as a daemon's answer.
///
/// # Panics
/// An answer has not the form that clients read, or a line other than a request reaches the daemon.
pub fn control(data: &[u8]) {
    // A request has a newline; an answer ends at the first one.
    if let Ok((answer, asked)) = testing::control(data) {
        let answer = String::from_utf8(answer).expect("an answer is text");
        let line = data.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let is_request = matches!(line.trim(), "reload" | "status");
        assert!(asked == 0 || is_request, "{asked} requests of {line:?}");
        if !answer.is_empty() {
            let (code, text) = testing::reply(&answer).expect("an answer that clients read");
            assert!((code == 0) == is_request && !text.is_empty(), "{answer:?} to {line:?}");
        }
    }
    if let Some((code, text)) = testing::reply(&String::from_utf8_lossy(data)) {
        assert!(code != 0 || data.starts_with(b"ok "), "{code}: {text}");
    }
    if let Some((status, body)) = testing::scrape(data) {
        let served = status == "200 OK";
        assert!(served || !body.is_empty(), "{status}");
        assert!(!served || data.starts_with(b"GET /metrics"), "{status}");
    }
}

/// Reads the bytes as the contents of maps, as `status` and the metrics do.
///
/// # Panics
/// A table is wider than a terminal, JSON cannot be parsed, or the metrics have a line that is none.
pub fn state(data: &[u8]) {
    let Ok([narrow, wide, json, metrics]) = testing::state(data) else { return };
    assert!(!wide.is_empty());
    // Addresses and names are never cut.
    let longest = narrow.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(longest <= 200, "{longest} columns: {narrow}");
    serde_json::from_str::<serde_json::Value>(&json).expect("JSON");
    for line in metrics.lines() {
        let number = line.rsplit(' ').next().and_then(|number| number.parse::<f64>().ok());
        assert!(line.starts_with('#') || number.is_some(), "{line}");
    }
}
