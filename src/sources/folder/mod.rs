//! A folder whose files are tools: skills (`"skills": …`), or the scripts saved next to the configuration.
//!
//! Each definition has a digest of its files, so that a change of a file is a change of the tool. Each answer has
//! the digest of the files that it was made from, so that a caller can refuse files other than those that were listed.
//!
//! *Never*: runs a file.

mod files;
mod front_matter;
mod scripts;
mod skills;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::watch::watch;
use crate::config::{Folder, Holds};
use crate::upstream::{DIGEST, Introduction, Source, SourceError, UpstreamContext};

/// A folder, opened as a server.
#[derive(Debug)]
pub(super) struct FolderSource {
    folder: Folder,
    context: Arc<UpstreamContext>,
    /// One reader at a time: the threads that wait for the disk are those of all servers, and a reader goes on when its call was cancelled.
    reader: Arc<Semaphore>,
}

impl FolderSource {
    /// Opens a folder. `changed` is called when a file in it has changed.
    pub(super) fn open(
        folder: &Folder,
        changed: Box<dyn Fn() + Send + Sync>,
        context: &Arc<UpstreamContext>,
    ) -> Arc<Self> {
        let source = Arc::new(Self {
            folder: folder.clone(),
            context: context.clone(),
            reader: Arc::new(Semaphore::new(1)),
        });
        watch(&source, Self::state, changed, context);
        source
    }

    /// The state of its files.
    fn state(&self) -> Vec<(PathBuf, Option<SystemTime>, u64)> {
        let folder = &self.folder.path;
        match self.folder.holds {
            Holds::Skills => files::state(skills::paths(folder)),
            Holds::Scripts => files::state(scripts::paths(folder)),
        }
    }

    /// Runs `read` on the folder, on a thread that may wait for the disk.
    async fn reading<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Folder) -> T + Send + 'static,
    ) -> Result<T, SourceError> {
        let unreadable = || SourceError::Arguments("its folder cannot be read".to_owned());
        let permit = self.reader.clone().acquire_owned().await;
        let permit = permit.map_err(|_| unreadable())?;
        let folder = self.folder.clone();
        let read = self.context.tasks.spawn_blocking(move || {
            let read = read(&folder);
            drop(permit);
            read
        });
        read.await.map_err(|_| unreadable())
    }
}

impl Source for FolderSource {
    fn introduction(&self) -> Introduction {
        Introduction::of_source(match self.folder.holds {
            Holds::Skills => {
                r#"{"tools":{"listChanged":true},"resources":{"listChanged":true},"extensions":{"io.modelcontextprotocol/skills":{}}}"#
            }
            Holds::Scripts => r#"{"tools":{"listChanged":true}}"#,
        })
    }

    fn tools(&self) -> BoxFuture<'_, Result<Vec<String>, SourceError>> {
        Box::pin(async move {
            let all = self.reading(|folder| {
                // Distinguishes an unreadable folder from an empty one.
                std::fs::read_dir(&folder.path).map_err(|error| {
                    format!(
                        "its folder `{}` cannot be read: {error}",
                        folder.path.display()
                    )
                })?;
                let all = match folder.holds {
                    Holds::Skills => skills::definitions(&folder.path),
                    Holds::Scripts => scripts::definitions(&folder.path)
                        .map_err(|reason| format!("its folder cannot be used: {reason}"))?,
                };
                Ok(all.iter().map(Value::to_string).collect())
            });
            all.await?.map_err(SourceError::Arguments)
        })
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a RawValue,
    ) -> BoxFuture<'a, Result<String, SourceError>> {
        Box::pin(async move {
            let given: Map<String, Value> =
                serde_json::from_str(arguments.get()).map_err(|_| {
                    SourceError::Arguments("the arguments must be an object".to_owned())
                })?;
            let tool = tool.to_owned();
            let answer = self.reading(move |folder| match folder.holds {
                Holds::Skills => {
                    let skill = skills::all(&folder.path)
                        .into_iter()
                        .find(|skill| skill.name == tool && !skill.is_listed())?;
                    Some(skill.answer(given.get("file").and_then(Value::as_str)))
                }
                Holds::Scripts => scripts::answer(&folder.path, &tool),
            });
            let answer = answer.await?.ok_or(SourceError::UnknownTool)?;
            Ok(answer.map_err(SourceError::Arguments)?.to_string())
        })
    }

    fn resources(&self) -> BoxFuture<'_, Option<Vec<String>>> {
        Box::pin(async move {
            let all = self.reading(|folder| match (folder.holds, folder.has_resources) {
                (Holds::Scripts, _) => None,
                (Holds::Skills, false) => Some(Vec::new()),
                (Holds::Skills, true) => {
                    let all = skills::all(&folder.path);
                    Some(all.iter().flat_map(skills::Skill::resources).collect())
                }
            });
            all.await.ok()?
        })
    }

    fn skills(&self) -> BoxFuture<'_, Option<Vec<String>>> {
        Box::pin(async move {
            let all = self.reading(|folder| match folder.holds {
                Holds::Skills => Some(skills::entries(&folder.path)),
                Holds::Scripts => None,
            });
            all.await.ok()?
        })
    }

    fn read<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let uri = uri.to_owned();
            self.reading(move |folder| match folder.holds {
                Holds::Skills => skills::read(&folder.path, &uri, folder.has_resources),
                Holds::Scripts => None,
            })
            .await
            .ok()?
        })
    }
}

/// The fields in the front matter of a Markdown file.
pub(crate) fn front_matter(text: &str) -> Map<String, Value> {
    front_matter::of_markdown(text).fields
}

/// The text of the saved script that this definition was made of; `None` if it is another by now.
pub(crate) fn saved_script(folder: &Folder, definition: &str) -> Option<String> {
    let definition: Value = serde_json::from_str(definition).ok()?;
    let (code, digest) = scripts::read(&folder.path, definition.get("name")?.as_str()?)?.ok()?;
    (definition.get("_meta")?.get(DIGEST)? == &Value::from(digest)).then_some(code)
}

/// `text` as the name of a tool: letters, digits, `-` and `_`, at most 64 of them. `None` if nothing is left.
fn legal_name(text: &str) -> Option<String> {
    let legal: String = text
        .trim()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '-'
            }
        })
        .take(64)
        .collect();
    let legal = legal.trim_matches('-');
    (!legal.is_empty()).then(|| legal.to_owned())
}
