//! The built program, driven through its real surfaces: stdio, signals and the command line, with scripted servers
//! behind it.

mod support;

mod layers;

mod downstream;
mod fidelity;
mod malformed;

mod listing;
mod meta_tools;
mod upstream;

mod cache;
mod cli;
mod hygiene;
