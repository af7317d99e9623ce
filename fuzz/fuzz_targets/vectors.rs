#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcpzip::fuzzing::run("vectors", data));
