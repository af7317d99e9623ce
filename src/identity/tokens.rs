//! The file of tokens. It also has the state of mcpzip's authorization server: invitations, the browsers of people
//! who accepted one, and the grants of clients. It has only hashes of secrets, so a copy of it grants no access.
//!
//! A token has 256 random bits and cannot be guessed, so one round of SHA-256 protects it. The file is replaced
//! whole under a lock. If it cannot be read, was written by a newer version, or can be changed by other users, every
//! token is denied.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::HEXLOWER;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Fingerprint;
use crate::config::{Claims, FileLock};
use crate::files;
use crate::secret::{Secret, random_bytes};
use crate::store::{Change, Kind, Records, State, Table};

/// The directory of the file, below the state directory.
const DIRECTORY: &str = "identity";
/// The name of the file.
const FILE: &str = "tokens.json";

/// The beginning of every token, by which scanners for leaked secrets can find it.
pub(super) const PREFIX: &str = "mcpzip_";

/// The beginning of the identity that a token gives.
pub(super) const TOKEN: &str = "token:";

/// The beginning of the identity of a person who was invited.
pub(super) const INVITED: &str = "person:";

/// The version of the file's form. The first one has tokens alone, the second one people too, the third one tokens that manage: the
/// oldest that has all is written.
const VERSION: u32 = 3;

/// The largest file, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// How long an invitation counts, if not told otherwise.
const INVITATION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How long a revocation is remembered, in seconds: longer than a login and its code count.
const REVOCATION: u64 = 60 * 60;

/// How long a token that does not count any more is shown.
const SHOWN: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The file of tokens, or their records in the store that replicas share.
#[derive(Debug, Clone)]
pub(crate) struct TokenFile {
    path: PathBuf,
    shared: Option<Arc<dyn Records>>,
}

/// The state of the content, as far as the directory or the store shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stamp {
    /// That of a file; `None` without one.
    File(Option<(Option<SystemTime>, u64, [u64; 2])>),
    /// The number of changes in the store.
    Shared(u64),
}

/// All tokens.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    list: Vec<Stored>,
    valid: BTreeMap<Fingerprint, usize>,
    people: People,
}

/// The people and clients of the authorization server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct People {
    /// Invitations that were not accepted yet.
    pub(crate) invitations: Vec<Known>,
    /// The browsers of people who accepted one.
    pub(crate) browsers: Vec<Known>,
    /// The clients that people let in.
    pub(crate) grants: Vec<Grant>,
    /// The names that were revoked just now, and when: logins that began before end without tokens.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) revoked: BTreeMap<String, u64>,
}

/// A person by a secret: that of an invitation, or of a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    /// The id, by which it can be revoked.
    pub(crate) id: String,
    /// The name of the person.
    pub(crate) name: String,
    pub(super) sha256: String,
    /// The roles that it gives.
    pub(crate) roles: BTreeSet<String>,
    /// The profile that it is limited to.
    pub(crate) profile: Option<String>,
    /// In seconds since 1970, as all times here.
    pub(crate) created: u64,
    pub(crate) expires: u64,
}

/// A client that a person let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grant {
    /// The id, by which it can be revoked.
    pub(crate) id: String,
    /// The name of the person.
    pub(crate) name: String,
    /// The identity.
    pub(crate) identity: String,
    pub(super) groups: BTreeSet<String>,
    /// The roles that it gives.
    pub(crate) roles: BTreeSet<String>,
    /// The profile that it is limited to.
    pub(crate) profile: Option<String>,
    /// The id of the browser in which the person let it in; none for a login at a provider, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) browser: Option<String>,
    /// The provider at which the person has logged in; none for an invitation, and in older files, whose logins do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) issuer: Option<String>,
    /// The name that the client gives itself.
    pub(crate) client: String,
    /// The hash of the client's id.
    pub(super) client_sha256: String,
    pub(super) scopes: BTreeSet<String>,
    pub(crate) created: u64,
    pub(crate) expires: u64,
    /// The number of the refresh token that counts, and when it was given.
    pub(super) turn: u64,
    pub(super) turned: u64,
}

