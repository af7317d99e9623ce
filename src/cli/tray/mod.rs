//! `mcpzip tray`: an item in the panel of the desktop, which shows the state of the daemon and offers a few actions.
//!
//! It is a view over the control interface and the files of pause and approvals. `item.rs` is the item on the bus of the session, `state.rs`
//! what it shows, `icon.rs` its picture. A build without the feature `tray`, and one for another system than Linux, has none of them.

#[cfg(all(feature = "tray", target_os = "linux"))]
mod icon;
#[cfg(all(feature = "tray", target_os = "linux"))]
mod item;
#[cfg(all(feature = "tray", target_os = "linux"))]
mod state;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip tray
  mcpzip tray --config ./team.json

The item shows whether the daemon runs, how many calls wait for approval, and whether mcpzip is paused. Its menu opens the window and pauses; `Quit` ends the item only. It is there on Linux, in a build with the feature `tray`, in panels that show StatusNotifier items: those of KDE and XFCE, and that of GNOME with the extension AppIndicator.")]
pub(super) struct Arguments {}

#[cfg(all(feature = "tray", target_os = "linux"))]
pub(super) use item::run;

/// Says that there is no tray, and what to do.
#[cfg(not(all(feature = "tray", target_os = "linux")))]
pub(super) fn absent() -> super::diagnostics::Exit {
    super::diagnostics::Exit::failed(match cfg!(target_os = "linux") {
        true => {
            "this build of mcpzip has no tray: `cargo install --path . --locked --features tray`, in a clone of mcpzip, makes one that has; `mcpzip ui` and `mcpzip top` show the same"
        }
        false => "there is no tray for this system: `mcpzip ui` and `mcpzip top` show the same",
    })
}
