//! Approvals of single calls: questions about calls of clients that cannot ask their user, and a person's decisions.
//!
//! A question is a file in a private directory below the state directory, so that a person can decide it in a
//! command or in the daemon, which are other processes than the one that asked. Every change is made under one lock.
//! Only the process that asked acts on a decision, and it uses a permission once.

mod watch;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::config::RuleList;
use crate::files;
use crate::secret::random_bytes;

pub(crate) use watch::Watch;

/// The time for which a question or a decision is valid, in seconds.
pub(crate) const LIFE: u64 = 10 * 60;

/// The maximum number of questions of one session, and of all.
const MOST_OF_ONE: usize = 16;
const MOST: usize = 128;

/// The maximum size of a question's file, in bytes.
const LARGEST: u64 = 512 * 1024;

/// The maximum length of a client's name, in characters.
const LONGEST_NAME: usize = 100;

/// A question about one call. A file with members that this version does not know is not shown, and never decided on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    pub(crate) id: String,
    /// The session that may use the approval.
    pub(crate) session: String,
    /// The client's name and version, as given.
    pub(crate) client: Option<String>,
    /// The directory that the client works in.
    pub(crate) directory: Option<PathBuf>,
    /// The configuration whose rules ask.
    pub(crate) configuration: Option<PathBuf>,
    /// The person whose call it is, as `@user:` names them in rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) person: Option<String>,
    /// The profiles that the session was narrowed to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) profiles: Vec<String>,
    /// The lists of rules that ask about some call of the tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) lists: Vec<RuleList>,
    pub(crate) server: String,
    pub(crate) tool: String,
    /// Whether it is about several calls of a script, in place of one call of this tool.
    #[serde(default)]
    pub(crate) is_list: bool,
    /// The hash of session, server, tool, definition, entry and arguments.
    pub(crate) call: String,
    /// The question with the whole arguments, as it is shown.
    pub(crate) question: String,
    /// The rule that asks.
    pub(crate) rule: Option<String>,
    /// When it was asked last, in seconds since 1970.
    pub(crate) asked: u64,
    /// The decision, if there is one.
    pub(crate) decision: Option<Decision>,
}

/// A person's decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Decision {
    pub(crate) is_allowed: bool,
    /// When, in seconds since 1970.
    pub(crate) time: u64,
}

/// The state of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Pending,
    /// The call may be made; the permission is used up by that answer.
    Allowed,
    Denied,
    /// It was used, withdrawn, or has expired.
    Gone,
}

