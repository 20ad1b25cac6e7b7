//! Lets this package's binaries and tests find libtorch at run time.

fn main() {
    if let Ok(libtorch) = std::env::var("DEP_EBIPLA_LIBTORCH_LIB") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{libtorch}");
    }
}
