//! Makes libtorch findable at run time, here and in every crate that depends on this one.

use std::path::Path;

fn main() {
    let Ok(libraries) = std::env::var("DEP_TCH_LIBTORCH_LIB") else {
        return;
    };
    println!("cargo::rustc-link-arg=-Wl,-rpath,{libraries}");
    println!("cargo::metadata=LIBTORCH_LIB={libraries}");
    let version = libtorch_version(Path::new(&libraries)).unwrap_or_else(|| "unknown".into());
    println!("cargo::metadata=LIBTORCH_VERSION={version}");
}

/// The version that libtorch's own header states.
fn libtorch_version(libraries: &Path) -> Option<String> {
    let header = libraries.parent()?.join("include/torch/headeronly/version.h");
    println!("cargo::rerun-if-changed={}", header.display());
    let text = std::fs::read_to_string(header).ok()?;
    let part = |name: &str| {
        let start = format!("#define TORCH_VERSION_{name} ");
        Some(text.lines().find_map(|line| line.strip_prefix(&start))?.trim())
    };
    Some([part("MAJOR")?, part("MINOR")?, part("PATCH")?].join("."))
}
