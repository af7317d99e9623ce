//! Approvals of single calls: questions about calls of clients that cannot ask their user, and a person's decisions.
//!
//! A question is a file in a private directory below the state directory, so that a person can decide it in a
//! command or in the daemon, which are other processes than the one that asked. Every change is made under one lock.
//! Only the process that asked acts on a decision, and it uses a permission once.
//!
//! Several replicas have the questions in their store, sealed. A session that goes on at another replica uses the approval there.

mod desk;
mod watch;

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::config::RuleList;
use crate::secret::random_bytes;
use crate::store::{Kind, Records, Table};
use desk::Desk;

pub(crate) use watch::Watch;

/// The time for which a question or a decision is valid, in seconds.
pub(crate) const LIFE: u64 = 10 * 60;

/// How far the clocks of two replicas may be apart, in seconds.
const TOLERANCE: u64 = 60;

/// The maximum number of questions of one session, of one person, of all, and of all at several replicas.
const MOST_OF_ONE: usize = 16;
const MOST_OF_PERSON: usize = 64;
const MOST: usize = 128;
const MOST_OF_REPLICAS: usize = 1024;

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
    /// The store does not answer.
    #[error("the approvals in the store cannot be read or written: {source}")]
    Store {
        /// The reason.
        source: io::Error,
    },
}

/// The questions of all sessions that use a state directory, or the store of several replicas.
#[derive(Debug, Clone)]
pub(crate) struct Approvals {
    place: QuestionStorage,
}

