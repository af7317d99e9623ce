//! Servers inside the program. `command/` makes the subcommands of a program tools.
//!
//! *Never*: knows a client or a rule; runs a shell.

mod command;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::config::{CommandLine, Stdio};
use crate::tool::ServerName;
use crate::upstream::{ConnectError, OpenSource, Source, UpstreamContext};
use command::CommandSource;

/// Makes the sources of a session.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The directory of what was read from programs' help; `None` keeps nothing.
    pub(crate) directory: Option<PathBuf>,
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
            let kept = self.directory.as_deref();
            let source = CommandSource::open(server, program, command_line, kept, context)?;
            Ok(Arc::new(source) as Arc<dyn Source>)
        })
    }
}