/// A question that was not stored, or not decided.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// There are too many.
    #[error("{0} wait for approval already")]
    TooMany(String),
    /// There is no such question.
    #[error(
        "no call waits for approval `{0}`: it was used or withdrawn, or ten minutes have passed"
    )]
    Unknown(String),
    /// Another person was first.
    #[error("`{id}` was {word} before")]
    Decided {
        /// The question.
        id: String,
        /// The decision.
        word: &'static str,
    },
    /// The directory cannot be used.
    #[error("the approvals in `{path}` cannot be read or written: {source}")]
    Disk {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The questions of all sessions that use a state directory.
#[derive(Debug, Clone)]
pub(crate) struct Approvals {
    directory: PathBuf,
}

impl Question {
    /// A question that nothing is known of but the call. `subject` changes with the tool's definition and its server's entry.
    #[must_use]
    pub(crate) fn about(
        session: &str,
        (server, tool): (&str, &str),
        subject: &str,
        arguments: &str,
    ) -> Self {
        let mut call = String::new();
        for part in [session, server, tool, subject, arguments] {
            // With their lengths, no two sets of parts are the same text.
            let _ = write!(call, "{}:{part}", part.len());
        }
        Self {
            id: new_id(),
            session: session.to_owned(),
            client: None,
            directory: None,
            configuration: None,
            person: None,
            profiles: Vec::new(),
            lists: Vec::new(),
            server: server.to_owned(),
            tool: tool.to_owned(),
            is_list: arguments.starts_with('['),
            call: data_encoding::HEXLOWER.encode(&Sha256::digest(call)),
            question: String::new(),
            rule: None,
            asked: now(),
            decision: None,
        }
    }

    /// Names the client; a long name is cut.
    #[must_use]
    pub(crate) fn of_client(mut self, name: &str, version: &str) -> Self {
        let text = format!("{name} {version}");
        self.client = Some(text.chars().take(LONGEST_NAME).collect());
        self
    }

    /// A copy of the question with a new id, for another attempt.
    #[must_use]
    pub(crate) fn anew(&self) -> Self {
        Self {
            id: new_id(),
            asked: now(),
            ..self.clone()
        }
    }

    /// The seconds for which it is valid from now on.
    #[must_use]
    pub(crate) fn remaining(&self) -> u64 {
        let since = self.decision.as_ref().map_or(self.asked, |made| made.time);
        // After the clock was set back, the time cannot be known.
        now()
            .checked_sub(since)
            .map_or(0, |age| LIFE.saturating_sub(age))
    }

    fn state(&self) -> State {
        match &self.decision {
            _ if self.remaining() == 0 => State::Gone,
            None => State::Pending,
            Some(Decision {
                is_allowed: true, ..
            }) => State::Allowed,
            Some(_) => State::Denied,
        }
    }
}

impl Approvals {
    /// The questions in a state directory.
    #[must_use]
    pub(crate) fn below(state_dir: &Path) -> Self {
        let directory = state_dir.join("approvals");
        Self { directory }
    }

    /// Stores a question, or renews the one that is stored about the same call. Returns its id and whether it is new.
    ///
    /// # Errors
    /// When there are too many, or the directory cannot be used.
    pub(crate) fn ask(&self, question: Question) -> Result<(String, bool), Error> {
        let _lock = self.lock()?;
        let known = self.read_all()?;
        if let Some(mut same) = known.iter().find(|one| one.call == question.call).cloned() {
            if same.state() == State::Pending {
                same.asked = now();
                self.write(&same)?;
            }
            return Ok((same.id, false));
        }
        // Decided questions do not count.
        let waiting = known.iter().filter(|one| one.state() == State::Pending);
        let all = waiting.clone().count();
        let own = waiting.filter(|one| one.session == question.session);
        let own = own.count();
        if own >= MOST_OF_ONE {
            return Err(Error::TooMany(format!("{own} calls of this session")));
        }
        if all >= MOST {
            return Err(Error::TooMany(format!("{all} calls")));
        }
        self.write(&question)?;
        Ok((question.id, true))
    }

    /// The state of a question. A permission is used up: the next question about the same call is a new one.
    ///
    /// # Errors
    /// When the directory cannot be used.
    pub(crate) fn take(&self, id: &str) -> Result<State, Error> {
        let _lock = self.lock()?;
        let Some(question) = self.read(id)? else {
            return Ok(State::Gone);
        };
        let state = question.state();
        if matches!(state, State::Allowed | State::Gone) {
            // A permission that cannot be removed could be used twice.
            self.remove(id)?;
        }
        Ok(state)
    }

    /// Removes a question, with its permission if that is still unused.
    ///
    /// # Errors
    /// When the directory cannot be used.
    pub(crate) fn withdraw(&self, id: &str) -> Result<(), Error> {
        let _lock = self.lock()?;
        self.remove(id)
    }

    /// Decides on a question. The first decision counts.
    ///
    /// # Errors
    /// When nothing waits for it any more, it was decided before, or the directory cannot be used.
    pub(crate) fn decide(&self, id: &str, is_allowed: bool) -> Result<Question, Error> {
        if !self.directory.is_dir() {
            return Err(Error::Unknown(id.to_owned()));
        }
        let _lock = self.lock()?;
        let question = self.read(id)?.filter(|one| one.state() != State::Gone);
        let Some(mut question) = question else {
            return Err(Error::Unknown(id.to_owned()));
        };
        if let Some(made) = &question.decision {
            let word = if made.is_allowed { "allowed" } else { "denied" };
            let id = id.to_owned();
            return Err(Error::Decided { id, word });
        }
        let time = now();
        question.decision = Some(Decision { is_allowed, time });
        self.write(&question)?;
        Ok(question)
    }

    /// The questions that wait for a decision, the oldest first.
    ///
    /// # Errors
    /// When the directory cannot be used.
    pub(crate) fn pending(&self) -> Result<Vec<Question>, Error> {
        if !self.directory.is_dir() {
            return Ok(Vec::new());
        }
        let _lock = self.lock()?;
        let mut questions = self.read_all()?;
        questions.retain(|one| one.state() == State::Pending);
        questions.sort_by(|a, b| (a.asked, &a.id).cmp(&(b.asked, &b.id)));
        Ok(questions)
    }

    /// Reports changes of the questions from now on.
    pub(crate) fn watch(&self) -> Watch {
        Watch::new(&self.directory)
    }

    /// Locks out other processes until the returned file is dropped.
    fn lock(&self) -> Result<File, Error> {
        let locked = files::create_private_directory(&self.directory).and_then(|()| {
            let file = files::open_lock(&self.directory.join("lock"))?;
            file.lock()?;
            Ok(file)
        });
        locked.map_err(|source| self.disk(source))
    }

    /// All questions that are valid. The files of others are removed.
    fn read_all(&self) -> Result<Vec<Question>, Error> {
        let mut questions = Vec::new();
        let files = fs::read_dir(&self.directory).map_err(|source| self.disk(source))?;
        for file in files {
            let file = file.map_err(|source| self.disk(source))?;
            let path = file.path();
            let is_file = file.file_type().is_ok_and(|kind| kind.is_file());
            if !is_file || path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let stem = path.file_stem().unwrap_or_default();
            match self.read(&stem.to_string_lossy())? {
                Some(question) if question.state() != State::Gone => questions.push(question),
                // A file of a newer version stays until it is old.
                None if !is_old(&path) => {}
                _ => fs::remove_file(&path).map_err(|source| self.disk(source))?,
            }
        }
        Ok(questions)
    }

    /// A question; `None` if there is none, or it cannot be understood.
    fn read(&self, id: &str) -> Result<Option<Question>, Error> {
        let Some(path) = self.path(id) else {
            return Ok(None);
        };
        match files::read_regular(&path, LARGEST) {
            Ok(bytes) => {
                let question: Option<Question> = serde_json::from_slice(&bytes).ok();
                Ok(question.filter(|question| question.id == id))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.disk(source)),
        }
    }

    fn write(&self, question: &Question) -> Result<(), Error> {
        let path = self.path(&question.id).unwrap_or_default();
        let json = serde_json::to_vec(question).unwrap_or_default();
        files::replace(&path, &[&json]).map_err(|source| self.disk(source))
    }

    fn remove(&self, id: &str) -> Result<(), Error> {
        match self.path(id).map(fs::remove_file) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(self.disk(error)),
            _ => Ok(()),
        }
    }

    /// The file of a question; `None` for an invalid id, so that no text leads out of the directory.
    fn path(&self, id: &str) -> Option<PathBuf> {
        let is_id = id.len() == 8
            && id
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        is_id.then(|| self.directory.join(format!("{id}.json")))
    }

    fn disk(&self, source: io::Error) -> Error {
        let path = self.directory.clone();
        Error::Disk { path, source }
    }
}

