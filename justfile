# Short names for what CONTRIBUTING.md says at length. Optional: https://github.com/casey/just

# Lists what there is.
_default:
    @{{ just_executable() }} --list --unsorted

# Format, lints, unused dependencies (cargo-machete) and documentation.
check: && docs
    cargo fmt --check
    cargo clippy --locked --workspace --all-targets -- -D warnings
    cargo machete --with-metadata

# All tests, or those that the arguments of `cargo test` name.
test *ARGUMENTS:
    ./test {{ ARGUMENTS }}

# The documentation of the code.
docs:
    RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --locked --workspace --no-deps --document-private-items

# The website, with its tests in a browser.
site:
    cargo build --locked --release
    cd website && MCPZIP_BIN="$(realpath "${CARGO_TARGET_DIR:-../target}/release/mcpzip")" npm test

# The pages of `mcpzip ui`, with their tests in a browser. `npm run build` in web/ makes the files that the program carries.
window:
    cargo build --locked --release
    cd web && MCPZIP_BIN="$(realpath "${CARGO_TARGET_DIR:-../target}/release/mcpzip")" npm test

# The pictures of the window in the README and on the website, taken of the real program.
pictures:
    cargo build --locked --release
    cd web && MCPZIP_BIN="$(realpath "${CARGO_TARGET_DIR:-../target}/release/mcpzip")" npm run pictures

# The tray, with its tests on a bus of their own (Linux).
tray:
    ./test --test it tray::

# The tray in a panel of XFCE on a screen of its own, as a picture.
tray-picture FILE="tray.png":
    cargo build --locked -p mcpzip-cli --features tray
    tests/tray/panel.sh "$(realpath "${CARGO_TARGET_DIR:-target}/debug/mcpzip")" {{ FILE }}

# Latency, throughput, memory and size.
bench *ARGUMENTS:
    cargo build --locked --release
    cargo run --locked --release -p mcpzip-bench -- {{ ARGUMENTS }}

# The Python package: builds a wheel, installs it and tests it.
python *ARGUMENTS:
    python/test {{ ARGUMENTS }}

# A fuzz target, for so many seconds (nightly, cargo-fuzz).
fuzz TARGET SECONDS="600":
    cargo +nightly fuzz run {{ TARGET }} -- -max_total_time={{ SECONDS }}

# What takes hours: kills, load with faults, replicas that are killed, Miri, and each fuzz target for ten minutes.
endurance MINUTES="60":
    MCPZIP_TEST_KILLS=500 cargo test --locked --test it faults::kills
    MCPZIP_TEST_KILLS=100 cargo test --locked --test it daemon::load
    MCPZIP_TEST_REPLICAS_MINUTES=5 cargo test --locked --test it replicas::failure
    cargo build --locked --release
    cargo run --locked --release -p mcpzip-bench -- soak --minutes {{ MINUTES }}
    MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p mcpzip-cli --lib -- mcp::
    cargo +nightly miri test -p mcpzip-embedding --lib -- --skip products_are --skip largest_values
    for target in $(cargo +nightly fuzz list); do {{ just_executable() }} fuzz "$target" || exit; done
