//! The `stealgrid` executable.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = node::executor::held() {
        return code;
    }
    coordinator::cli::main()
}
