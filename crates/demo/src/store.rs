//! Numbered records in a JSON file, which is read and replaced as a whole.
//!
//! Several processes may use one file, because each client starts its own, so changes are made under a lock.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Records, oldest first. The number of a removed record is not used again.
#[derive(Serialize, Deserialize)]
pub(crate) struct Records<T> {
    last_id: i64,
    pub(crate) items: Vec<T>,
}

/// A record with its number.
pub(crate) trait Record {
    /// The name of the kind in messages.
    const NAME: &str;
    fn id(&mut self) -> &mut i64;
}

impl<T> Default for Records<T> {
    fn default() -> Self {
        Self {
            last_id: 0,
            items: Vec::new(),
        }
    }
}

impl<T: Record> Records<T> {
    /// Adds a record under a new number.
    pub(crate) fn add(&mut self, mut record: T) -> &T {
        self.last_id += 1;
        *record.id() = self.last_id;
        self.items.push(record);
        &self.items[self.items.len() - 1]
    }

    /// The record with this number.
    ///
    /// # Errors
    /// When it does not exist. The message says how to find one.
    pub(crate) fn get(&mut self, id: i64) -> Result<&mut T, String> {
        let at = self.position(id)?;
        Ok(&mut self.items[at])
    }

    /// Removes the record with this number.
    ///
    /// # Errors
    /// When it does not exist. The message says how to find one.
    pub(crate) fn remove(&mut self, id: i64) -> Result<T, String> {
        let at = self.position(id)?;
        Ok(self.items.remove(at))
    }

    fn position(&mut self, id: i64) -> Result<usize, String> {
        let name = T::NAME;
        let found = self.items.iter_mut().position(|record| *record.id() == id);
        found.ok_or_else(|| {
            format!(
                "There is no {name} {id}. list_{name}s and search_{name}s show which there are."
            )
        })
    }
}

/// The content of the file `name` in a directory. The default if the file does not exist.
///
/// # Errors
/// When it cannot be read, or has another form.
pub(crate) fn read<T: DeserializeOwned + Default>(
    directory: &Path,
    name: &str,
) -> Result<T, String> {
    let json = match fs::read(directory.join(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(T::default()),
        Err(error) => return Err(format!("the stored data cannot be read: {}", error.kind())),
        Ok(json) => json,
    };
    serde_json::from_slice(&json).map_err(|error| format!("the stored data is damaged: {error}"))
}

/// Changes the content of the file. If `change` fails, the file stays as it is.
///
/// # Errors
/// The error of `change`, or of reading or replacing the file.
pub(crate) fn change<T, R>(
    directory: &Path,
    name: &str,
    change: impl FnOnce(&mut T) -> Result<R, String>,
) -> Result<R, String>
where
    T: Serialize + DeserializeOwned + Default,
{
    let failed = |error: io::Error| format!("the data cannot be stored: {}", error.kind());
    // Held until the end of this function. If the process dies, the system releases it.
    let _lock = lock(directory, name).map_err(failed)?;
    let mut data = read(directory, name)?;
    let answer = change(&mut data)?;
    replace(directory, name, &data).map_err(failed)?;
    Ok(answer)
}

fn lock(directory: &Path, name: &str) -> io::Result<File> {
    fs::create_dir_all(directory)?;
    let lock = File::create(directory.join(format!("{name}.lock")))?;
    lock.lock()?;
    Ok(lock)
}

fn replace<T: Serialize>(directory: &Path, name: &str, data: &T) -> io::Result<()> {
    let new = directory.join(format!("{name}.new"));
    let mut file = File::create(&new)?;
    file.write_all(&serde_json::to_vec_pretty(data)?)?;
    file.sync_all()?;
    fs::rename(new, directory.join(name))
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
        let directory = directory.path().join("new");
        change(&directory, "numbers", add_one).unwrap();
        let refused = change(&directory, "numbers", |numbers: &mut Vec<u8>| {
            numbers.push(2);
            Err::<(), _>("no".to_owned())
        });
        assert_eq!(refused.unwrap_err(), "no");
        assert_eq!(read::<Vec<u8>>(&directory, "numbers").unwrap(), [1]);
    }

    #[test]
    fn damaged_data_is_reported_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("numbers");
        fs::write(&path, "[1,").unwrap();
        let refused = change(directory.path(), "numbers", add_one);
        assert!(refused.unwrap_err().contains("damaged"));
        assert_eq!(fs::read_to_string(path).unwrap(), "[1,");
    }

    #[test]
    fn concurrent_changes_are_all_kept() {
        let directory = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        change(directory.path(), "numbers", add_one).unwrap();
                    }
                });
            }
        });
        assert_eq!(
            read::<Vec<u8>>(directory.path(), "numbers").unwrap().len(),
            40
        );
    }
}
