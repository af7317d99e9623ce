//! The built program, driven through its real surfaces: stdio, signals and the command line, with scripted servers
//! behind it.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::needless_pass_by_value,
    reason = "a test says what goes wrong, and reads as a sentence"
)]
#![cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        reason = "some of the harness serves tests of what only Linux, or Unix, has"
    )
)]

mod imports;
mod support;

mod layers;

mod approvals;
mod audit;
mod audit_events;
mod audit_requests;
mod bridging;
mod builtin_rules;
#[cfg(target_os = "linux")]
mod daemon;
mod damaged_pins;
mod deciding;
mod dependencies;
mod direct;
mod downstream;
mod faults;
mod fidelity;
mod folders;
mod malformed;
mod meaning;

#[cfg(unix)]
mod draining;
mod graphql;
mod habits;
mod headers_command;
mod health;
mod hostile_server;
mod http_access;
mod http_downstream;
mod http_faults;
mod http_resume;
mod http_upstream;
mod identities;
mod lazy;
mod listing;
mod login_enterprise;
mod login_issuer;
mod login_keychain;
#[cfg(target_os = "linux")]
mod login_network;
mod login_pages;
mod login_survival;
mod login_terminal;
mod logins;
mod logs;
mod management;
mod meta_tools;
mod metrics;
mod modern_tasks;
mod names;
#[cfg(target_os = "linux")]
mod notifications;
#[cfg(unix)]
mod pinned_entries;
mod pins;
mod policy;
mod profiles;
mod projects;
mod prompts;
mod prose;
mod quarantine;
mod rerank;
mod resources;
mod restrictions;
mod rings;
mod select_answers;
mod skills;
mod status;
#[cfg(all(feature = "postgres", target_os = "linux"))]
mod store;
mod surface_matrix;
mod surfaces;
mod tasks;
mod traces;
mod transports;
#[cfg(all(feature = "tray", target_os = "linux"))]
mod tray;
#[cfg(target_os = "linux")]
mod ui;
mod unconfigured;
mod upstream;

mod adapted;
mod advice;
mod agent_limits;
mod answers;
mod apps;
mod arguments;
mod cache;
mod call_arguments;
mod cli;
mod clients;
mod coming_over;
mod command_advice;
mod command_line;
mod commands;
mod completions;
mod containers;
mod doctor;
mod effects;
mod entries;
mod extensions;
mod extract_secrets;
mod hygiene;
mod init;
mod jobs;
mod random_results;
mod registry;
#[cfg(target_os = "linux")]
mod replicas;
mod rule_conditions;
mod rules_check;
#[cfg(target_os = "linux")]
mod sandbox;
mod schema;
mod script_attacks;
mod script_rules;
mod scripts;
mod secret_migration;
mod secret_store;
mod secrets;
mod security;
mod shown;
mod signatures;

// Its programs are found where Unix has them.
#[cfg(unix)]
mod openapi;
mod peers;

// Named pipes in the place of files.
#[cfg(unix)]
mod odd_files;
