//! Lets the tests of this package find libtorch at run time, and notes its version.

fn main() {
    if let Ok(libtorch) = std::env::var("DEP_EBIPLA_LIBTORCH_LIB") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{libtorch}");
    }
    let version = std::env::var("DEP_EBIPLA_LIBTORCH_VERSION").unwrap_or_else(|_| "unknown".into());
    println!("cargo::rustc-env=LIBTORCH_VERSION={version}");
}
