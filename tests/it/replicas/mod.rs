//! Several replicas of the program on a real PostgreSQL, behind a real HAProxy that sends each request to the next one.

pub(crate) mod cluster;
mod cost;
mod failure;
mod leaving;
mod logins;
mod lost;
mod modern;
mod placement;
mod sessions;
mod upgrade;
mod visits;
