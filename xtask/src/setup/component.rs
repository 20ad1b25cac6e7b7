//! What the installer must know of a thing in order to install it.

use std::path::Path;

use crate::problem::Problem;

pub trait Component {
    /// The name of its folder in `.deps`.
    fn folder(&self) -> &'static str;

    /// What is being fetched and how big it is, for the user who waits.
    fn description(&self) -> String;

    /// The disk space in MiB that is needed while it is installed, which is more than it keeps.
    fn space(&self) -> u64;

    /// The first line of the stamp of a finished installation.
    fn stamp(&self) -> String;

    /// Whether an installation with this first line in its stamp will do.
    fn accepts(&self, stamp: &str) -> bool {
        stamp == self.stamp()
    }

    /// Puts everything into `folder`, which is empty.
    fn fill(&self, folder: &Path) -> Result<(), Problem>;
}
