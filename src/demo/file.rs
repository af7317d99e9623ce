//! A JSON file that holds what a server remembers: read whole, replaced whole.
//!
//! Several processes may serve the same file, since each client starts its own, so a change is made under a lock.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The file of that name in a directory.
pub(super) struct JsonFile {
    path: PathBuf,
}

impl JsonFile {
    pub(super) fn new(directory: &Path, name: &str) -> Self {
        Self {
            path: directory.join(name).with_extension("json"),
        }
    }

    /// What the file holds; the default when there is no file yet.
    ///
    /// # Errors
    /// When it cannot be read or holds something else.
    pub(super) fn read<T: DeserializeOwned + Default>(&self) -> Result<T, String> {
        let json = match fs::read(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(T::default()),
            Err(error) => return Err(format!("the stored data cannot be read: {}", error.kind())),
            Ok(json) => json,
        };
        serde_json::from_slice(&json)
            .map_err(|error| format!("the stored data is damaged: {error}"))
    }

    /// Changes what the file holds. When `change` refuses, the file stays as it is.
    ///
    /// # Errors
    /// What `change` says, or why the file cannot be read or replaced.
    pub(super) fn change<T, R>(
        &self,
        change: impl FnOnce(&mut T) -> Result<R, String>,
    ) -> Result<R, String>
    where
        T: Serialize + DeserializeOwned + Default,
    {
        let failed = |error: io::Error| format!("the data cannot be stored: {}", error.kind());
        // Held until the end of this function; the system lets it go if the process dies.
        let _lock = self.lock().map_err(failed)?;
        let mut data = self.read()?;
        let answer = change(&mut data)?;
        self.replace(&data).map_err(failed)?;
        Ok(answer)
    }

    fn lock(&self) -> io::Result<File> {
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        let lock = File::create(self.path.with_extension("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    fn replace<T: Serialize>(&self, data: &T) -> io::Result<()> {
        let beside = self.path.with_extension("new");
        let mut file = File::create(&beside)?;
        file.write_all(&serde_json::to_vec_pretty(data)?)?;
        file.sync_all()?;
        fs::rename(beside, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add_one(numbers: &mut Vec<u8>) -> Result<(), String> {
        numbers.push(1);
        Ok(())
    }

    #[test]
    fn a_change_lasts_and_a_refused_one_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let file = JsonFile::new(&directory.path().join("new"), "numbers");
        file.change(add_one).unwrap();
        let refused = file.change(|numbers: &mut Vec<u8>| {
            numbers.push(2);
            Err::<(), _>("no".to_owned())
        });
        assert_eq!(refused.unwrap_err(), "no");
        assert_eq!(file.read::<Vec<u8>>().unwrap(), [1]);
    }

    #[test]
    fn concurrent_changes_are_all_kept() {
        let directory = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let file = JsonFile::new(directory.path(), "numbers");
                    for _ in 0..10 {
                        file.change(add_one).unwrap();
                    }
                });
            }
        });
        assert_eq!(
            JsonFile::new(directory.path(), "numbers")
                .read::<Vec<u8>>()
                .unwrap()
                .len(),
            40
        );
    }

    #[test]
    fn damaged_data_is_reported_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("numbers.json");
        fs::write(&path, "[1,").unwrap();
        let file = JsonFile::new(directory.path(), "numbers");
        assert!(file.change(add_one).unwrap_err().contains("damaged"));
        assert_eq!(fs::read_to_string(path).unwrap(), "[1,");
    }
}