/// The place of the questions.
#[derive(Debug, Clone)]
enum QuestionStorage {
    Directory(PathBuf),
    Shared(Arc<dyn Records>),
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
        // Another replica's clock may be ahead. After the clock was set back, the time cannot be known.
        (now() + TOLERANCE)
            .checked_sub(since)
            .map_or(0, |age| LIFE.saturating_sub(age.saturating_sub(TOLERANCE)))
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
        Self {
            place: QuestionStorage::Directory(state_dir.join("approvals")),
        }
    }

    /// The questions of a run: in the store if replicas share one, and otherwise below the state directory.
    #[must_use]
    pub(crate) fn of(state: &crate::store::State) -> Self {
        match &state.shared {
            None => Self::below(&state.directory),
            Some(shared) => Self {
                place: QuestionStorage::Shared(shared.clone()),
            },
        }
    }

    /// Whether several replicas have them.
    #[must_use]
    pub(crate) fn are_shared(&self) -> bool {
        matches!(self.place, QuestionStorage::Shared(_))
    }

    /// Stores a question, or renews the one that is stored about the same call. Returns its id and whether it is new.
    ///
    /// # Errors
    /// When there are too many, or the place cannot be used.
    pub(crate) fn ask(&self, question: &Question) -> Result<(String, bool), Error> {
        let most = match self.are_shared() {
            true => MOST_OF_REPLICAS,
            false => MOST,
        };
        self.change(|desk| {
            let known = desk.read_all()?;
            if let Some(mut same) = known.iter().find(|one| one.call == question.call).cloned() {
                if same.state() == State::Pending {
                    same.asked = now();
                    desk.write(&same)?;
                }
                return Ok((same.id, false));
            }
            // Decided questions do not count.
            let waiting = known.iter().filter(|one| one.state() == State::Pending);
            let all = waiting.clone().count();
            let of_person = waiting
                .clone()
                .filter(|one| one.person.is_some() && one.person == question.person)
                .count();
            let own = waiting.filter(|one| one.session == question.session);
            let own = own.count();
            if own >= MOST_OF_ONE {
                return Err(Error::TooMany(format!("{own} calls of this session")));
            }
            if of_person >= MOST_OF_PERSON {
                return Err(Error::TooMany(format!("{of_person} calls of this person")));
            }
            if all >= most {
                return Err(Error::TooMany(format!("{all} calls")));
            }
            desk.write(question)?;
            Ok((question.id.clone(), true))
        })
    }

    /// The state of a question. A permission is used up: the next question about the same call is a new one.
    ///
    /// # Errors
    /// When the place cannot be used.
    pub(crate) fn take(&self, id: &str) -> Result<State, Error> {
        if let QuestionStorage::Shared(records) = &self.place {
            // As long as nothing is decided, no statement is sent.
            let table = records.all(Kind::Approvals).map_err(in_store)?;
            let known = Desk::of(records.as_ref(), &table).read(id)?;
            if known.is_some_and(|known| known.state() == State::Pending) {
                return Ok(State::Pending);
            }
        }
        self.change(|desk| {
            let Some(question) = desk.read(id)? else {
                return Ok(State::Gone);
            };
            let state = question.state();
            if matches!(state, State::Allowed | State::Gone) {
                // A permission that cannot be removed could be used twice.
                desk.remove(id)?;
            }
            Ok(state)
        })
    }

    /// Removes a question, with its permission if that is still unused.
    ///
    /// # Errors
    /// When the place cannot be used.
    pub(crate) fn withdraw(&self, id: &str) -> Result<(), Error> {
        self.change(|desk| desk.remove(id))
    }

    /// Decides on a question. The first decision counts.
    ///
    /// # Errors
    /// When nothing waits for it any more, it was decided before, or the place cannot be used.
    pub(crate) fn decide(&self, id: &str, is_allowed: bool) -> Result<Question, Error> {
        if self.has_none() {
            return Err(Error::Unknown(id.to_owned()));
        }
        self.change(|desk| {
            let question = desk.read(id)?.filter(|one| one.state() != State::Gone);
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
            desk.write(&question)?;
            Ok(question)
        })
    }

    /// The questions that wait for a decision, the oldest first.
    ///
    /// # Errors
    /// When the place cannot be used.
    pub(crate) fn pending(&self) -> Result<Vec<Question>, Error> {
        if self.has_none() {
            return Ok(Vec::new());
        }
        let mut questions = match &self.place {
            QuestionStorage::Directory(_) => self.change(|desk| desk.read_all())?,
            QuestionStorage::Shared(records) => {
                let table = records.all(Kind::Approvals).map_err(in_store)?;
                Desk::of(records.as_ref(), &table).read_all()?
            }
        };
        questions.retain(|one| one.state() == State::Pending);
        questions.sort_by(|a, b| (a.asked, &a.id).cmp(&(b.asked, &b.id)));
        Ok(questions)
    }

    /// Reports changes of the questions from now on.
    pub(crate) fn watch(&self) -> Watch {
        match &self.place {
            QuestionStorage::Directory(directory) => Watch::new(directory),
            QuestionStorage::Shared(records) => Watch::of(records.clone()),
        }
    }

    /// Whether the directory of questions is missing.
    fn has_none(&self) -> bool {
        matches!(&self.place, QuestionStorage::Directory(directory) if !directory.is_dir())
    }

    /// Changes questions, which nothing else changes meanwhile.
    fn change<T>(&self, work: impl Fn(&Desk<'_>) -> Result<T, Error>) -> Result<T, Error> {
        match &self.place {
            QuestionStorage::Directory(directory) => {
                let _lock = desk::lock(directory)?;
                work(&Desk::Directory(directory))
            }
            QuestionStorage::Shared(records) => {
                let mut outcome = None;
                let change = &mut |table: &Table| {
                    let desk = Desk::of(records.as_ref(), table);
                    let done = work(&desk);
                    let changes = match &done {
                        Ok(_) => desk.into_changes(),
                        Err(_) => Vec::new(),
                    };
                    outcome = Some(done);
                    changes
                };
                records.change(Kind::Approvals, change).map_err(in_store)?;
                outcome.expect("the change was made")
            }
        }
    }
}

fn in_store(source: io::Error) -> Error {
    Error::Store { source }
}

