//! Installs real servers in fixed versions, and creates data for them.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use serde_json::{Map, Value, json};

/// Installs missing servers. Returns all servers' entries for the configuration.
pub(crate) fn install(
    directory: &Path,
    servers: &Map<String, Value>,
    fill_in: &dyn Fn(&str) -> String,
) -> anyhow::Result<Value> {
    let mut entries = Map::new();
    for (name, server) in servers {
        let program = server["program"]
            .as_str()
            .context("a server has a program")?;
        let path = match server["npm"].as_str() {
            Some(package) => npm(&directory.join("npm").join(name), package)?.join(program),
            None => pip(&directory.join("py").join(name), &server["pypi"])?.join(program),
        };
        let mut entry = json!({ "command": path, "args": server["args"], "env": server["env"] });
        entry
            .as_object_mut()
            .context("it is an object")?
            .retain(|_, value| !value.is_null());
        entries.insert(
            name.clone(),
            serde_json::from_str(&fill_in(&entry.to_string()))?,
        );
    }
    Ok(entries.into())
}

fn npm(directory: &Path, package: &str) -> anyhow::Result<std::path::PathBuf> {
    once(directory, package, || {
        let options = [
            "install",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            "--ignore-scripts",
            "--prefix",
        ];
        run(Command::new("npm")
            .args(options)
            .arg(directory)
            .arg(package))
    })?;
    Ok(directory.join("node_modules/.bin"))
}

fn pip(directory: &Path, packages: &Value) -> anyhow::Result<std::path::PathBuf> {
    let packages: Vec<&str> = packages
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    once(directory, &packages.join(" "), || {
        run(Command::new("python3").args(["-m", "venv"]).arg(directory))?;
        let options = ["install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(directory.join("bin/pip"))
            .args(options)
            .args(&packages))
    })?;
    Ok(directory.join("bin"))
}

/// Does `work` unless it was done for this `what` before.
fn once(
    directory: &Path,
    what: &str,
    work: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mark = directory.join("installed");
    if fs::read_to_string(&mark).is_ok_and(|there| there == what) {
        return Ok(());
    }
    fs::create_dir_all(directory)?;
    work()?;
    Ok(fs::write(mark, what)?)
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    // The output of the commands is not part of the page.
    let status = command
        .stdout(std::io::stderr())
        .status()
        .with_context(|| format!("{command:?}"))?;
    anyhow::ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Creates the same files and the same repository in every run.
pub(crate) fn make_data(directory: &Path) -> anyhow::Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    let files = directory.join("files");
    fs::create_dir_all(files.join("notes"))?;
    for note in 1..=40 {
        let text = format!(
            "# Note {note}\n\n{}\n",
            "Something was decided, and somebody has to do it. ".repeat(note % 7 + 2)
        );
        fs::write(files.join(format!("notes/note-{note}.md")), text)?;
    }
    let dependencies: Map<String, Value> = (1..=30)
        .map(|number| (format!("package-{number}"), json!(format!("^{number}.2.0"))))
        .collect();
    let package = json!({ "name": "shop", "version": "1.4.0", "scripts": { "build": "make", "test": "make test" }, "dependencies": dependencies });
    fs::write(
        files.join("package.json"),
        serde_json::to_string_pretty(&package)?,
    )?;
    let users: Vec<Value> = (1..=120)
        .map(|id| json!({ "id": id, "name": format!("User {id}"), "email": format!("user{id}@example.com"), "active": id % 10 != 0, "roles": ["reader", "writer"] }))
        .collect();
    fs::write(
        files.join("users.json"),
        serde_json::to_string_pretty(&users)?,
    )?;
    let log: String = (0..4000)
        .map(|line| {
            let level = if line % 97 == 0 { "ERROR" } else { "INFO" };
            format!(
                "2026-11-20T10:{:02}:{:02}Z {level} request {line} took {} ms\n",
                line / 60 % 60,
                line % 60,
                line * 31 % 900
            )
        })
        .collect();
    fs::write(files.join("server.log"), log)?;
    repository(&directory.join("repo"))
}

fn repository(directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory)?;
    let git = |arguments: &[&str], date: &str| {
        let mut command = Command::new("git");
        command
            .arg("-C")
            .arg(directory)
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
            .args(arguments);
        run(command
            .env("GIT_AUTHOR_DATE", date)
            .env("GIT_COMMITTER_DATE", date))
    };
    let first = "2026-01-01T10:00:00Z";
    git(&["init", "--quiet", "--initial-branch=main"], first)?;
    for commit in 1..=40 {
        let text: String = (0..commit * 3)
            .map(|line| format!("line {line} of version {}\n", line % commit + 1))
            .collect();
        fs::write(directory.join(format!("file-{}.txt", commit % 4)), text)?;
        git(&["add", "."], first)?;
        let date = format!("2026-01-{:02}T10:00:00Z", commit % 28 + 1);
        git(
            &[
                "commit",
                "--quiet",
                "-m",
                &format!("change number {commit} of the file"),
            ],
            &date,
        )?;
    }
    fs::write(directory.join("new.txt"), "not yet added\n")?;
    Ok(())
}

/// Serves a page on the loopback interface until the program ends. Returns its URL.
pub(crate) fn serve_page() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/page.html", listener.local_addr()?);
    let rows: String = (1..=300)
        .map(|row| {
            format!(
                "<tr><td><a href=\"/item/{row}\">Item {row}</a></td><td>{} pieces</td></tr>",
                row * 7 % 90
            )
        })
        .collect();
    let body = format!(
        "<!doctype html><html><head><title>Stock</title><style>td {{ color: #333 }}</style></head><body><nav>Home</nav><article><h1>Stock</h1><p>What is there, and how much of it.</p><table>{rows}</table></article></body></html>"
    );
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut lines = BufReader::new(&stream).lines();
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            drop(lines);
            // The client may have left.
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    Ok(url)
}
