//! The interface between the installer and the components it installs.

use std::path::Path;

use crate::problem::Problem;

pub trait Component {
    /// Name of its folder in `.deps`.
    fn folder(&self) -> &'static str;

    /// What is being downloaded and its size, for the waiting user.
    fn description(&self) -> String;

    /// Disk space in MiB needed during installation, which is more than the finished installation takes.
    fn space(&self) -> u64;

    /// First line of a finished installation's stamp.
    fn stamp(&self) -> String;

    /// Whether an installation with this first line in its stamp is acceptable.
    fn accepts(&self, stamp: &str) -> bool {
        stamp == self.stamp()
    }

    /// Installs everything into `folder`, which is empty.
    fn fill(&self, folder: &Path) -> Result<(), Problem>;
}
