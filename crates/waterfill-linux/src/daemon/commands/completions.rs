//! `waterfilld completions`: shell completion of commands and options, generated from the command-line definition.

use anyhow::Result;
use clap::CommandFactory as _;
use clap_complete::{generate, shells};

use super::cli::{CommandLine, CompletionsCommand, Shell};
use super::output;

/// Prints the completion script for a shell.
pub(crate) fn run(command: &CompletionsCommand) -> Result<()> {
    output::print(&String::from_utf8_lossy(&script(command.shell)))
}

fn script(shell: Shell) -> Vec<u8> {
    let mut command = CommandLine::command();
    let name = command.get_name().to_owned();
    let mut out = Vec::new();
    match shell {
        Shell::Bash => generate(shells::Bash, &mut command, name, &mut out),
        Shell::Zsh => generate(shells::Zsh, &mut command, name, &mut out),
        Shell::Fish => generate(shells::Fish, &mut command, name, &mut out),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_completes_commands_and_options() {
        for (shell, register) in [
            (Shell::Bash, "complete -F _waterfilld"),
            (Shell::Zsh, "#compdef waterfilld"),
            (Shell::Fish, "complete -c waterfilld"),
        ] {
            let text = String::from_utf8(script(shell)).unwrap();
            for part in [register, "router", "virtual-queue", "cohabit", "unload"] {
                assert!(text.contains(part), "{shell:?}: {part}");
            }
        }
    }
}
