//! `waterfilld man`: manual pages of section 8, generated from the command-line definition.

use std::fs;
use std::io;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_mangen::Man;

use super::cli::{CommandLine, ManCommand};

/// Writes `waterfilld.8`, and a page `waterfilld-NAME.8` for each command that the help lists.
pub(crate) fn run(command: &ManCommand) -> Result<()> {
    let shown = command.folder.display();
    fs::create_dir_all(&command.folder).with_context(|| format!("cannot make the folder {shown}"))?;
    for (name, text) in pages().context("cannot write a manual page")? {
        let path = command.folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Returns the file name and contents of each page.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut whole = CommandLine::command().disable_help_subcommand(true);
    whole.build(); // so that a command's usage begins with the program's name
    let program = whole.get_name().to_owned();
    let commands = whole.get_subcommands().filter(|command| !command.is_hide_set());
    // A page's title is static in clap: a page for each of a dozen commands is made once in a process.
    let mut listed: Vec<_> = commands
        .map(|command| {
            let title: &'static str = Box::leak(format!("{program}-{}", command.get_name()).into_boxed_str());
            command.clone().name(title)
        })
        .collect();
    listed.push(whole);
    listed
        .into_iter()
        .map(|command| {
            let name = format!("{}.8", command.get_name());
            let mut text = Vec::new();
            let manual = "Waterfill";
            Man::new(command).section("8").manual(manual).render(&mut text)?;
            Ok((name, text))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_listed_command_has_a_page_with_its_options() {
        let pages = pages().unwrap();
        let page = |name: &str| {
            let (_, text) = pages.iter().find(|(file, _)| file == name).unwrap_or_else(|| panic!("{name}: {pages:?}"));
            String::from_utf8_lossy(text).into_owned()
        };
        assert!(page("waterfilld.8").contains(".TH waterfilld 8"));
        let router = page("waterfilld-router.8");
        assert!(router.contains("virtual\\-queue") && router.contains("waterfilld router"), "{router}");
        let listed = CommandLine::command().get_subcommands().filter(|c| !c.is_hide_set()).count();
        assert_eq!(pages.len(), 1 + listed);
        assert!(!pages.iter().any(|(name, _)| name == "waterfilld-man.8"));
    }
}
