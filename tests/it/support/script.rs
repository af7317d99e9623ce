//! The script of a fake server, written as a sentence: `Server::new().tool("echo", [echo()])`.
//!
//! Steps are JSON texts that are inserted unchanged, so that unusual bytes reach the fake server.
//! `tests/programs/fake_server.rs` describes each step.

use serde_json::json;

/// A fake server's script.
#[derive(Debug, Clone, Default)]
#[must_use]
pub(crate) struct Server {
    tools: Vec<String>,
    prompts: Vec<String>,
    resources: Vec<String>,
    templates: Vec<String>,
    calls: Vec<String>,
    gets: Vec<String>,
    reads: Vec<String>,
    methods: Vec<String>,
    members: Vec<String>,
}

/// A step of a script.
#[derive(Debug, Clone)]
pub(crate) struct Step(String);

impl Server {
    /// A server without tools.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a tool that accepts anything, with the steps of its calls.
    pub(crate) fn tool(self, name: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        let definition = json!({ "name": name, "description": format!("Does {name}."), "inputSchema": { "type": "object" } });
        self.tool_as(name, &definition.to_string(), steps)
    }

    /// Adds a tool with the annotation `readOnlyHint`.
    pub(crate) fn read_only_tool(self, name: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        let definition = json!({
            "name": name,
            "description": format!("Does {name}."),
            "inputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true },
        });
        self.tool_as(name, &definition.to_string(), steps)
    }

    /// Adds a tool by its definition, sent in these bytes.
    pub(crate) fn tool_as(
        self,
        name: &str,
        definition: &str,
        steps: impl IntoIterator<Item = Step>,
    ) -> Self {
        self.hidden(name, steps).entry(definition)
    }

    /// Adds steps for calls of a tool that is not listed, or not yet.
    pub(crate) fn hidden(mut self, name: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        self.calls.push(format!("{}:{}", json!(name), list(steps)));
        self
    }

    /// Adds an entry of any form to the list of tools.
    pub(crate) fn entry(mut self, definition: &str) -> Self {
        self.tools.push(definition.to_owned());
        self
    }

    /// Adds a prompt, with the steps of getting it.
    pub(crate) fn prompt(self, name: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        self.prompt_as(name, &json!({ "name": name }).to_string(), steps)
    }

    /// Adds a prompt by its definition, sent in these bytes.
    pub(crate) fn prompt_as(
        mut self,
        name: &str,
        definition: &str,
        steps: impl IntoIterator<Item = Step>,
    ) -> Self {
        self.gets.push(format!("{}:{}", json!(name), list(steps)));
        self.prompts.push(definition.to_owned());
        self
    }

    /// Adds a resource, with the steps of reading it.
    pub(crate) fn resource(self, uri: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        self.resource_as(uri, &json!({ "uri": uri, "name": uri }).to_string(), steps)
    }

    /// Adds a resource by its definition, sent in these bytes.
    pub(crate) fn resource_as(
        mut self,
        uri: &str,
        definition: &str,
        steps: impl IntoIterator<Item = Step>,
    ) -> Self {
        self.resources.push(definition.to_owned());
        self.reading(uri, steps)
    }

    /// Adds the steps of reading a URI that is not listed.
    pub(crate) fn reading(mut self, uri: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        self.reads.push(format!("{}:{}", json!(uri), list(steps)));
        self
    }

    /// Adds a resource template.
    pub(crate) fn template(mut self, template: &str) -> Self {
        self.templates
            .push(json!({ "uriTemplate": template, "name": template }).to_string());
        self
    }

