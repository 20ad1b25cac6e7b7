//! Paths of the checkout and its `.deps`, consistent with `.cargo/config.toml`.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A variable that points the build to a dependency, and the folder where the set-up installs that dependency.
pub struct Variable {
    pub name: &'static str,
    within_deps: &'static str,
}

pub const LIBTORCH: Variable = Variable {
    name: "LIBTORCH",
    within_deps: "libtorch/torch",
};

pub const CMAKE: Variable = Variable {
    name: "CMAKE",
    within_deps: "cmake/cmake/data/bin/cmake",
};

pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

pub fn deps() -> PathBuf {
    root().join(".deps")
}

impl Variable {
    /// The user's own value. Cargo also passes us its default, which does not count.
    pub fn users_own(&self) -> Option<OsString> {
        env::var_os(self.name).filter(|value| !value.is_empty() && !self.is_default(value))
    }

    fn is_default(&self, value: &OsString) -> bool {
        Path::new(value) == deps().join(self.within_deps)
    }
}
