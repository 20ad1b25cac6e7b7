//! The runner: links the framework with our plugins and data sets.

use ebipla_datasets as _;
use ebipla_plugins as _;

fn main() -> std::process::ExitCode {
    ebipla_runner::main(ebipla_runner::home!())
}
