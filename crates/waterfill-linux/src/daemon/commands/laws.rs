//! `waterfilld laws`: lists the laws that this daemon can load, with their parameters.

use anyhow::Result;
use serde::Serialize;

use super::cli::ListCommand;
use super::output;
use super::table::{Align, table};
use crate::daemon::kernel::law::{self, LINK_NAME, LawSignal, LoadableLaw};
use crate::daemon::kernel::laws;

/// Entry of a law in the output of `--json`.
#[derive(Debug, Serialize)]
struct Entry {
    name: &'static str,
    congestion_control: String,
    parameters: Vec<ParameterEntry>,
    /// Keys under which `status --json` shows the law's state of a link.
    link: Vec<&'static str>,
    source: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct ParameterEntry {
    name: &'static str,
    default: String,
}

impl Entry {
    fn of(law: &LoadableLaw) -> Self {
        let link = law.names_links().then(|| ParameterEntry { name: LINK_NAME, default: String::new() });
        let listed = law.parameters();
        let named = listed.iter().map(|info| ParameterEntry { name: info.name, default: law::default_of(info) });
        let shown = |signals: &[LawSignal]| signals.iter().filter(|s| !s.is_arrival()).map(|s| s.name).collect();
        Self {
            name: law.name,
            congestion_control: law.congestion_control(),
            parameters: named.chain(link).collect(),
            link: shown(law.link),
            source: shown(law.source),
        }
    }
}

/// Prints the list of laws.
pub(crate) fn run(command: &ListCommand) -> Result<()> {
    let entries: Vec<_> = laws::all().map(Entry::of).collect();
    let text = if command.json { serde_json::to_string(&entries)? + "\n" } else { in_table(&entries) };
    output::print(&text)
}

fn in_table(entries: &[Entry]) -> String {
    let row = |entry: &Entry| {
        let parameters: Vec<_> = entry.parameters.iter().map(|p| format!("{}={}", p.name, p.default)).collect();
        [entry.name.into(), entry.congestion_control.clone(), parameters.join(", ")]
    };
    let head = ["law", "congestion control", "parameters for --set"].map(|name| (name, Align::Left));
    table(head, &entries.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use waterfill_laws::registry::ProtocolId;

    use super::*;

    /// `waterfill protocols` names linux for exactly the laws that the daemon has.
    #[test]
    fn the_registry_names_linux_for_these_laws() {
        let listed: BTreeSet<_> = laws::all().map(|law| law.name).collect();
        let registry: BTreeSet<_> =
            ProtocolId::ALL.iter().filter(|id| id.kernel().is_some()).map(|id| id.info().name).collect();
        assert_eq!(listed, registry);
    }

    #[test]
    fn the_table_has_a_line_for_each_law_and_no_reserved_parameter() {
        let entries: Vec<_> = laws::all().map(Entry::of).collect();
        let text = in_table(&entries);
        assert_eq!(text.lines().count(), 1 + entries.len());
        let maxnet = text.lines().nth(1).unwrap();
        assert!(maxnet.starts_with("maxnet") && maxnet.contains("bpf_maxnet"), "{text}");
        let t_0 = laws::default().parameters().into_iter().find(|info| info.name == "t_0").unwrap();
        assert!(maxnet.contains(&format!(" t_0={}, ", law::default_of(&t_0))), "{text}");
        let maxnet = entries.iter().find(|entry| entry.name == "maxnet").unwrap();
        assert_eq!((&maxnet.link[..], &maxnet.source[..]), (&["price_s", "price_min_s"][..], &["price_s", "xi"][..]));
    }
}
