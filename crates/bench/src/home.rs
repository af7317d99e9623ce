//! A temporary directory for one measured program.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;

/// A directory, empty at first, that is removed on drop.
#[derive(Debug)]
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new() -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            "mcpzip-bench-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A program that still writes there leaves a few files behind.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
