//! Reads logs: the last lines, and the lines that follow.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::file;
use crate::files;

/// The part of a file that is read, from its end, in bytes.
const LOOKED_AT: u64 = 512 * 1024;
/// The most bytes that are read at once from new lines.
const CHUNK: u64 = 1024 * 1024;

/// The last lines of the log at `path`, at most `wanted`, including rotated files. Empty if there is no log.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn tail(path: &Path, wanted: usize) -> io::Result<Vec<String>> {
    let mut lines: Vec<String> = Vec::new();
    for path in file::all(path) {
        let (text, is_whole) = end_of(&path)?;
        lines.splice(..0, text.lines().map(str::to_owned));
        if lines.len() >= wanted || !is_whole {
            break;
        }
    }
    lines.drain(..lines.len().saturating_sub(wanted));
    Ok(lines)
}

/// The end of the file from the start of a line, and whether that is the whole file. Empty if there is no file.
fn end_of(path: &Path) -> io::Result<(String, bool)> {
    let mut file = match files::open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((String::new(), true)),
        Err(error) => return Err(error),
    };
    let start = file.metadata()?.len().saturating_sub(LOOKED_AT);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(LOOKED_AT).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole_lines = if start == 0 {
        &text
    } else {
        text.split_once('\n').map_or("", |(_, rest)| rest)
    };
    Ok((whole_lines.to_owned(), start == 0))
}

/// Follows a log, including across rotations.
#[derive(Debug)]
pub(crate) struct Follow {
    path: PathBuf,
    file: Option<File>,
    position: u64,
    /// The start of an unfinished line.
    partial: Vec<u8>,
}

impl Follow {
    /// Starts at the end of the log at `path`, which may not exist yet.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn from_end(path: PathBuf) -> io::Result<Self> {
        let mut follow = Self {
            path,
            file: None,
            position: 0,
            partial: Vec::new(),
        };
        if follow.open()? {
            follow.position = follow
                .file
                .as_mut()
                .map_or(Ok(0), |file| file.seek(SeekFrom::End(0)))?;
        }
        Ok(follow)
    }

    /// The lines written since the last call.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(crate) fn lines(&mut self) -> io::Result<Vec<String>> {
        let mut lines = self.read()?;
        if lines.is_empty() && self.is_put_aside() && self.open()? {
            lines = self.read()?;
        }
        Ok(lines)
    }

    /// Whether the file at this path is a newer one than the file being read.
    fn is_put_aside(&self) -> bool {
        let Some(file) = &self.file else { return true };
        let (Ok(named), Ok(_open)) = (fs::metadata(&self.path), file.metadata()) else {
            return false;
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            if (named.dev(), named.ino()) != (_open.dev(), _open.ino()) {
                return true;
            }
        }
        named.len() < self.position
    }

    fn open(&mut self) -> io::Result<bool> {
        match files::open_regular(&self.path) {
            Ok(file) => {
                (self.file, self.position) = (Some(file), 0);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn read(&mut self) -> io::Result<Vec<String>> {
        let Some(file) = &mut self.file else {
            return Ok(Vec::new());
        };
        self.position += file.take(CHUNK).read_to_end(&mut self.partial)? as u64;
        let Some(end) = memchr::memrchr(b'\n', &self.partial) else {
            return Ok(Vec::new());
        };
        let rest = self.partial.split_off(end + 1);
        let whole = std::mem::replace(&mut self.partial, rest);
        Ok(String::from_utf8_lossy(&whole)
            .lines()
            .map(str::to_owned)
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_may_be_in_several_files() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("s.log");
        assert!(tail(&path, 3).unwrap().is_empty());
        fs::write(file::aside(&path, 1), "a\nb\n").unwrap();
        fs::write(&path, "c\nd\n").unwrap();
        assert_eq!(tail(&path, 3).unwrap(), ["b", "c", "d"]);
        assert_eq!(tail(&path, 1).unwrap(), ["d"]);
        fs::write(&path, format!("{}\nlast\n", "x".repeat(600 * 1024))).unwrap();
        assert_eq!(tail(&path, 5).unwrap(), ["last"]);
    }

    #[test]
    fn what_follows_is_read_across_files() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("s.log");
        let mut follow = Follow::from_end(path.clone()).unwrap();
        assert!(follow.lines().unwrap().is_empty());
        fs::write(&path, "first\nsec").unwrap();
        assert_eq!(follow.lines().unwrap(), ["first"]);
        fs::write(&path, "first\nsecond\n").unwrap();
        assert_eq!(follow.lines().unwrap(), ["second"]);
        fs::rename(&path, file::aside(&path, 1)).unwrap();
        fs::write(&path, "third\n").unwrap();
        assert_eq!(follow.lines().unwrap(), ["third"]);
    }
}
