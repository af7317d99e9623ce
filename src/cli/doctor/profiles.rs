//! Checks of `profiles`: whether each one, and each that a client is given, can be used.

use super::super::printable::printable;
use super::Examination;
use super::finding::Finding;
use super::kinds;
use crate::config::{Config, ProfileRequest};

pub(super) fn examine(config: &Config, examination: &mut Examination) {
    let names = config.profiles.iter().flat_map(|profiles| profiles.keys());
    for name in names {
        let refusal = config.narrowed(std::slice::from_ref(name)).err();
        if let Some(refusal) = refusal {
            let what = printable(&refusal.to_string());
            examination.add(Finding::new(&kinds::PROFILE_UNUSABLE, name.clone(), what));
        }
    }
    let clients = config.surface.clients.iter();
    for (client, _) in clients.filter(|(_, own)| own.profile.is_some()) {
        let names = config.profiles_of(ProfileRequest {
            client: Some(crate::config::introduced(client)),
            ..ProfileRequest::default()
        });
        if let Err(refusal) = config.narrowed(&names) {
            let key = format!("clients.{client}.profile");
            let what = printable(&format!("`{key}`: {refusal}"));
            examination.add(Finding::new(&kinds::PROFILE_UNUSABLE, key, what));
        }
    }
}
