//! A quick run measures every part, and uses the profiles of programs.

#![allow(clippy::unwrap_used, reason = "a test says what goes wrong")]

use std::path::Path;
use std::process::Command;

#[test]
fn a_quick_run_fills_the_whole_table() {
    let bench = Path::new(env!("CARGO_BIN_EXE_mcpzip-bench"));
    let mcpzip = bench
        .with_file_name("mcpzip")
        .with_extension(std::env::consts::EXE_EXTENSION);
    if !mcpzip.is_file() {
        // `cargo test --workspace` has built the program; a run for this crate alone has not.
        let cargo = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "mcpzip-cli"])
            .status()
            .unwrap();
        assert!(
            cargo.success() && mcpzip.is_file(),
            "no {}",
            mcpzip.display()
        );
    }
    let json = std::env::temp_dir().join(format!("mcpzip-bench-smoke-{}.json", std::process::id()));
    let profile = |name: &str| format!("{}/profiles/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(bench)
        .arg("--quick")
        .args([
            "--profile",
            &profile("pass-through"),
            "--program",
            bench.to_str().unwrap(),
        ])
        .args([
            "--profile",
            &profile("mcpzip"),
            "--program",
            mcpzip.to_str().unwrap(),
        ])
        .args(["--json", json.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let table: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let _ = std::fs::remove_file(json);
    assert_eq!(table["ways"].as_array().unwrap().len(), 5, "{table:#}");
    for row in table["rows"].as_array().unwrap() {
        assert!(
            row["values"][2].is_number(),
            "mcpzip has every figure: {row}"
        );
    }
    assert!(table["rows"].as_array().unwrap().len() > 25, "{table:#}");
}
