//! The demo's steps: an agent's requests, and the text expected in each answer.

use anyhow::{Context as _, ensure};
use serde_json::value::RawValue;
use time::macros::format_description;
use time::{Date, OffsetDateTime, Weekday};

use super::ask::{Answered, Ask, ask};
use super::client::Answer;
use super::measure;
use super::report::{Cost, Exchange, Report, Step, Totals};
use super::show;
use super::stage::Stage;
use crate::cli::output::Output;
use crate::cli::tokens::{ENCODING, ListCost, Tokens, tools_of};
use crate::mcp::Object;
use mcpzip_demo::Server;

struct Walk<'a> {
    stage: &'a mut Stage,
    tokens: Tokens,
    output: &'a Output,
    steps: Vec<Step>,
}

/// Goes through all steps and prints each, unless JSON is requested.
///
/// # Errors
/// When an answer is not the expected one.
pub(super) async fn run(stage: &mut Stage, output: &Output) -> anyhow::Result<Report> {
    // Nothing runs before the first search is answered, so that the measured time is that of an ordinary start.
    stage.gateway.greet().await?;
    let first_answer = stage.gateway.age();
    let own = stage.gateway.ask("tools/list", "{}").await?;
    let need = Ask::search("convert 26.2 miles to km", "units__convert_units");
    let found = ask(&mut stage.gateway, vec![need])
        .await
        .context("the first search failed")?;
    let first_search = stage.gateway.age();

    let tokens = Tokens::load()?;
    let mut all = ListCost::default();
    let mut direct = None;
    for server in Server::ALL {
        let mut client = stage.start_directly(server)?;
        client.greet().await?;
        let cost = tokens.cost_of(&client.ask("tools/list", "{}").await?.result)?;
        all = ListCost {
            tools: all.tools + cost.tools,
            definitions: all.definitions + cost.definitions,
            listing: all.listing + cost.listing,
        };
        match server {
            Server::Units => direct = Some(client),
            _ => client.close().await,
        }
    }
    let three = tokens.cost_of(&own.result)?;

    let mut walk = Walk {
        stage,
        tokens,
        output,
        steps: Vec::new(),
    };
    if !output.is_json_asked() {
        show::opening(all.tools, output);
    }
    walk.show_tools(&own, three, all)?;
    walk.add(
        "search",
        "It searches by need",
        found,
        "A hit is enough to call a tool. This first search waited until all servers had started.",
    );
    walk.rest().await?;

    let mut direct = direct.context("the units server was not started")?;
    let times = measure::call_times(&mut walk.stage.gateway, &mut direct).await?;
    direct.close().await;
    let exchanges = || {
        walk.steps
            .iter()
            .flat_map(|step| &step.exchanges)
            .filter(|exchange| exchange.tool != LIST)
    };
    let totals = Totals {
        servers: Server::ALL.len(),
        tools: all.tools,
        with: Cost {
            definitions: three.definitions,
            listing: three.listing,
            exchanges: exchanges().map(|exchange| exchange.tokens).sum(),
        },
        without: Cost {
            definitions: all.definitions,
            listing: all.listing,
            exchanges: exchanges().map(|exchange| exchange.tokens_without).sum(),
        },
        first_answer,
        first_search,
        call: times.through,
        direct_call: times.direct,
    };
    Ok(Report {
        encoding: ENCODING,
        steps: walk.steps,
        totals,
    })
}

/// The only request of the demo that calls no tool.
const LIST: &str = "tools/list";