/// A token as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stored {
    /// Its id, by which it can be revoked.
    pub(crate) id: String,
    /// The name of the person or program that it is for.
    pub(crate) name: String,
    sha256: String,
    /// The roles that it gives.
    pub(crate) roles: BTreeSet<String>,
    /// The profile that it is limited to.
    pub(crate) profile: Option<String>,
    /// Whether it manages the gateway in its window, if its roles do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) manages: bool,
    /// In seconds since 1970, like the others.
    pub(crate) created: u64,
    pub(crate) expires: Option<u64>,
    pub(crate) revoked: Option<u64>,
}

/// The file as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    tokens: Vec<Stored>,
    #[serde(default, skip_serializing_if = "People::is_empty")]
    people: People,
}

/// The version alone, to say what is wrong with a file of a newer one.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// The revoked tokens, invitations, browsers and grants.
#[derive(Debug, Default)]
pub(crate) struct Revoked {
    /// Tokens.
    pub(crate) tokens: Vec<Stored>,
    /// The id, the person's name and the kind of everything else.
    pub(crate) others: Vec<(String, String, &'static str)>,
    /// The accounts of people of whom nothing is left.
    pub(crate) accounts: BTreeSet<String>,
}

/// A token to make.
#[derive(Debug, Default)]
pub(crate) struct NewToken {
    /// The name of the person or program that it is for.
    pub(crate) name: String,
    /// The roles that it gives.
    pub(crate) roles: BTreeSet<String>,
    /// The profile that it is limited to.
    pub(crate) profile: Option<String>,
    /// Whether it manages the gateway in its window, if its roles do.
    pub(crate) manages: bool,
    /// How long it counts.
    pub(crate) lifetime: Option<Duration>,
}

/// Why the tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("the file of tokens `{}` cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the file of tokens `{}` is damaged: {problem}", path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error("the file of tokens `{}` was written by a newer version of mcpzip", path.display())]
    Newer { path: PathBuf },
    #[error("other users can change the file of tokens `{}`; `chmod 600` prevents that, after you have looked at `mcpzip token list`", path.display())]
    Open { path: PathBuf },
    #[error("the file of tokens `{}` cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("another process is changing the file of tokens `{}`; try again", path.display())]
    Locked { path: PathBuf },
    #[error("the tokens in the store cannot be used: {source}")]
    Store { source: io::Error },
    #[error("no valid token has the name or id `{0}`; `mcpzip token list` shows them")]
    Unknown(String),
}

impl Stored {
    /// The time from which it does not count.
    pub(super) fn expires(&self) -> Option<SystemTime> {
        // A time that cannot be represented has passed.
        let time = |seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        self.expires
            .map(|seconds| time(seconds).unwrap_or(UNIX_EPOCH))
    }

    /// Whether it counts.
    #[must_use]
    pub(crate) fn is_valid(&self) -> bool {
        self.revoked.is_none() && self.expires.is_none_or(|expires| expires > now())
    }

    /// The time since which it does not count.
    fn ended(&self) -> Option<u64> {
        let ends = self.revoked.into_iter().chain(self.expires).min()?;
        (ends <= now()).then_some(ends)
    }
}

impl Stamp {
    /// The state of no file.
    pub(super) const fn none() -> Self {
        Self::File(None)
    }

    pub(super) fn of(path: &Path) -> Self {
        let metadata = std::fs::metadata(path).ok();
        Self::File(metadata.map(|metadata| {
            #[cfg(unix)]
            let file = {
                use std::os::unix::fs::MetadataExt as _;
                [metadata.ino(), u64::from(metadata.mode())]
            };
            #[cfg(not(unix))]
            let file = [0; 2];
            (metadata.modified().ok(), metadata.len(), file)
        }))
    }
}

impl People {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The ids of all that counts.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        let known = self.invitations.iter().chain(&self.browsers);
        let known = known.map(|one| one.id.as_str());
        known.chain(self.grants.iter().map(|one| one.id.as_str()))
    }

    /// The names of the people.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let known = self.invitations.iter().chain(&self.browsers);
        let known = known.map(|one| one.name.as_str());
        known.chain(self.grants.iter().map(|one| one.name.as_str()))
    }

    /// The browser with this id, if it counts.
    pub(super) fn browser(&self, id: &str) -> Option<&Known> {
        let mut browsers = self.browsers.iter();
        browsers.find(|one| one.id == id && one.expires > now())
    }

    /// Forgets what has ended.
    fn tidy(&mut self) {
        let now = now();
        self.revoked.retain(|_, at| *at + REVOCATION > now);
        self.invitations.retain(|one| one.expires > now);
        self.browsers.retain(|one| one.expires > now);
        self.grants.retain(|one| one.expires > now);
    }
}

