//! A host for the official conformance suite, in its direction "client": it starts the real `mcpzip` over stdio with the
//! suite's server behind it, and does with `search_tools`, `describe_tool` and `execute_tool` what a scenario asks for.
//!
//! `conformance_client URL` takes the rest from the suite's variables: the scenario, the protocol revision, which says how
//! host, `mcpzip` and server speak, and for some scenarios a context. It expects `mcpzip` where cargo builds it beside the
//! examples, and ends with 1 and a line on stderr when anything goes wrong. The suite judges by what its server saw.

#![allow(
    clippy::print_stderr,
    reason = "what went wrong is for whoever reads the suite's report"
)]

mod auth;
mod host;
mod input;

use std::process::ExitCode;

use serde_json::{Map, Value, json};

use host::{Failure, Host, UPSTREAM};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("conformance_client: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let url = std::env::args().nth(1).ok_or("no URL given")?;
    if url == auth::BROWSE {
        return auth::browse(&std::env::args().nth(2).ok_or("no page given")?);
    }
    let scenario = variable("MCP_CONFORMANCE_SCENARIO").ok_or("no scenario given")?;
    let revision =
        variable("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_else(|| "2025-11-25".to_owned());
    if scenario.starts_with("auth/") {
        let context = variable("MCP_CONFORMANCE_CONTEXT")
            .map_or(Ok(Value::Null), |text| serde_json::from_str(&text))?;
        let era = if revision == "2026-07-28" {
            "modern"
        } else {
            "legacy"
        };
        return auth::play(&scenario, &url, era, &context);
    }
    let mut host = Host::start(&url, &revision)?;
    play(&scenario, &mut host)?;
    host.finish()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the suite speaks to its clients by variables"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Does what the scenario needs; what has no entry of its own lists the tools and calls each.
fn play(scenario: &str, host: &mut Host) -> Result<(), Failure> {
    match scenario {
        // Their servers have no tools, or must only be listed.
        "request-metadata" => host.listed(0).map(drop),
        "json-schema-ref-no-deref" => {
            host.listed(1)?;
            host.search("look up a user profile")?;
            host.describe("lookup_user").map(drop)
        }
        "http-custom-headers" => calls_of_the_context(host),
        "json-schema-2020-12-preservation" => echo_the_schema(host),
        "sep-2322-client-request-state" => answer_side_by_side(host),
        "sep-2640-client-no-prefetch" => {
            // Found by its front matter and described, but not needed.
            host.listed(1)?;
            host.search("fill a PDF form")?;
            host.describe(SKILL).map(drop)
        }
        "sep-2640-client-verify-digest"
        | "sep-2640-client-verify-size"
        | "sep-2640-client-verify-frontmatter" => refuse_the_skill(host),
        "initialize"
        | "tools_call"
        | "sse-retry"
        | "elicitation-sep1034-client-defaults"
        | "http-standard-headers"
        | "http-invalid-tool-headers" => call_what_is_offered(host),
        unknown => Err(format!("the scenario {unknown} is not known here").into()),
    }
}

/// Calls every tool that is listed, with arguments made from its schema.
fn call_what_is_offered(host: &mut Host) -> Result<(), Failure> {
    let count = host.listed_any()?;
    let names = if count == 0 {
        Vec::new()
    } else {
        host.search("tool test header number")?
    };
    if names.len() != count {
        return Err(format!("{count} tools are listed, found are {names:?}").into());
    }
    for name in names {
        let definition = host.describe(&name)?;
        let arguments = input::fitting(&definition["inputSchema"]);
        host.execute(&name, &arguments)?;
    }
    Ok(())
}

fn calls_of_the_context(host: &mut Host) -> Result<(), Failure> {
    let context = variable("MCP_CONFORMANCE_CONTEXT").ok_or("no context given")?;
    let context: Value = serde_json::from_str(&context)?;
    for call in context["toolCalls"]
        .as_array()
        .ok_or("no calls in the context")?
    {
        let name = call["name"].as_str().ok_or("a call without a name")?;
        host.execute(name, &call["arguments"])?;
    }
    Ok(())
}

/// The suite's skill, whose instructions are not those that its server lists.
const SKILL: &str = "pdf-processing";

/// The instructions are not given, and an agent that asks for another file of the skill all the same does not get that either.
fn refuse_the_skill(host: &mut Host) -> Result<(), Failure> {
    host.listed(1)?;
    for file in [None, Some("references/FORMS.md")] {
        let arguments = file.map_or_else(|| json!({}), |file| json!({ "file": file }));
        let id = host.begin_execute(SKILL, &arguments, Map::new())?;
        let answer = host.answer(id)?;
        if answer["isError"] != true {
            return Err(format!("{file:?} was given: {answer}").into());
        }
    }
    Ok(())
}

/// The acceptance test of `describe_tool`: the schema that it shows is sent back to the server.
fn echo_the_schema(host: &mut Host) -> Result<(), Failure> {
    let definition = host.describe("json_schema_2020_12_tool")?;
    host.execute(
        "json_schema_echo",
        &json!({ "schema": definition["inputSchema"] }),
    )
    .map(drop)
}

/// All tools at once; those that ask for input are answered while the others run, and one runs between the rounds.
fn answer_side_by_side(host: &mut Host) -> Result<(), Failure> {
    let names = [
        "test_mrtr_echo_state",
        "test_mrtr_no_state",
        "test_mrtr_no_result_type",
        "test_mrtr_unrelated",
    ];
    let ids: Vec<_> = names
        .iter()
        .map(|name| host.begin_execute(name, &json!({}), Map::new()))
        .collect::<Result<_, _>>()?;
    let answers: Vec<Value> = ids
        .into_iter()
        .map(|id| host.answer(id))
        .collect::<Result<_, _>>()?;
    let mut retries = Vec::new();
    for (name, answer) in names.iter().zip(&answers) {
        if let Some(members) = host.inputs(answer)? {
            retries.push(host.begin_execute(name, &json!({}), members)?);
        }
    }
    retries.push(host.begin_execute(names[3], &json!({}), Map::new())?);
    for id in retries {
        let answer = host.answer(id)?;
        if host.inputs(&answer)?.is_some() {
            return Err(format!("asked again: {answer}").into());
        }
    }
    if host.is_modern()
        && answers
            .iter()
            .filter(|answer| answer["resultType"] == "input_required")
            .count()
            != 2
    {
        return Err(format!("two tools of {UPSTREAM} ask for input: {answers:?}").into());
    }
    Ok(())
}
