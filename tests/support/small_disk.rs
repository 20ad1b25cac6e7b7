//! A small disk that can be enlarged or made read-only.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::skip::skip;

/// A tmpfs in a scratch folder; unmounted on drop.
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts a disk of `kib` KiB; reports a skip and returns `None` if that is not permitted.
    pub fn mount(folder: &Path, kib: u32) -> Option<Self> {
        let path = folder.join("disk");
        std::fs::create_dir_all(&path).unwrap();
        let size = format!("size={kib}k");
        if !succeeds(
            Command::new("mount")
                .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
                .arg(&path),
        ) {
            skip("mounting a small disk is not permitted");
            return None;
        }
        Some(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Remounts it with other options, such as `ro` or `size=64m`.
    pub fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        assert!(succeeds(
            Command::new("mount").args(["-o", &options]).arg(&self.path)
        ));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        succeeds(Command::new("umount").arg("-l").arg(&self.path));
    }
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