impl Walk<'_> {
    fn show_tools(
        &mut self,
        answer: &Answer,
        three: ListCost,
        all: ListCost,
    ) -> anyhow::Result<()> {
        let tools: Vec<Object<'_>> = tools_of(&answer.result)?;
        let lines: Vec<String> = tools
            .iter()
            .map(|tool| {
                let (name, description) = (tool.text("name"), tool.text("description"));
                format!(
                    "{:14} {}",
                    name.unwrap_or_default(),
                    description.unwrap_or_default()
                )
            })
            .collect();
        ensure!(
            lines.len() == 3,
            "mcpzip shows {} tools instead of three",
            lines.len()
        );
        let exchange = Exchange {
            tool: LIST,
            arguments: RawValue::from_string("{}".to_owned())?,
            answer: lines.join("\n"),
            is_error: false,
            took: answer.took,
            tokens: three.definitions,
            tokens_without: all.definitions,
        };
        let note = format!(
            "All {} definitions: {} tokens in every request to the model, {} as servers list them.",
            all.tools,
            show::number(all.definitions),
            show::number(all.listing)
        );
        let title = "The agent is shown three tools, however many there are".to_owned();
        self.push(Step {
            name: "tools",
            title,
            exchanges: vec![exchange],
            note,
        });
        Ok(())
    }

    async fn rest(&mut self) -> anyhow::Result<()> {
        let [monday, friday] = next_week(OffsetDateTime::now_utc().date())?;
        let convert = |value: &str| format!(r#"{{"value":{value},"from":"mi","to":"km"}}"#);
        self.step(
            "search_again",
            "Another need, another server",
            vec![Ask::search(
                "find a free hour next week",
                "calendar__find_free_slots",
            )],
            "The model saw none of this before it asked.",
        )
        .await?;
        self.step(
            "describe",
            "It reads a full definition",
            vec![Ask::describe(
                "calendar__find_free_slots",
                "\"inputSchema\"",
            )],
            "The schema is the server's own, byte for byte.",
        )
        .await?;
        let event = format!(
            r#"{{"title":"Training","start":"{monday}T09:00:00Z","minutes":90,"repeat":{{"every":"day","count":5}}}}"#
        );
        let note =
            r#"{"title":"Race day","body":"A marathon is 42.1648128 km.","tags":["running"]}"#;
        let texts = r#"{"old":"10 km\nrest","new":"12 km\nrest","changes_only":true}"#;
        self.step(
            "execute",
            "It calls tools of four servers, all at once",
            vec![
                Ask::execute("units__convert_units", &convert("26.2"), "42.1648128"),
                Ask::execute("calendar__create_event", &event, "\"id\":1"),
                Ask::execute("notes__create_note", note, "\"id\":1"),
                Ask::execute("text__diff_texts", texts, "+ 12 km"),
            ],
            "Sent in one write, answered by four processes side by side, in the servers' own bytes.",
        )
        .await?;
        let range = format!(
            r#"{{"from":"{monday}T00:00:00Z","to":"{friday}T23:59:59Z","minutes":60,"limit":2}}"#
        );
        self.step(
            "results",
            "The changes are real",
            vec![
                Ask::execute("calendar__find_free_slots", &range, "T10:30:00Z"),
                Ask::execute("notes__search_notes", r#"{"query":"marathon"}"#, "Race day"),
            ],
            "The free time begins where the training ends.",
        )
        .await?;
        self.step(
            "mistakes",
            "It makes mistakes, and the errors say what to do",
            vec![
                Ask::execute(
                    "units__convert_unit",
                    &convert("26.2"),
                    "units__convert_units",
                )
                .mistaken(),
                Ask::execute(
                    "units__convert_units",
                    r#"{"value":"far","to":"km"}"#,
                    "Call it as",
                )
                .mistaken(),
                Ask::execute("units__convert_units", &convert("\"26.2\""), "42.1648128"),
            ],
            "The last call has a number as text. Only one meaning fits, so it was repaired and called.",
        )
        .await?;
        #[cfg(unix)]
        self.crash(&convert("26.2")).await?;
        Ok(())
    }

    /// Kills a server and calls one of its tools.
    #[cfg(unix)]
    async fn crash(&mut self, arguments: &str) -> anyhow::Result<()> {
        use rustix::process::{Signal, kill_process};
        let before = self.stage.process_of(Server::Units)?;
        kill_process(before, Signal::KILL).context("cannot kill the units server")?;
        let asks = vec![Ask::execute(
            "units__convert_units",
            arguments,
            "42.1648128",
        )];
        let title = "A server is killed, and the next call works";
        let answered = ask(&mut self.stage.gateway, asks)
            .await
            .with_context(|| format!("`{title}` failed"))?;
        let after = self.stage.process_of(Server::Units)?;
        ensure!(before != after, "the units server was not started again");
        let note = format!(
            "Process {} was killed; {} was started for this call.",
            before.as_raw_nonzero(),
            after.as_raw_nonzero()
        );
        self.add("crash", title, answered, &note);
        Ok(())
    }

    async fn step(
        &mut self,
        name: &'static str,
        title: &str,
        asks: Vec<Ask>,
        note: &str,
    ) -> anyhow::Result<()> {
        let answered = ask(&mut self.stage.gateway, asks)
            .await
            .with_context(|| format!("`{title}` failed"))?;
        self.add(name, title, answered, note);
        Ok(())
    }

    fn add(&mut self, name: &'static str, title: &str, answered: Vec<Answered>, note: &str) {
        let exchanges = answered
            .into_iter()
            .map(|answered| answered.counted(&self.tokens))
            .collect();
        self.push(Step {
            name,
            title: title.to_owned(),
            exchanges,
            note: note.to_owned(),
        });
    }

    fn push(&mut self, step: Step) {
        if !self.output.is_json_asked() {
            show::step(self.steps.len() + 1, &step, self.output);
        }
        self.steps.push(step);
    }
}

/// Monday and Friday of the week after `today`.
fn next_week(today: Date) -> anyhow::Result<[String; 2]> {
    let monday = today.next_occurrence(Weekday::Monday);
    let friday = monday.next_occurrence(Weekday::Friday);
    let format = format_description!("[year]-[month]-[day]");
    Ok([monday.format(format)?, friday.format(format)?])
}

#[cfg(test)]
mod tests {
    use time::macros::date;

    use super::*;

    #[test]
    fn next_week_begins_after_this_one() {
        for today in [
            date!(2026 - 11 - 16),
            date!(2026 - 11 - 21),
            date!(2026 - 11 - 22),
        ] {
            assert_eq!(
                next_week(today).unwrap(),
                ["2026-11-23", "2026-11-27"],
                "{today}"
            );
        }
    }
}
