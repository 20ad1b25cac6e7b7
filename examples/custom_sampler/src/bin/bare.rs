//! A runner that forgot to link any plugins: it says what is missing.

fn main() -> std::process::ExitCode {
    ebipla_runner::main(ebipla_runner::home!())
}
