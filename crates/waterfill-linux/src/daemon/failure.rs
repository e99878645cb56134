//! How the daemon says no: one line on standard error, and an exit code.

use std::fmt;
use std::process::ExitCode;

/// What the user can put right: wrong input, or something this machine lacks. Ends with exit 2; any other
/// error is the kernel's refusal and ends with 1.
#[derive(Debug)]
pub(super) struct Wrong(String);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

/// An error of exit 2. It says what is wrong, where, and what was expected.
pub(super) fn wrong(what: impl Into<String>) -> anyhow::Error {
    Wrong(what.into()).into()
}

/// Prints an error with its causes as one line; the exit code.
pub(super) fn report(error: &anyhow::Error) -> ExitCode {
    eprintln!("waterfilld: {}", one_line(&format!("{error:#}")));
    code(error)
}

fn code(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(if error.is::<Wrong>() { 2 } else { 1 })
}

/// Causes from a library may be paragraphs.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn wrong_input_is_told_from_a_refusal() {
        let asked: anyhow::Result<()> = Err(wrong("--rate 0: expected a rate above zero"));
        assert_eq!(code(&asked.context("router").unwrap_err()), ExitCode::from(2));
        assert_eq!(code(&anyhow::anyhow!("Operation not permitted")), ExitCode::from(1));
    }

    #[test]
    fn an_error_is_one_line() {
        assert_eq!(one_line("a refusal:\n\n  with\treason\n"), "a refusal: with reason");
    }
}