    /// Declares these capabilities only, regardless of the lists.
    pub(crate) fn capabilities(self, capabilities: &str) -> Self {
        self.member(format!(r#""capabilities":{capabilities}"#))
    }

    /// Lists `size` tools, prompts and so on per page.
    pub(crate) fn page_size(self, size: usize) -> Self {
        self.member(format!(r#""page_size":{size}"#))
    }

    /// Negotiates this protocol revision.
    pub(crate) fn version(self, version: &str) -> Self {
        self.member(format!(r#""version":"{version}""#))
    }

    /// Rejects `initialize` and supports 2026-07-28 only.
    pub(crate) fn modern(self) -> Self {
        self.member(r#""modern":true"#.to_owned())
    }

    /// Sends these instructions.
    pub(crate) fn instructions(self, text: &str) -> Self {
        self.member(format!(r#""instructions":{}"#, json!(text)))
    }

    /// Runs these steps before anything is read.
    pub(crate) fn at_start(self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.member(format!(r#""start":{}"#, list(steps)))
    }

    /// Runs these steps when stdin ends.
    pub(crate) fn at_end(self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.member(format!(r#""end":{}"#, list(steps)))
    }

    /// Runs these steps for each request with `method`.
    pub(crate) fn on(mut self, method: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        self.methods
            .push(format!("{}:{}", json!(method), list(steps)));
        self
    }

    /// Ignores SIGTERM and the end of stdin.
    pub(crate) fn stubborn(self) -> Self {
        self.member(r#""ignore_term":true"#.to_owned())
            .at_end([hang()])
    }

    fn member(mut self, member: String) -> Self {
        self.members.push(member);
        self
    }

    /// The script in the form that the fake server reads.
    pub(crate) fn to_json(&self) -> String {
        let mut members = self.members.clone();
        members.push(format!(r#""tools":[{}]"#, self.tools.join(",")));
        members.push(format!(r#""prompts":[{}]"#, self.prompts.join(",")));
        members.push(format!(r#""resources":[{}]"#, self.resources.join(",")));
        members.push(format!(r#""templates":[{}]"#, self.templates.join(",")));
        members.push(format!(r#""calls":{{{}}}"#, self.calls.join(",")));
        members.push(format!(r#""gets":{{{}}}"#, self.gets.join(",")));
        members.push(format!(r#""reads":{{{}}}"#, self.reads.join(",")));
        members.push(format!(r#""methods":{{{}}}"#, self.methods.join(",")));
        format!("{{{}}}", members.join(","))
    }
}

/// Answers with a text.
pub(crate) fn answer(text: &str) -> Step {
    result(&json!({ "content": [{ "type": "text", "text": text }] }).to_string())
}

/// Answers with a result in these bytes.
pub(crate) fn result(json: &str) -> Step {
    Step(format!(r#"{{"result":{json}}}"#))
}

/// Answers with a JSON-RPC error in these bytes.
pub(crate) fn error(json: &str) -> Step {
    Step(format!(r#"{{"error":{json}}}"#))
}

/// Answers with the received parameters.
pub(crate) fn echo() -> Step {
    Step(r#""echo""#.to_owned())
}

/// Answers with how often the process has run this step.
pub(crate) fn count() -> Step {
    Step(r#""count""#.to_owned())
}

/// Appends a line to the log.
pub(crate) fn note(text: &str) -> Step {
    Step(json!({ "note": text }).to_string())
}

/// Answers with an object of the process id, the directory and the variables.
pub(crate) fn surroundings() -> Step {
    Step(r#""surroundings""#.to_owned())
}

/// Answers with the argument `result`, in its original bytes.
pub(crate) fn given() -> Step {
    Step(r#""given""#.to_owned())
}

/// Waits.
pub(crate) fn sleep(milliseconds: u64) -> Step {
    Step(format!(r#"{{"sleep":{milliseconds}}}"#))
}

/// Never continues.
pub(crate) fn hang() -> Step {
    Step(r#""hang""#.to_owned())
}

/// Writes a line. `$id`, `$token` and `$params` are replaced by those of the request.
pub(crate) fn line(text: &str) -> Step {
    Step(json!({ "line": text }).to_string())
}

/// Writes a text without a line end.
pub(crate) fn part(text: &str) -> Step {
    Step(json!({ "part": text }).to_string())
}

/// Writes any bytes.
pub(crate) fn bytes(bytes: &[u8]) -> Step {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Step(json!({ "hex": digits }).to_string())
}

/// Writes a line with `count` times `x` between two texts.
pub(crate) fn fill(before: &str, count: usize, after: &str) -> Step {
    Step(json!({ "fill": [before, count, after] }).to_string())
}

/// Writes `count` bytes to stderr.
pub(crate) fn flood_stderr(count: usize) -> Step {
    Step(format!(r#"{{"flood_stderr":{count}}}"#))
}

/// Writes a line to stderr.
pub(crate) fn say(text: &str) -> Step {
    Step(json!({ "say": text }).to_string())
}

/// Ends the process.
pub(crate) fn exit(code: i32) -> Step {
    Step(format!(r#"{{"exit":{code}}}"#))
}

/// Closes stdout and continues to run.
pub(crate) fn close_stdout() -> Step {
    Step(r#""close_stdout""#.to_owned())
}

/// Stops reading.
pub(crate) fn deafen() -> Step {
    Step(r#""deafen""#.to_owned())
}

/// Replaces the tools, and notifies the client.
pub(crate) fn change_tools(definitions: &[&str]) -> Step {
    Step(format!(r#"{{"change_tools":[{}]}}"#, definitions.join(",")))
}

/// Replaces the `prompts`, `resources` or `templates`, and notifies the client.
pub(crate) fn change(list: &str, definitions: &[&str]) -> Step {
    Step(format!(
        r#"{{"change":["{list}",[{}]]}}"#,
        definitions.join(",")
    ))
}

/// Pings the client with this id and waits for the answer.
pub(crate) fn ping(id: &str) -> Step {
    Step(json!({ "ping": id }).to_string())
}

/// Sends the client a request with this id and waits for the answer. `params` is a JSON text.
pub(crate) fn ask(id: &str, method: &str, params: &str) -> Step {
    Step(format!(r#"{{"ask":["{id}","{method}",{params}]}}"#))
}

/// Runs `then` if the parameters contain `text`, otherwise `otherwise`.
pub(crate) fn if_params(
    text: &str,
    then: impl IntoIterator<Item = Step>,
    otherwise: impl IntoIterator<Item = Step>,
) -> Step {
    Step(format!(
        r#"{{"if_params":[{},{},{}]}}"#,
        json!(text),
        list(then),
        list(otherwise)
    ))
}

/// Answers with these members of `structuredContent`. `$answer` is the client's last answer.
pub(crate) fn answer_with(members: &str) -> Step {
    line(&format!(
        r#"{{"jsonrpc":"2.0","id":$id,"result":{{"content":[],"structuredContent":{{{members}}}}}}}"#
    ))
}

/// Waits until the client cancels the request.
pub(crate) fn await_cancel() -> Step {
    Step(r#""await_cancel""#.to_owned())
}

/// Starts a child process that ignores signals.
pub(crate) fn fork() -> Step {
    Step(r#""fork""#.to_owned())
}

/// Runs `first` while the log has at most `count` lines with `text`, and `then` afterwards.
pub(crate) fn up_to(
    count: usize,
    text: &str,
    first: impl IntoIterator<Item = Step>,
    then: impl IntoIterator<Item = Step>,
) -> Step {
    Step(format!(
        r#"{{"up_to":[{count},{},{},{}]}}"#,
        json!(text),
        list(first),
        list(then)
    ))
}

fn list(steps: impl IntoIterator<Item = Step>) -> String {
    let steps: Vec<String> = steps.into_iter().map(|step| step.0).collect();
    format!("[{}]", steps.join(","))
}
