//! The law and its parameters, which both roles have.

use clap::Args;

use super::values::assignment;
use crate::daemon::law::{self, Law};

/// The law, and its parameters by name.
#[derive(Clone, Debug, Args)]
pub(super) struct LawChoice {
    /// The law; hosts and routers of a path have the same
    #[arg(long, value_name = "LAW", default_value = "maxnet", value_parser = law::find)]
    pub(super) law: &'static Law,
    /// A parameter of the law, such as alpha=0.5; repeatable
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    pub(super) set: Vec<(String, String)>,
}

impl LawChoice {
    /// The values of MaxNet's own options that are given, then those of `--set`.
    pub(super) fn with<const N: usize>(&self, options: [(&str, Option<String>); N]) -> Vec<(String, String)> {
        let given = options.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?)));
        given.chain(self.set.iter().cloned()).collect()
    }

    /// Refuses MaxNet's own options with another law.
    pub(super) fn check(&self, values: &[(String, String)]) -> Result<(), String> {
        if !self.law.is_default() && values.len() > self.set.len() {
            let names = self.law.list_names();
            return Err(format!("--law {}: expected its parameters by --set: {names}", self.law.name));
        }
        Ok(())
    }
}