impl Known {
    /// The facts about its person.
    #[must_use]
    pub(crate) fn claims(&self) -> Claims {
        Claims {
            identity: format!("{INVITED}{}", self.name),
            name: self.name.clone(),
            roles: self.roles.clone(),
            profile: self.profile.clone(),
            ..Claims::default()
        }
    }

    /// Whether it has this secret, and has not ended.
    pub(super) fn is_by(&self, secret: &str) -> bool {
        self.expires > now() && self.sha256 == sha256(secret)
    }
}

impl Grant {
    /// The facts about its person.
    #[must_use]
    pub(crate) fn claims(&self) -> Claims {
        Claims {
            identity: self.identity.clone(),
            issuer: self.issuer.clone(),
            name: self.name.clone(),
            groups: self.groups.clone(),
            roles: self.roles.clone(),
            profile: self.profile.clone(),
            token: None,
        }
    }
}

impl Tokens {
    /// Finds the hashes of the tokens.
    ///
    /// # Errors
    /// The problem with a hash.
    fn of((list, people): (Vec<Stored>, People)) -> Result<Self, String> {
        let mut valid = BTreeMap::new();
        for (index, token) in list.iter().enumerate() {
            let hash = HEXLOWER.decode(token.sha256.as_bytes()).ok();
            let hash = hash.and_then(|hash| Fingerprint::try_from(hash).ok());
            let hash = hash.ok_or_else(|| format!("the hash of `{}` is wrong", token.id))?;
            if valid.insert(hash, index).is_some() {
                return Err(format!("the hash of `{}` is there twice", token.id));
            }
        }
        Ok(Self {
            list,
            valid,
            people,
        })
    }

    /// The grant with this id, if it counts.
    pub(super) fn grant(&self, id: &str) -> Option<&Grant> {
        let mut grants = self.people.grants.iter();
        grants.find(|grant| grant.id == id && grant.expires > now())
    }

    /// The people and clients of the authorization server.
    #[must_use]
    pub(crate) fn people(&self) -> &People {
        &self.people
    }

    /// The valid token with this hash.
    pub(super) fn find(&self, fingerprint: &Fingerprint) -> Option<&Stored> {
        let token = self.list.get(*self.valid.get(fingerprint)?)?;
        token.is_valid().then_some(token)
    }

    /// The accounts of tokens and of invitations with this name, where nothing with it counts.
    #[must_use]
    pub(crate) fn left(&self, name: &str) -> Vec<String> {
        left(&self.list, &self.people, name)
    }

    /// The time since which something counts for the one who has this identity now, in seconds since 1970; `None` for identities that are
    /// not kept here. An earlier person with the name may have been another one.
    pub(super) fn since(&self, identity: &str) -> Option<u64> {
        let since = if let Some(name) = identity.strip_prefix(TOKEN) {
            let tokens = self.list.iter().filter(|one| one.is_valid());
            let theirs = tokens.filter(|one| one.name == name);
            theirs.map(|one| one.created).min()
        } else if let Some(name) = identity.strip_prefix(INVITED) {
            let known = self.people.invitations.iter().chain(&self.people.browsers);
            let known = known.filter(|one| one.name == name && one.expires > now());
            let grants = self.people.grants.iter();
            let grants = grants.filter(|one| one.identity == identity && one.expires > now());
            let grants = grants.map(|one| one.created);
            known.map(|one| one.created).chain(grants).min()
        } else {
            return None;
        };
        // A name whose last credential has just ended has no earlier records.
        Some(since.unwrap_or_else(now))
    }

    /// All tokens, also those that do not count any more.
    pub(crate) fn list(&self) -> &[Stored] {
        &self.list
    }
}

