//! Says where files are kept that can be made again.

use std::env;
use std::path::PathBuf;

use anyhow::Context;

/// `$EBIPLA_CACHE`, or `ebipla` in the user's cache folder.
pub fn cache_folder() -> anyhow::Result<PathBuf> {
    chosen(|name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    })
    .context("no folder for cached data is known: set EBIPLA_CACHE to one, or HOME")
}

fn chosen(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let users = || {
        let xdg = variable("XDG_CACHE_HOME").filter(|folder| folder.is_absolute());
        let folder = xdg.or_else(|| Some(variable("HOME")?.join(".cache")))?;
        Some(folder.join("ebipla"))
    };
    variable("EBIPLA_CACHE").or_else(users)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &[(&str, &str)]) -> Option<String> {
        let find = |name: &str| set.iter().find(|(known, _)| *known == name);
        let folder = chosen(|name| find(name).map(|(_, value)| value.into()));
        folder.map(|folder| folder.display().to_string())
    }

    #[test]
    fn our_own_variable_wins_then_the_users_then_home() {
        let all = [
            ("EBIPLA_CACHE", "here"),
            ("XDG_CACHE_HOME", "/xdg"),
            ("HOME", "/home/me"),
        ];
        assert_eq!(with(&all).as_deref(), Some("here"));
        assert_eq!(with(&all[1..]).as_deref(), Some("/xdg/ebipla"));
        assert_eq!(with(&all[2..]).as_deref(), Some("/home/me/.cache/ebipla"));
        assert_eq!(with(&[]), None);
    }

    /// As the XDG specification wants it.
    #[test]
    fn a_relative_xdg_folder_does_not_count() {
        let set = [("XDG_CACHE_HOME", "xdg"), ("HOME", "/home/me")];
        assert_eq!(with(&set).as_deref(), Some("/home/me/.cache/ebipla"));
    }
}