fn new_id() -> String {
    BASE32_NOPAD.encode(&random_bytes::<5>()).to_lowercase()
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::files;

    fn question(session: &str, arguments: &str) -> Question {
        Question::about(session, ("files", "write"), "as it is", arguments)
    }

    #[test]
    fn a_permission_is_used_once_and_by_its_own_call_only() {
        let directory = tempfile::tempdir().unwrap();
        let approvals = Approvals::below(directory.path());
        let (id, is_new) = approvals.ask(&question("a", "{}")).unwrap();
        assert!(is_new);
        assert_eq!(approvals.take(&id).unwrap(), State::Pending);
        approvals.decide(&id, true).unwrap();
        for other in [question("b", "{}"), question("a", "{ }")] {
            let (other, is_new) = approvals.ask(&other).unwrap();
            assert!(is_new && other != id);
            assert_eq!(approvals.take(&other).unwrap(), State::Pending);
        }
        assert_eq!(
            approvals.ask(&question("a", "{}")).unwrap(),
            (id.clone(), false)
        );
        assert_eq!(approvals.take(&id).unwrap(), State::Allowed);
        assert_eq!(approvals.take(&id).unwrap(), State::Gone);
        assert!(approvals.ask(&question("a", "{}")).unwrap().1);
    }

    #[test]
    fn of_two_people_the_first_decides() {
        let directory = tempfile::tempdir().unwrap();
        let approvals = Approvals::below(directory.path());
        for _ in 0..20 {
            let (id, _) = approvals.ask(&question("a", "{}")).unwrap();
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
        for (shift, is_allowed) in [(-601, None), (-601, Some(true)), (90, Some(true))] {
            let mut old = question("a", "{}");
            let time = now().saturating_add_signed(shift);
            old.asked = time;
            old.decision = is_allowed.map(|is_allowed| Decision { is_allowed, time });
            let place = directory.path().join("approvals");
            files::create_private_directory(&place).unwrap();
            let desk = Desk::Directory(&place);
            desk.write(&old).unwrap();
            assert_eq!(approvals.take(&old.id).unwrap(), State::Gone, "{old:?}");
            desk.write(&old).unwrap();
            let refused = approvals.decide(&old.id, true).unwrap_err();
            assert!(refused.to_string().contains("ten minutes"), "{refused}");
            assert_eq!(approvals.pending().unwrap(), []);
            assert!(!place.join(format!("{}.json", old.id)).exists());
        }
    }

    /// Replicas have clocks of their own.
    #[test]
    fn a_question_of_a_clock_that_is_ahead_is_valid() {
        let directory = tempfile::tempdir().unwrap();
        let approvals = Approvals::below(directory.path());
        let mut early = question("a", "{}");
        early.asked = now() + 30;
        approvals.ask(&early).unwrap();
        assert_eq!(approvals.pending().unwrap().len(), 1);
        approvals.decide(&early.id, true).unwrap();
        assert_eq!(approvals.take(&early.id).unwrap(), State::Allowed);
    }

    #[test]
    fn one_person_leaves_room_for_others() {
        let directory = tempfile::tempdir().unwrap();
        let approvals = Approvals::below(directory.path());
        let asks = |session: &str, number: usize, person: &str| {
            let mut asked = question(session, &number.to_string());
            asked.person = Some(person.to_owned());
            approvals.ask(&asked)
        };
        for number in 0..MOST_OF_PERSON {
            let session = (number / MOST_OF_ONE).to_string();
            asks(&session, number, "anna").unwrap();
        }
        let refused = asks("another", 0, "anna").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "64 calls of this person wait for approval already"
        );
        asks("hers", 0, "bo").unwrap();
    }

    #[test]
    fn one_session_leaves_room_for_others() {
        let directory = tempfile::tempdir().unwrap();
        let approvals = Approvals::below(directory.path());
        for number in 0..MOST_OF_ONE {
            approvals.ask(&question("a", &number.to_string())).unwrap();
        }
        let refused = approvals.ask(&question("a", "one more")).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "16 calls of this session wait for approval already"
        );
        approvals.ask(&question("b", "{}")).unwrap();
        let pending = approvals.pending().unwrap();
        assert_eq!(pending.len(), MOST_OF_ONE + 1);
        let own = pending.iter().filter(|one| one.session == "a");
        approvals
            .decide(&own.clone().next().unwrap().id, false)
            .unwrap();
        approvals.ask(&question("a", "one more")).unwrap();
    }

    #[test]
    fn denied_questions_leave_room_for_others() {
        let directory = tempfile::tempdir().unwrap();
        let approvals = Approvals::below(directory.path());
        for number in 0..MOST {
            let asked = question(&number.to_string(), "{}");
            let (id, _) = approvals.ask(&asked).unwrap();
            approvals.decide(&id, false).unwrap();
        }
        approvals.ask(&question("a", "{}")).unwrap();
    }

    #[test]
    fn no_id_leads_out_of_the_directory_and_what_is_not_understood_is_never_allowed() {
        let directory = tempfile::tempdir().unwrap();
        let approvals = Approvals::below(directory.path());
        let (id, _) = approvals.ask(&question("a", "{}")).unwrap();
        for wrong in ["", "../config", "aaaaaaa/", "AAAAAAAA", "aaaaaaaaa"] {
            assert!(approvals.decide(wrong, true).is_err(), "{wrong}");
            assert_eq!(approvals.take(wrong).unwrap(), State::Gone);
        }
        let place = directory.path().join("approvals");
        let path = place.join(format!("{id}.json"));
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
            assert_eq!(mode(&place), 0o700);
            approvals.ask(&question("c", "{}")).unwrap();
            let files = fs::read_dir(&place).unwrap();
            for file in files
                .map(|file| file.unwrap().path())
                .filter(|file| *file != path)
            {
                assert_eq!(mode(&file), 0o600, "{}", file.display());
            }
        }
    }
}
