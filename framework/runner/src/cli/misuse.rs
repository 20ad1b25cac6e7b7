//! What is wrong with a command line beyond what clap sees.

/// Says what was found and what would be right; exit code 2, and nothing was written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Misuse(pub String);
