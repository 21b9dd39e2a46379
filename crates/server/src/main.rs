//! The binary `backstitch`; docs/cli.md.

fn main() -> std::process::ExitCode {
    backstitch_server::cli::main()
}
