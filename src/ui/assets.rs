//! The files of the page, which the program carries. `web/` has their source.

use include_dir::{Dir, include_dir};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/web/dist");

/// Names the scripts and styles by their content, so that the program is built again when they change.
const _: &[u8] = include_bytes!("../../web/dist/index.html");

/// The media type and content of a file.
pub(super) fn file(path: &str) -> Option<(&'static str, &'static [u8])> {
    let (_, extension) = path.rsplit_once('.')?;
    let kind = match extension {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        "json" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        _ => return None,
    };
    Some((kind, FILES.get_file(path)?.contents()))
}