impl TokenFile {
    /// The file of tokens in the state directory `state_dir`.
    #[must_use]
    pub(crate) fn below(state_dir: &Path) -> Self {
        Self::of(&State::of_files(state_dir))
    }

    /// The tokens of a run with this state.
    #[must_use]
    pub(crate) fn of(state: &State) -> Self {
        Self {
            path: state.directory.join(DIRECTORY).join(FILE),
            shared: state.shared.clone(),
        }
    }

    pub(super) fn stamp(&self) -> Stamp {
        match &self.shared {
            None => Stamp::of(&self.path),
            Some(shared) => Stamp::Shared(shared.stamp(Kind::Identity)),
        }
    }

    /// The path of another file next to it.
    pub(super) fn sibling(&self, name: &str) -> PathBuf {
        self.path.with_file_name(name)
    }

    /// The store, if replicas share the tokens.
    pub(super) fn shared(&self) -> Option<&Arc<dyn Records>> {
        self.shared.as_ref()
    }

    /// Learns of all changes that other replicas have made before. A file needs none of that.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(super) async fn refresh(&self) -> Result<(), TokenError> {
        match &self.shared {
            Some(shared) => shared.refresh(Kind::Identity).await.map_err(of_store),
            None => Ok(()),
        }
    }

    /// The tokens in which `is_there` finds a thing, with the latest changes of other replicas if it is not in those that are known.
    ///
    /// # Errors
    /// When there is a file that cannot be trusted, or the store does not answer.
    pub(super) async fn read_with(
        &self,
        is_there: impl Fn(&Tokens) -> bool,
    ) -> Result<Tokens, TokenError> {
        let known = self.read()?;
        if is_there(&known) {
            return Ok(known);
        }
        self.refresh().await?;
        self.read()
    }

    /// The tokens; none without a file.
    ///
    /// # Errors
    /// When there is a file that cannot be trusted.
    pub(crate) fn read(&self) -> Result<Tokens, TokenError> {
        let path = || self.path.clone();
        if let Some(shared) = &self.shared {
            let table = shared.all(Kind::Identity).map_err(of_store)?;
            return Tokens::of(read_records(&table).map_err(of_store)?)
                .map_err(|problem| of_store(io::Error::other(problem)));
        }
        let damaged = |problem: String| TokenError::Damaged {
            path: path(),
            problem,
        };
        let bytes = match files::read_regular(&self.path, LARGEST) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Tokens::default()),
            Err(source) => {
                let path = path();
                return Err(TokenError::Read { path, source });
            }
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let metadata = std::fs::metadata(&self.path);
            let mode = metadata.map(|metadata| metadata.permissions().mode());
            if mode.is_ok_and(|mode| mode & 0o022 != 0) {
                return Err(TokenError::Open { path: path() });
            }
        }
        // The text of an error could have a part of the file.
        let problem =
            |error: serde_json::Error| damaged(format!("it is wrong near line {}", error.line()));
        let versioned: Versioned = serde_json::from_slice(&bytes).map_err(problem)?;
        if versioned.version > VERSION {
            return Err(TokenError::Newer { path: path() });
        }
        let written: Written = serde_json::from_slice(&bytes).map_err(problem)?;
        Tokens::of((written.tokens, written.people)).map_err(damaged)
    }

    /// Adds the tokens and people of `files` to those of the store. Returns their number.
    ///
    /// # Errors
    /// When the files cannot be read, or the store cannot be written.
    #[cfg(feature = "postgres")]
    pub(crate) fn take_over(&self, files: &Self) -> Result<usize, TokenError> {
        let Tokens { list, people, .. } = files.read()?;
        let count = list.len() + people.ids().count();
        self.change(|tokens, known| {
            let is_new = |id: &String, known: &[String]| !known.contains(id);
            let ids: Vec<String> = tokens.iter().map(|one| one.id.clone()).collect();
            tokens.extend(list.into_iter().filter(|one| is_new(&one.id, &ids)));
            let ids: Vec<String> = known.ids().map(str::to_owned).collect();
            let new = people.invitations.into_iter();
            known
                .invitations
                .extend(new.filter(|one| is_new(&one.id, &ids)));
            let new = people.browsers.into_iter();
            known
                .browsers
                .extend(new.filter(|one| is_new(&one.id, &ids)));
            let new = people.grants.into_iter();
            known.grants.extend(new.filter(|one| is_new(&one.id, &ids)));
            Ok(())
        })?;
        Ok(count)
    }

    /// Makes a token. Its text is returned once and is stored nowhere.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub(crate) fn create(&self, new: NewToken) -> Result<(Stored, Secret<String>), TokenError> {
        let text = format!("{PREFIX}{}", random_secret());
        let stored = Stored {
            id: HEXLOWER.encode(&random_bytes::<4>()),
            name: new.name,
            sha256: sha256(&text),
            roles: new.roles,
            profile: new.profile,
            manages: new.manages,
            created: now(),
            expires: new
                .lifetime
                .map(|lifetime| now().saturating_add(lifetime.as_secs())),
            revoked: None,
        };
        let made = stored.clone();
        self.change(|tokens, _| {
            tokens.push(stored);
            Ok(())
        })?;
        Ok((made, Secret::new(text)))
    }

    /// Makes an invitation. The secret of its link is returned once and is stored nowhere.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub(crate) fn invite(&self, new: NewToken) -> Result<(Known, Secret<String>), TokenError> {
        let secret = random_secret();
        let lifetime = new.lifetime.unwrap_or(INVITATION);
        let invitation = Known {
            id: HEXLOWER.encode(&random_bytes::<4>()),
            name: new.name,
            sha256: sha256(&secret),
            roles: new.roles,
            profile: new.profile,
            created: now(),
            expires: now().saturating_add(lifetime.as_secs()),
        };
        let made = invitation.clone();
        self.change(|_, people| {
            people.invitations.push(invitation);
            Ok(())
        })?;
        Ok((made, Secret::new(secret)))
    }

    /// Revokes all that has this name or id: tokens, invitations, browsers and grants, and the grants of such a browser. A name is also
    /// noted, which ends its logins in progress. Returns the ids and the person's name.
    ///
    /// # Errors
    /// When there is none, or the file cannot be read or written.
    pub(crate) fn revoke(&self, name: &str) -> Result<Revoked, TokenError> {
        let revoked = self.change(|tokens, people| {
            // An id goes before a name, which could be chosen to look like one.
            let is_id = tokens
                .iter()
                .any(|token| token.id == name && token.is_valid())
                || people.ids().any(|id| id == name);
            let is_meant = |id: &str, owner: &str| match is_id {
                true => id == name,
                false => owner == name,
            };
            if !is_id {
                people.revoked.insert(name.to_owned(), now());
            }
            let mut revoked = Revoked::default();
            let valid = tokens.iter_mut().filter(|token| token.is_valid());
            for token in valid.filter(|token| is_meant(&token.id, &token.name)) {
                token.revoked = Some(now());
                revoked.tokens.push(token.clone());
            }
            let known = [
                (&mut people.invitations, "invitation"),
                (&mut people.browsers, "browser"),
            ];
            for (list, kind) in known {
                for one in list.extract_if(.., |one| is_meant(&one.id, &one.name)) {
                    revoked.others.push((one.id, one.name, kind));
                }
            }
            let browsers: BTreeSet<String> =
                revoked.others.iter().map(|(id, ..)| id.clone()).collect();
            let is_over = |one: &mut Grant| {
                let browser = one.browser.as_ref();
                is_meant(&one.id, &one.name) || browser.is_some_and(|id| browsers.contains(id))
            };
            for one in people.grants.extract_if(.., is_over) {
                if !is_id {
                    revoked.accounts.insert(one.claims().account());
                }
                revoked.others.push((one.id, one.name, "client"));
            }
            let owners = revoked.tokens.iter().map(|token| token.name.as_str());
            let owners = owners.chain(revoked.others.iter().map(|(_, name, _)| name.as_str()));
            let owners: BTreeSet<&str> = owners.collect();
            let left = owners.iter().flat_map(|owner| left(tokens, people, owner));
            revoked.accounts.extend(left);
            Ok(revoked)
        })?;
        match revoked.tokens.is_empty() && revoked.others.is_empty() {
            true => Err(TokenError::Unknown(name.to_owned())),
            false => Ok(revoked),
        }
    }

    /// Changes the people and clients of the authorization server.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub(super) fn change_people<T>(
        &self,
        change: impl FnOnce(&mut People) -> T,
    ) -> Result<T, TokenError> {
        self.change(|_, people| Ok(change(people)))
    }

    /// Changes one grant that counts. `change` gets it with the time, which is that of the store if replicas share one, and returns its
    /// outcome and whether the grant stays. `None` if there is no such grant.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub(super) fn change_grant<T>(
        &self,
        id: &str,
        change: impl FnOnce(&mut Grant, u64) -> (T, bool),
    ) -> Result<Option<T>, TokenError> {
        let Some(shared) = &self.shared else {
            return self.change_people(|people| {
                let at = people.grants.iter().position(|grant| grant.id == id)?;
                let (outcome, stays) = change(&mut people.grants[at], now());
                if !stays {
                    people.grants.remove(at);
                }
                Some(outcome)
            });
        };
        let key = format!("{OF_GRANT}{id}");
        let (mut change, mut outcome) = (Some(change), Ok(None));
        let changed = shared.change_one(Kind::Identity, &key, &mut |body, now| {
            let before = match parsed::<Grant>(&key, body?) {
                Ok(grant) => grant,
                Err(error) => {
                    outcome = Err(of_store(error));
                    return None;
                }
            };
            if before.expires <= now {
                return None;
            }
            let mut after = before.clone();
            let (result, stays) = change.take()?(&mut after, now);
            outcome = Ok(Some(result));
            (!stays || after != before).then(|| (key.clone(), stays.then(|| json(&after))))
        });
        changed.map_err(of_store)?;
        outcome
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Stored>, &mut People) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        if let Some(shared) = &self.shared {
            return change_shared(shared.as_ref(), change);
        }
        let path = || self.path.clone();
        let failed = |source| TokenError::Write {
            path: path(),
            source,
        };
        let _lock = FileLock::acquire(&self.path)
            .map_err(failed)?
            .ok_or_else(|| TokenError::Locked { path: path() })?;
        let Tokens {
            list: mut tokens,
            mut people,
            ..
        } = self.read()?;
        let outcome = changed(&mut tokens, &mut people, change)?;
        let written = Written {
            version: match tokens.iter().any(|token| token.manages) {
                true => VERSION,
                false if people.is_empty() => 1,
                false => 2,
            },
            tokens,
            people,
        };
        let mut text = serde_json::to_vec_pretty(&written).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        files::replace(&self.path, &[&text]).map_err(failed)?;
        Ok(outcome)
    }
}

