//! Servers of other programs: taken over, connected, and everything given back to the byte.

mod approval;
mod astray;
pub(crate) mod case;
mod connect;
mod crash;
mod damaged;
mod edited;
mod good;
mod guards;
mod hidden_rules;
mod known_projects;
mod messy;
mod misread;
mod names;
mod older;
mod opened;
mod overlays;
mod projects;
mod rules;
mod sharing;
mod sources;
mod staying;
mod twins;
mod unnamed;
mod untrusted;
mod unwrapped;
mod withheld;
