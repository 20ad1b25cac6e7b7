//! An error for the user, which always states both the problem and the remedy.

use std::fmt;
use std::io;
use std::path::Path;

#[derive(Debug)]
pub struct Problem {
    trouble: String,
    remedy: String,
}

impl Problem {
    pub fn new(trouble: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            trouble: trouble.into(),
            remedy: remedy.into(),
        }
    }

    /// `doing` completes "could not ...", for example "write".
    pub fn io(doing: &str, path: &Path, error: &io::Error) -> Self {
        let trouble = format!("could not {doing} {}: {error}", path.display());
        let remedy = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "Free some space",
            _ => "Check that you have write permission there",
        };
        Self::new(trouble, format!("{remedy}, then run the command again."))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}\n  {}", self.trouble, self.remedy)
    }
}