fn of_store(source: io::Error) -> TokenError {
    TokenError::Store { source }
}

/// Applies a change, and forgets what has ended for long.
fn changed<T>(
    tokens: &mut Vec<Stored>,
    people: &mut People,
    change: impl FnOnce(&mut Vec<Stored>, &mut People) -> Result<T, TokenError>,
) -> Result<T, TokenError> {
    people.tidy();
    let outcome = change(tokens, people)?;
    let oldest = now().saturating_sub(SHOWN.as_secs());
    tokens.retain(|token| token.ended().is_none_or(|ended| ended >= oldest));
    Ok(outcome)
}

/// Changes the tokens in the store. It is committed when this returns.
fn change_shared<T>(
    shared: &dyn Records,
    change: impl FnOnce(&mut Vec<Stored>, &mut People) -> Result<T, TokenError>,
) -> Result<T, TokenError> {
    let (mut change, mut outcome) = (Some(change), None);
    shared
        .change(Kind::Identity, &mut |table| {
            let Some(change) = change.take() else {
                return Vec::new();
            };
            let changes = read_records(table).map_err(of_store);
            let changes = changes.and_then(|(mut tokens, mut people)| {
                outcome = Some(Ok(changed(&mut tokens, &mut people, change)?));
                Ok(record_changes(table, &tokens, &people))
            });
            changes.unwrap_or_else(|error| {
                outcome = Some(Err(error));
                Vec::new()
            })
        })
        .map_err(of_store)?;
    outcome.expect("a change that has succeeded was asked for")
}

