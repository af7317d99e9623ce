use std::fs;
use std::path::Path;

use super::*;

fn document(server: &str, tool: &str, description: &str) -> Document {
    Document {
        server: ServerName::new(server).unwrap(),
        tool: ToolName::new(tool).unwrap(),
        hash: ToolHash::of(description.as_bytes()),
        title: None,
        description: description.to_owned(),
        parameters: vec![("limit".to_owned(), "The most results to give back".to_owned())],
    }
}

fn documents() -> Vec<Document> {
    [
        ("github", "create_issue", "Create a new issue in a repository"),
        ("github", "list_issues", "List the issues of a repository"),
        ("github", "list_pull_requests", "List pull requests of a repository"),
        ("gitlab", "list_pull_requests", "List pull requests of a project, called merge requests here"),
        ("gitlab", "createIssue", "Open an issue of a project"),
        ("slack", "post_message", "Post a message to a channel"),
        ("slack", "list_channels", "List the channels of the workspace"),
        ("files", "read_file", "Read the contents of a file"),
        ("files", "write_file", "Write the contents of a file"),
        ("weather", "get-forecast", "Weather forecast for the next days"),
        ("wetter", "vorhersage", "Wettervorhersage für die nächsten Tage in Österreich"),
        ("tianqi", "查询天气", "查询城市的天气预报"),
    ]
    .map(|(server, tool, description)| document(server, tool, description))
    .into()
}

fn fingerprint(documents: &[Document]) -> Fingerprint {
    Fingerprint::of(documents.iter().map(|document| (&document.server, &document.tool, document.hash)))
}

fn build(directory: Option<&Path>, documents: &[Document]) -> Search {
    let search = Search::new(directory.map(Path::to_owned));
    search.rebuild(&fingerprint(documents), documents).unwrap();
    search
}

fn names(hits: &[Hit]) -> Vec<String> {
    hits.iter().map(|hit| format!("{}/{}", hit.server, hit.tool)).collect()
}

fn find(search: &Search, query: &str) -> Vec<String> {
    names(&search.search(&Request { query, limit: 5, server: None }).unwrap())
}

#[test]
fn the_tool_that_is_meant_comes_first() {
    let search = build(None, &documents());
    for (query, first) in [
        // Exact names, however they are written.
        ("create_issue", "github/create_issue"),
        ("gitlab__createIssue", "gitlab/createIssue"),
        ("github:create-issue", "github/create_issue"),
        ("use post_message please", "slack/post_message"),
        // Servers named at the usual places.
        ("github: list pull requests", "github/list_pull_requests"),
        ("list pull requests on gitlab", "gitlab/list_pull_requests"),
        ("gitlab list pull requests", "gitlab/list_pull_requests"),
        // Typos, other forms, other languages.
        ("lsit chanels", "slack/list_channels"),
        ("forecasting", "weather/get-forecast"),
        ("WETTERVORHERSAGE osterreich", "wetter/vorhersage"),
        ("天气", "tianqi/查询天气"),
    ] {
        let hits = find(&search, query);
        assert_eq!(hits.first().map(String::as_str), Some(first), "{query}: {hits:?}");
    }
}