fn new_id() -> String {
    BASE32_NOPAD.encode(&random_bytes::<5>()).to_lowercase()
}

fn is_old(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    let age = modified.ok().and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age > Duration::from_secs(LIFE))
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(session: &str, arguments: &str) -> Question {
        Question::about(session, ("files", "write"), "as it is", arguments)
    }

    #[test]
    fn a_permission_is_used_once_and_by_its_own_call_only() {
        let directory = tempfile::tempdir().unwrap();
        let approvals = Approvals::below(directory.path());
        let (id, is_new) = approvals.ask(question("a", "{}")).unwrap();
        assert!(is_new);
        assert_eq!(approvals.take(&id).unwrap(), State::Pending);
        approvals.decide(&id, true).unwrap();
        for other in [question("b", "{}"), question("a", "{ }")] {
            let (other, is_new) = approvals.ask(other).unwrap();
            assert!(is_new && other != id);
            assert_eq!(approvals.take(&other).unwrap(), State::Pending);
        }
        assert_eq!(
            approvals.ask(question("a", "{}")).unwrap(),
            (id.clone(), false)
        );
        assert_eq!(approvals.take(&id).unwrap(), State::Allowed);
        assert_eq!(approvals.take(&id).unwrap(), State::Gone);
        assert!(approvals.ask(question("a", "{}")).unwrap().1);
    }

    #[test]
    fn of_two_people_the_first_decides() {
        let directory = tempfile::tempdir().unwrap();
        let approvals = Approvals::below(directory.path());
        for _ in 0..20 {
            let (id, _) = approvals.ask(question("a", "{}")).unwrap();
            let decided = std::thread::scope(|scope| {
                let people = [true, false].map(|is_allowed| {
                    let (approvals, id) = (&approvals, &id);
                    scope.spawn(move || approvals.decide(id, is_allowed))
                });
                people.map(|person| person.join().unwrap())
            });
            let [allowed, denied] = &decided;
            assert!(allowed.is_ok() != denied.is_ok(), "{decided:?}");
            let (expected, word) = match allowed {
                Ok(_) => (State::Allowed, "was allowed before"),
                Err(_) => (State::Denied, "was denied before"),
            };
            let second = decided.iter().find_map(|one| one.as_ref().err()).unwrap();
            assert!(second.to_string().contains(word), "{second}");
            assert_eq!(approvals.take(&id).unwrap(), expected);
            approvals.withdraw(&id).unwrap();
        }
    }

    #[test]
    fn questions_and_decisions_expire() {
        let directory = tempfile::tempdir().unwrap();
        let approvals = Approvals::below(directory.path());
        for (shift, is_allowed) in [(-601, None), (-601, Some(true)), (3600, Some(true))] {
            let mut old = question("a", "{}");
            let time = now().saturating_add_signed(shift);
            old.asked = time;
            old.decision = is_allowed.map(|is_allowed| Decision { is_allowed, time });
            files::create_private_directory(&approvals.directory).unwrap();
            approvals.write(&old).unwrap();
            assert_eq!(approvals.take(&old.id).unwrap(), State::Gone, "{old:?}");
            approvals.write(&old).unwrap();
            let refused = approvals.decide(&old.id, true).unwrap_err();
            assert!(refused.to_string().contains("ten minutes"), "{refused}");
            assert_eq!(approvals.pending().unwrap(), []);
            assert!(!approvals.path(&old.id).unwrap().exists());
        }
    }

    #[test]
    fn one_session_leaves_room_for_others() {
        let directory = tempfile::tempdir().unwrap();
        let approvals = Approvals::below(directory.path());
        for number in 0..MOST_OF_ONE {
            approvals.ask(question("a", &number.to_string())).unwrap();
        }
        let refused = approvals.ask(question("a", "one more")).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "16 calls of this session wait for approval already"
        );
        approvals.ask(question("b", "{}")).unwrap();
        let pending = approvals.pending().unwrap();
        assert_eq!(pending.len(), MOST_OF_ONE + 1);
        let own = pending.iter().filter(|one| one.session == "a");
        approvals
            .decide(&own.clone().next().unwrap().id, false)
            .unwrap();
        approvals.ask(question("a", "one more")).unwrap();
    }

    #[test]
    fn denied_questions_leave_room_for_others() {
        let directory = tempfile::tempdir().unwrap();
        let approvals = Approvals::below(directory.path());
        for number in 0..MOST {
            let asked = question(&number.to_string(), "{}");
            let (id, _) = approvals.ask(asked).unwrap();
            approvals.decide(&id, false).unwrap();
        }
        approvals.ask(question("a", "{}")).unwrap();
    }

    #[test]
    fn no_id_leads_out_of_the_directory_and_what_is_not_understood_is_never_allowed() {
        let directory = tempfile::tempdir().unwrap();
        let approvals = Approvals::below(directory.path());
        let (id, _) = approvals.ask(question("a", "{}")).unwrap();
        for wrong in ["", "../config", "aaaaaaa/", "AAAAAAAA", "aaaaaaaaa"] {
            assert!(approvals.decide(wrong, true).is_err(), "{wrong}");
            assert_eq!(approvals.take(wrong).unwrap(), State::Gone);
        }
        let path = approvals.path(&id).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        for text in [
            text.replacen('{', r#"{"newer":1,"#, 1),
            "{".to_owned(),
            text.replace(&id, "aaaaaaaa"),
        ] {
            fs::write(&path, text).unwrap();
            assert!(approvals.decide(&id, true).is_err());
            assert_eq!(approvals.pending().unwrap(), []);
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&approvals.directory), 0o700);
            approvals.ask(question("c", "{}")).unwrap();
            let files = fs::read_dir(&approvals.directory).unwrap();
            for file in files
                .map(|file| file.unwrap().path())
                .filter(|file| *file != path)
            {
                assert_eq!(mode(&file), 0o600, "{}", file.display());
            }
        }
    }
}