/// The accounts of tokens and of invitations with this name, where nothing with it counts: the next person with the name is another one.
fn left(tokens: &[Stored], people: &People, name: &str) -> Vec<String> {
    let mut tokens = tokens.iter();
    let has_token = tokens.any(|token| token.name == name && token.is_valid());
    let mut known = people.invitations.iter().chain(&people.browsers);
    let is_known = known.any(|one| one.name == name && one.expires > now());
    let left = [("token", has_token), ("person", is_known)];
    let left = left.into_iter().filter(|(_, is_there)| !is_there);
    left.map(|(kind, _)| format!("{kind}:{name}")).collect()
}

/// A secret of 256 random bits, as text.
pub(super) fn random_secret() -> String {
    URL_SAFE_NO_PAD.encode(random_bytes::<32>())
}

/// The hash of a secret, as it is kept.
pub(super) fn sha256(secret: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(secret))
}

/// The time in seconds since 1970.
pub(super) fn now() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    elapsed.map_or(0, |elapsed| elapsed.as_secs())
}

// The records in the store: one for each token, person and grant, so that a change writes little.

const OF_TOKEN: &str = "token/";
const OF_INVITATION: &str = "invitation/";
const OF_BROWSER: &str = "browser/";
const OF_GRANT: &str = "grant/";
const OF_REVOKED: &str = "revoked/";

