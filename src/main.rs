//! The `mcpzip` program: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    mcpzip_allocator::set_up();
    mcpzip::run(std::env::args_os())
}
