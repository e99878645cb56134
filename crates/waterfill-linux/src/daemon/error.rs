//! Errors: one line on standard error, and an exit code.

use std::fmt;
use std::process::ExitCode;

/// An error that the user can fix: wrong input, or a missing feature of this host. It ends with exit 2; any other
/// error is a refusal by the kernel and ends with exit 1.
#[derive(Debug)]
pub(super) struct UserError(String);

impl UserError {
    /// The exit code.
    pub(super) const CODE: u8 = 2;
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UserError {}

/// Makes an error of exit 2. The text names the option and what was expected.
pub(super) fn user_error(text: impl Into<String>) -> anyhow::Error {
    UserError(text.into()).into()
}

/// Prints an error with its causes as one line. Returns the exit code.
pub(super) fn report(error: &anyhow::Error) -> ExitCode {
    eprintln!("waterfilld: {}", one_line(&format!("{error:#}")));
    exit_code(error)
}

fn exit_code(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(exit_code_number(error))
}

/// Returns the number of the exit code.
pub(super) fn exit_code_number(error: &anyhow::Error) -> u8 {
    if error.is::<UserError>() { UserError::CODE } else { 1 }
}

/// Joins the lines of a library's message.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn user_errors_and_kernel_refusals_have_their_own_exit_codes() {
        let result: anyhow::Result<()> = Err(user_error("--rate 0: expected a rate above zero"));
        assert_eq!(exit_code(&result.context("router").unwrap_err()), ExitCode::from(2));
        assert_eq!(exit_code(&anyhow::anyhow!("Operation not permitted")), ExitCode::from(1));
    }

    #[test]
    fn an_error_is_one_line() {
        assert_eq!(one_line("a refusal:\n\n  with\treason\n"), "a refusal: with reason");
    }
}
