//! Makes the table of letters that look like others (Unicode Technical Standard 39) without pointers. Those of `unicode_security` are
//! relocated in each process, which costs it 160 kB and a part of its start, also where it only waits for a daemon. For the same
//! reason, the relocations of the static program for Linux are packed: 40,000 of them take a megabyte otherwise, which each start reads.

use std::fmt::Write as _;

use unicode_normalization::is_nfd;
use unicode_security::skeleton;

#[expect(
    clippy::disallowed_methods,
    reason = "Cargo tells a build script its directory in a variable"
)]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // musl applies packed relocations since 1.2.4. With glibc the program would need version 2.36.
    if std::env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("musl") {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    let (mut looks, mut text, mut count) = (String::new(), String::new(), 0);
    for letter in '\0'..=char::MAX {
        let own = letter.to_string();
        // A letter that decomposes is looked up by its parts.
        if !is_nfd(&own) {
            continue;
        }
        let look: String = skeleton(&own).collect();
        if look != own {
            writeln!(looks, "    ({letter:?}, {}, {}),", text.len(), look.len())
                .expect("writing to a string succeeds");
            text += &look;
            count += 1;
        }
    }
    let source = format!(
        "/// Letters, each with the start and the length in bytes of its look in `TEXT`.\nstatic LOOKS: [(char, u16, u8); {count}] = [\n{looks}];\n\
         static TEXT: &str = {text:?};\n"
    );
    let directory = std::env::var("OUT_DIR").expect("Cargo sets OUT_DIR");
    std::fs::write(std::path::Path::new(&directory).join("looks.rs"), source)
        .expect("OUT_DIR can be written");
}