/// Whether these records are tokens and people that can be used.
///
/// # Errors
/// The problem with one of them.
#[cfg(feature = "postgres")]
pub(crate) fn check_records(table: &Table) -> Result<(), String> {
    let all = read_records(table).map_err(|error| error.to_string())?;
    Tokens::of(all).map(drop)
}

/// The tokens and people of all records.
///
/// # Errors
/// When a record cannot be read.
fn read_records(table: &Table) -> io::Result<(Vec<Stored>, People)> {
    let mut tokens: Vec<Stored> = Vec::new();
    let mut people = People::default();
    for (key, body) in table {
        if key.starts_with(OF_TOKEN) {
            tokens.push(parsed(key, body)?);
        } else if key.starts_with(OF_INVITATION) {
            people.invitations.push(parsed(key, body)?);
        } else if key.starts_with(OF_BROWSER) {
            people.browsers.push(parsed(key, body)?);
        } else if key.starts_with(OF_GRANT) {
            people.grants.push(parsed(key, body)?);
        } else if let Some(name) = key.strip_prefix(OF_REVOKED) {
            people.revoked.insert(name.to_owned(), parsed(key, body)?);
        } else {
            return Err(io::Error::other(format!("`{key}` is not known here")));
        }
    }
    // Keys are random, and lists have the oldest first.
    tokens.sort_by_key(|one| one.created);
    people.invitations.sort_by_key(|one: &Known| one.created);
    people.browsers.sort_by_key(|one: &Known| one.created);
    people.grants.sort_by_key(|one: &Grant| one.created);
    Ok((tokens, people))
}

fn parsed<T: DeserializeOwned>(key: &str, body: &[u8]) -> io::Result<T> {
    // The text of an error could have a part of the record.
    serde_json::from_slice(body).map_err(|_| io::Error::other(format!("`{key}` cannot be read")))
}

/// The differences between the records and these tokens and people.
fn record_changes(before: &Table, tokens: &[Stored], people: &People) -> Vec<Change> {
    let mut after: Vec<(String, Vec<u8>)> = Vec::new();
    let mut add =
        |prefix: &str, id: &str, body: Vec<u8>| after.push((format!("{prefix}{id}"), body));
    for one in tokens {
        add(OF_TOKEN, &one.id, json(one));
    }
    for one in &people.invitations {
        add(OF_INVITATION, &one.id, json(one));
    }
    for one in &people.browsers {
        add(OF_BROWSER, &one.id, json(one));
    }
    for one in &people.grants {
        add(OF_GRANT, &one.id, json(one));
    }
    for (name, at) in &people.revoked {
        add(OF_REVOKED, name, json(at));
    }
    let mut gone: Table = before.clone();
    let mut changes = Vec::new();
    for (key, body) in after {
        if gone.remove(&key).is_none_or(|known| *known != body[..]) {
            changes.push((key, Some(body)));
        }
    }
    changes.extend(gone.into_keys().map(|key| (key, None)));
    changes
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("texts and numbers are JSON")
}
