//! Errors of the daemon, which end it with one line on standard error and an exit code.

use std::fmt::{self, Write as _};
use std::process::ExitCode;

/// An error that the user can fix: wrong input, or a missing feature of this host. It ends the process with exit code
/// 2. Other errors have exit code 1.
#[derive(Debug)]
pub(crate) struct UserError(String);

impl UserError {
    /// Exit code of an error that the user can fix.
    pub(crate) const CODE: u8 = 2;
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UserError {}

/// Creates a [`UserError`]. The text names the option, the problem with its value, and what to type.
pub(crate) fn user_error(text: impl Into<String>) -> anyhow::Error {
    UserError(text.into()).into()
}

/// Prints an error with its causes as one line. Returns the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    eprintln!("waterfilld: {}", one_line(&format!("{error:#}")));
    exit_code(error)
}

fn exit_code(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(exit_code_number(error))
}

/// Returns the exit code of an error as a number.
pub(crate) fn exit_code_number(error: &anyhow::Error) -> u8 {
    if error.is::<UserError>() { UserError::CODE } else { 1 }
}

/// Joins the lines of a message and escapes characters that a terminal interprets. Messages quote files and arguments.
pub(crate) fn one_line(text: &str) -> String {
    escaped(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Escapes control characters, line separators, and characters that change the direction of text.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let invisible = matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || invisible {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn user_errors_and_kernel_refusals_have_their_own_exit_codes() {
        let result: anyhow::Result<()> = Err(user_error("--rate 0: must be above zero"));
        assert_eq!(exit_code(&result.context("router").unwrap_err()), ExitCode::from(2));
        assert_eq!(exit_code(&anyhow::anyhow!("Operation not permitted")), ExitCode::from(1));
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(one_line("/nope\u{1b}[31m\u{9b}\u{202e}é"), "/nope\\u{1b}[31m\\u{9b}\\u{202e}é");
    }

    #[test]
    fn an_error_is_one_line() {
        assert_eq!(one_line("a refusal:\n\n  with\treason\n"), "a refusal: with reason");
    }
}
