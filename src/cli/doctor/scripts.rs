//! Checks of `scripts`: whether one runs here, and whether a rule limits what they change.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

use super::super::printable::printable;
use super::Examination;
use super::finding::Finding;
use super::kinds;
use crate::config::{Config, ScriptTools};
use crate::scripts::{self, Consent, Host, Limits};

/// The time in which a script of one number must end.
const TIME: Duration = Duration::from_secs(10);

/// The host of a script that calls nothing.
struct Nothing;

const REFUSED: &str = "this script calls nothing";

impl Host for Nothing {
    fn call<'a>(
        &'a self,
        _name: &'a str,
        _arguments: &'a RawValue,
    ) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async { Err(REFUSED.to_owned()) })
    }

    fn ask(&self) -> BoxFuture<'_, Consent> {
        Box::pin(async { Consent::Refused(REFUSED.to_owned()) })
    }

    fn search<'a>(&'a self, _need: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async { Err(REFUSED.to_owned()) })
    }
}

pub(super) async fn examine(config: &Config, examination: &mut Examination) {
    if !config.scripts.is_on {
        return;
    }
    let limits = Limits {
        calls: 0,
        time: TIME,
    };
    if let Err(fault) = scripts::run("1", None, limits, &Nothing).await.value {
        let what = printable(&fault.message);
        let found = Finding::new(&kinds::SCRIPTS_FAIL, "scripts".to_owned(), what);
        examination.add(found);
    }
    if config.scripts.allow == ScriptTools::All
        && !config.tools.rules().any(|rule| rule.list != "allow")
    {
        let what =
            "`scripts.allow` is \"all\", and no rule under `tools` asks about a tool or denies one";
        let found = Finding::new(
            &kinds::SCRIPTS_ALL_TOOLS,
            "scripts".to_owned(),
            what.to_owned(),
        );
        examination.add(found);
    }
}
