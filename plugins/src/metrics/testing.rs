//! Where tests find the real images and weights that are not part of this repository.

use std::path::{Path, PathBuf};

#[path = "../../../tests/support/skip.rs"]
mod skip;

use skip::skip;

/// The folder `shared/` beside the repository, or the one that EBIPLA_SHARED names; without it, a test says that it
/// checks nothing.
pub fn shared(path: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let folder = std::env::var_os("EBIPLA_SHARED").map_or(beside, PathBuf::from);
    let path = folder.join(path);
    if !path.exists() {
        skip(&format!("there is no {}", path.display()));
        return None;
    }
    Some(path)
}
