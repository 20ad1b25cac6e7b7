//! A runner that forgot to link any plugins: it says what is missing.

fn main() -> std::process::ExitCode {
    ebipla_framework::main(ebipla_framework::home!())
}
