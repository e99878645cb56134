//! Captures of packets that a test creates, and the fields that tshark decodes from them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, id};
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Returns the path of the dissector script.
pub(crate) fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/wireshark/waterfill.lua")
}

/// Names of the fields that tshark prints for each packet. Several values of one field are joined by `|`.
const FIELDS: [&str; 33] = [
    "_ws.expert.message",
    "waterfill.law",
    "waterfill.role",
    "waterfill.written",
    "waterfill.echo.written",
    "waterfill.price",
    "waterfill.demand",
    "waterfill.start_rate",
    "waterfill.packet_rate",
    "waterfill.rate",
    "waterfill.rtt",
    "waterfill.load",
    "waterfill.share",
    "waterfill.target",
    "waterfill.weight",
    "waterfill.hops",
    "waterfill.bottleneck",
    "waterfill.next_bottleneck",
    "waterfill.feedback",
    "waterfill.echo.price",
    "waterfill.echo.demand",
    "waterfill.echo.start_rate",
    "waterfill.echo.packet_rate",
    "waterfill.echo.rate",
    "waterfill.echo.load",
    "waterfill.echo.share",
    "waterfill.echo.target",
    "waterfill.echo.bottleneck",
    "waterfill.echo.next_bottleneck",
    "waterfill.echo.total",
    "tcp.len",
    "tcp.flags.syn",
    "_ws.col.Info",
];

/// Returns a tshark command that loads the dissector. Without tshark, prints the reason and returns `None`.
pub(crate) fn tshark() -> Option<Command> {
    let version = Command::new("tshark").arg("--version").output();
    let has_lua = version.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("with Lua"));
    if !has_lua {
        eprintln!("skipped: needs tshark with Lua (Debian: apt install tshark)");
        return None;
    }
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-X").arg(format!("lua_script:{}", script().display()));
    Some(command)
}

/// Field values of a packet that tshark has decoded.
#[derive(Debug)]
pub(crate) struct Decoded(Vec<String>);

impl Decoded {
    /// Returns a field as text, or `None` if the packet does not have the field.
    pub(crate) fn word(&self, field: &str) -> Option<&str> {
        let place = FIELDS.iter().position(|&known| known == field).expect("a field of the list");
        Some(self.0[place].as_str()).filter(|word| !word.is_empty())
    }

    /// Returns a field that occurs once as a number, or `None` if the packet does not have the field.
    pub(crate) fn number(&self, field: &str) -> Option<f64> {
        let word = self.word(field)?;
        Some(word.parse().unwrap_or_else(|_| panic!("{field} is {word}")))
    }

    /// Returns true if one of a field's values has this name.
    pub(crate) fn contains(&self, field: &str, name: &str) -> bool {
        let names: &[&str] = match field {
            "waterfill.law" => &["maxnet", "maxnet2006", "aecp", "rcp", "vcp", "xcp", "pxcp", "ixcp", "jetmax"],
            "waterfill.role" => &["", "forward", "echo", "both"],
            _ => &[],
        };
        let number = names.iter().position(|&known| known == name).expect("a known name").to_string();
        self.word(field).is_some_and(|words| words.split('|').any(|word| word == number))
    }
}

/// Decodes the packets of a capture file that a filter selects. Returns `None` without tshark.
pub(crate) fn decode(file: &Path, filter: &str) -> Option<Vec<Decoded>> {
    let mut command = tshark()?;
    command.arg("-r").arg(file).args(["-Y", filter, "-T", "fields", "-E", "separator=/t", "-E", "aggregator=|"]);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let out = command.output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && !errors.contains("Lua"), "{errors}");
    let text = String::from_utf8(out.stdout).unwrap();
    Some(text.lines().map(|line| Decoded(line.split('\t').map(str::to_owned).collect())).collect())
}

/// Capture of packets that a test creates, each with one TCP segment.
#[derive(Debug, Default)]
pub(crate) struct Capture(Vec<Vec<u8>>);

impl Capture {
    /// Adds a segment with these options.
    pub(crate) fn add(&mut self, options: &[u8]) {
        self.add_segment(options, 0x10);
    }

    /// Adds a SYN with these options.
    pub(crate) fn add_syn(&mut self, options: &[u8]) {
        self.add_segment(options, 0x02);
    }

    fn add_segment(&mut self, options: &[u8], flags: u8) {
        let mut options = options.to_vec();
        options.resize(options.len().next_multiple_of(4), 0);
        // Ports of its own keep TCP's analysis from comparing it with the others.
        let port = 1024 + self.0.len() as u16;
        let length = 40 + options.len() as u16;
        let mut packet = vec![0x45, 0];
        packet.extend(length.to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        packet.extend(port.to_be_bytes());
        packet.extend(5001_u16.to_be_bytes());
        packet.extend([0, 0, 0, 1, 0, 0, 0, 0, ((20 + options.len()) as u8 / 4) << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend(options);
        self.0.push(packet);
    }

    /// Returns the fields that tshark decodes from each packet, or `None` without tshark.
    pub(crate) fn decoded(&self) -> Option<Vec<Decoded>> {
        let mut bytes = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 101] {
            bytes.extend(word.to_le_bytes());
        }
        for packet in &self.0 {
            let length = packet.len() as u32;
            for word in [0, 0, length, length] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(packet);
        }
        let file =
            std::env::temp_dir().join(format!("wf-dissector-{}-{}.pcap", id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        fs::write(&file, bytes).unwrap();
        let decoded = decode(&file, "tcp");
        fs::remove_file(&file).unwrap();
        assert!(decoded.as_ref().is_none_or(|decoded| decoded.len() == self.0.len()));
        decoded
    }
}
