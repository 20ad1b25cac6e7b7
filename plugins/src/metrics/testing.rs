//! Locates the real images and weights that tests use but this repository does not contain.

use std::path::{Path, PathBuf};

#[path = "../../../tests/support/skip.rs"]
mod skip;

use skip::skip;

/// A file in the folder `shared/` beside the repository, or in the one that EBIPLA_SHARED names. Reports a skip if it
/// is missing.
pub fn shared(path: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let folder = std::env::var_os("EBIPLA_SHARED").map_or(beside, PathBuf::from);
    let path = folder.join(path);
    if !path.exists() {
        skip(&format!("{} is missing", path.display()));
        return None;
    }
    Some(path)
}
