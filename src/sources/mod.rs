//! Servers inside the program, whose tools are made from something else: the subcommands of a program (`command/`),
//! the operations of an HTTP interface (`openapi/`), the queries and mutations of a GraphQL interface (`graphql/`),
//! or the skills or scripts in a folder (`folder/`).
//!
//! *Never*: knows a client or a rule; runs a shell.

mod command;
mod folder;
mod graphql;
mod openapi;
mod watch;
mod yaml;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::config::{CommandLine, DescriptionLocation, Folder, OpenApi, Remote, Stdio};
use crate::tool::ServerName;
use crate::upstream::{ConnectError, OpenSource, Source, UpstreamContext};
use command::CommandSource;
use folder::FolderSource;
pub(crate) use folder::{front_matter, saved_script};
use graphql::GraphQlSource;
pub(crate) use openapi::described_servers;
use openapi::{Descriptions, OpenApiSource};

/// Makes the sources of a session.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The cache directory, in which programs' help and descriptions are kept; `None` keeps nothing.
    directory: Option<PathBuf>,
    descriptions: Descriptions,
}

impl Sources {
    /// Sources that keep what they have read in the cache directory.
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self {
            directory,
            descriptions: Descriptions::default(),
        }
    }
}

impl OpenSource for Sources {
    fn open<'a>(
        &'a self,
        server: &'a ServerName,
        program: &'a Stdio,
        command_line: &'a CommandLine,
        context: &'a Arc<UpstreamContext>,
    ) -> BoxFuture<'a, Result<Arc<dyn Source>, ConnectError>> {
        Box::pin(async move {
            let kept = self.directory.as_ref().map(|cache| cache.join("commands"));
            let kept = kept.as_deref();
            let source = CommandSource::open(server, program, command_line, kept, context)?;
            Ok(Arc::new(source) as Arc<dyn Source>)
        })
    }

    fn open_interface(
        &self,
        server: &ServerName,
        remote: &Remote,
        openapi: &OpenApi,
        changed: Box<dyn Fn() + Send + Sync>,
        context: &Arc<UpstreamContext>,
    ) -> Result<Arc<dyn Source>, ConnectError> {
        if openapi.description == DescriptionLocation::Introspection {
            return Ok(GraphQlSource::open(server, remote, openapi, context)?);
        }
        let kept = self
            .directory
            .as_ref()
            .map(|cache| cache.join("descriptions"));
        let (known, kept) = (&self.descriptions, kept.as_deref());
        let source = OpenApiSource::open(server, remote, openapi, changed, known, kept, context)?;
        Ok(source)
    }

    fn open_folder(
        &self,
        folder: &Folder,
        changed: Box<dyn Fn() + Send + Sync>,
        context: &Arc<UpstreamContext>,
    ) -> Arc<dyn Source> {
        FolderSource::open(folder, changed, context)
    }
}
