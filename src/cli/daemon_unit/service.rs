//! The files that make mcpzip a service of the system, and the commands that start and end it.

use std::path::{Path, PathBuf};

use super::super::diagnostics::Exit;
use crate::config::{Environment, Paths};
use crate::executable;

/// The sentence by which our files are recognised; others are not touched.
pub(super) const MARK: &str = "Written by `mcpzip daemon install`.";

/// The files of a service.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) files: Vec<ServiceFile>,
    /// The socket on which the system listens for the daemon, if it does.
    pub(super) socket: Option<PathBuf>,
    /// The directory of its log, which the system does not make.
    pub(super) log_directory: Option<PathBuf>,
    /// The command that starts it, and what it then does.
    pub(super) start: String,
}

#[derive(Debug)]
pub(super) struct ServiceFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) encoding: Encoding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    /// UTF-16 with a byte order mark, as Windows writes tasks.
    Utf16,
}

/// The files of an installed service.
#[derive(Debug)]
pub(super) struct Installed {
    pub(super) files: Vec<PathBuf>,
    /// The command that ends it.
    pub(super) end: String,
}

/// The program and its files, as text.
#[derive(Debug)]
pub(super) struct Program<'a> {
    pub(super) path: String,
    pub(super) config_file: &'a str,
    pub(super) cache_dir: &'a str,
    pub(super) state_dir: &'a str,
}

impl<'a> Program<'a> {
    /// # Errors
    /// When a path is not Unicode or has a line break, or the program's file is gone.
    pub(super) fn of(paths: &'a Paths) -> Result<Self, Exit> {
        Ok(Self {
            path: text(&executable::path()?)?.to_owned(),
            config_file: text(&paths.config_file)?,
            cache_dir: text(&paths.cache_dir)?,
            state_dir: text(&paths.state_dir)?,
        })
    }

    /// The program with the arguments `first`, followed by those that name its files.
    pub(super) fn words<'w>(&'w self, first: &[&'w str]) -> Vec<&'w str> {
        let files = [
            "--config",
            self.config_file,
            "--cache-dir",
            self.cache_dir,
            "--state-dir",
            self.state_dir,
        ];
        let words = std::iter::once(self.path.as_str());
        words.chain(first.iter().copied()).chain(files).collect()
    }
}

impl ServiceFile {
    /// The bytes to write.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self.encoding {
            Encoding::Utf8 => self.text.clone().into_bytes(),
            Encoding::Utf16 => {
                let units = std::iter::once(0xFEFF).chain(self.text.encode_utf16());
                units.flat_map(u16::to_le_bytes).collect()
            }
        }
    }
}

/// Whether the bytes of a file have our sentence.
pub(super) fn is_ours(bytes: &[u8]) -> bool {
    let text = match bytes.strip_prefix(&[0xFF, 0xFE]) {
        Some(wide) => {
            let units = wide
                .chunks_exact(2)
                .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
            String::from_utf16_lossy(&units.collect::<Vec<_>>())
        }
        None => String::from_utf8_lossy(bytes).into_owned(),
    };
    // It is in a comment at the beginning.
    text.lines().take(3).any(|line| line.contains(MARK))
}

/// An absolute path in a variable.
pub(super) fn directory_of<'a>(environment: &'a Environment, name: &str) -> Option<&'a Path> {
    let path = environment.get(name).map(Path::new);
    path.filter(|path| path.is_absolute())
}

/// # Errors
/// When `path` is not Unicode or has a control character.
pub(super) fn text(path: &Path) -> Result<&str, Exit> {
    let text = path
        .to_str()
        .filter(|text| !text.contains(char::is_control));
    text.ok_or_else(|| {
        Exit::failed(format!(
            "the path `{}` cannot be written into a service: it is not Unicode, or has a control character",
            path.display()
        ))
    })
}

/// `text` in an XML file.
pub(super) fn xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// The error if no variable names the home directory.
pub(super) fn homeless() -> Exit {
    Exit::failed("there is no home directory: set HOME to an absolute path")
}
