//! The fuzz targets. Each takes arbitrary bytes and panics if a property does not hold.
//!
//! A target is in the `fuzzing.rs` of the module that it tests, where it has access to private items. `fuzz/` has a
//! program for each target, and `fuzz/corpus` has inputs that reached new code. A test here runs every target on its
//! corpus. The module exists only in tests and with the feature `fuzzing`.

/// A fuzz target.
pub type Target = fn(&[u8]);

/// Every target, by its name in `fuzz/`.
pub const TARGETS: &[(&str, Target)] = &[
    ("arguments", crate::proxy::fuzzing::arguments),
    ("cache", crate::catalog::fuzzing::cache),
    ("client_file", crate::clients::fuzzing::client_file),
    ("config", crate::config::fuzzing::config),
    ("document", crate::config::fuzzing::document),
    ("envelope", crate::mcp::fuzzing::envelope),
    ("index", crate::search::fuzzing::index),
    ("lines", crate::mcp::fuzzing::lines),
    ("names", crate::catalog::fuzzing::names),
    ("oauth", crate::upstream::fuzzing::oauth),
    ("registry", crate::registry::fuzzing::registry),
    ("select", crate::proxy::fuzzing::select),
    ("signature", crate::tool::fuzzing::signature),
    ("splice", crate::mcp::fuzzing::splice),
    ("sse", crate::upstream::fuzzing::sse),
    ("vectors", crate::search::fuzzing::vectors),
];

/// Runs the target `name` on `data`.
///
/// # Panics
/// When a property does not hold, or there is no such target.
pub fn run(name: &str, data: &[u8]) {
    let (_, target) = TARGETS
        .iter()
        .find(|(known, _)| *known == name)
        .expect("there is a target of this name");
    target(data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    #[test]
    fn every_target_holds_on_its_corpus() {
        let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
        for (name, target) in TARGETS {
            assert!(
                fuzz.join(format!("fuzz_targets/{name}.rs")).exists(),
                "`{name}` has no program in fuzz/"
            );
            let files = fs::read_dir(fuzz.join("corpus").join(name))
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut count = 0;
            for file in files {
                let path = file.unwrap().path();
                let data = fs::read(&path).unwrap();
                let outcome = std::panic::catch_unwind(|| target(&data));
                assert!(outcome.is_ok(), "{} breaks a promise", path.display());
                count += 1;
            }
            assert!(count >= 5, "`{name}` has only {count} files");
            target(&[]);
        }
    }

    /// Random variations of the corpus with a fixed seed: bytes are changed, inserted, removed and repeated.
    #[test]
    fn splices_and_names_hold_whatever_they_are_made_of() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut below = move |limit: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % limit.max(1) as u64).expect("it is below a size")
        };
        for name in ["splice", "names"] {
            let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("fuzz/corpus")
                .join(name);
            let mut paths: Vec<_> = fs::read_dir(corpus)
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .collect();
            paths.sort();
            let files: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
            for _ in 0..3000 {
                let mut data = files[below(files.len())].clone();
                for _ in 0..=below(4) {
                    let at = below(data.len() + 1);
                    let odd = b"{}[]\",:\\ud83_.- \n\t0e1"[below(21)];
                    match below(4) {
                        0 if at < data.len() => data[at] = odd,
                        1 if at < data.len() => drop(data.remove(at)),
                        2 => {
                            let end = (at + below(12)).min(data.len());
                            let copy = data[at..end].to_vec();
                            data.splice(at..at, copy);
                        }
                        _ => data.insert(at, odd),
                    }
                }
                run(name, &data);
            }
        }
    }
}
