//! A runner that links no plugins, as if by mistake: it reports what is missing.

fn main() -> std::process::ExitCode {
    ebipla_runner::main(ebipla_runner::home!())
}
