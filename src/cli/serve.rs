//! `mcpzip serve`: the main job.

use super::diagnostics::Exit;
use crate::app::App;

pub(super) async fn run(app: App) -> Result<(), Exit> {
    Ok(app.serve_stdio().await?)
}
