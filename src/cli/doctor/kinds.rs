//! The table of all kinds of findings. The command prints it, `docs/doctor.md` is made from it, and a test compares the
//! two.
//!
//! A code never changes: people search for it, and programs look for it in the JSON.

use serde::Serialize;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// Information only.
    Note,
    /// Works, but not as well or as safely as it could.
    Warning,
    /// Does not work.
    Error,
}

/// A kind of finding.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// The code, which never changes.
    pub(super) code: &'static str,
    pub(super) severity: Severity,
    /// The kind in one line.
    pub(super) title: &'static str,
    /// Why it matters.
    pub(super) why: &'static str,
    /// The advice for the user.
    pub(super) advice: &'static str,
    /// The action of `--fix`. `None` if there is none.
    pub(super) fix: Option<&'static str>,
}

macro_rules! kinds {
    (@fix) => { None };
    (@fix $fix:literal) => { Some($fix) };
    ($($name:ident: $severity:ident $code:literal, $title:literal, why $why:literal, advice $advice:literal $(, fix $fix:literal)?;)*) => {
        $(#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "some findings are of one system, and the page is one for all"))]
        pub(super) const $name: Kind = Kind {
            code: $code,
            severity: Severity::$severity,
            title: $title,
            why: $why,
            advice: $advice,
            fix: kinds!(@fix $($fix)?),
        };)*

        /// All kinds, in the order of the page.
        #[cfg(test)]
        const ALL: &[&Kind] = &[$(&$name),*];
    };
}

kinds! {
    CONFIG_MISSING: Error "config-missing", "there is no configuration",
        why "Without a configuration agents find no tools, but for those of a configuration of mcpzip 0.1.",
        advice "Run `mcpzip init`, or name the file with `--config` or `MCPZIP_CONFIG`. If there is a configuration of mcpzip 0.1, `mcpzip migrate --from mcpzip-0.1` imports it.";
    CONFIG_UNREADABLE: Error "config-unreadable", "the configuration cannot be read",
        why "Nothing starts. The file exists, but the system does not permit reading it, or it is not UTF-8.",
        advice "Make the file readable for yourself, or save it as UTF-8.";
    CONFIG_SYNTAX: Error "config-syntax", "the configuration is not valid",
        why "Nothing starts; a program that is running keeps the configuration it has.",
        advice "Look at the line and column that are named. The file is JSON; comments and trailing commas are permitted.";
    CONFIG_UNKNOWN_KEY: Warning "config-unknown-key", "the configuration has an unknown key",
        why "This setting has no effect.",
        advice "Correct the key, as the message suggests if it knows a similar one, or remove it.";
    CONFIG_ODD: Warning "config-odd", "something in the configuration is not used as it is written",
        why "The line has no effect: a default or another entry is used instead, or something that it needs is missing.",
        advice "Go to the line named, and follow the message.";
    CONFIG_REFUSED: Error "config-refused", "a part of the configuration that restricts cannot be used",
        why "People, calls or the start of a gateway are refused, as the message says: to go on without the part would lift a restriction.",
        advice "Go to the line named, and follow the message.";
    CONFIG_NO_SERVERS: Warning "config-no-servers", "no server is configured",
        why "Agents find nothing but the built-in tools.",
        advice "Run `mcpzip init` or `mcpzip migrate`, or write an entry below `mcpServers`.";
    CONFIG_OLDER: Note "config-older-layout", "there is a configuration of mcpzip 0.1",
        why "Its servers are used only until this version has a configuration.",
        advice "Run `mcpzip migrate --from mcpzip-0.1`, which first shows what it would import.";
    SERVER_ENTRY: Error "server-entry", "a server's entry cannot be used",
        why "The server is left out; the others work.",
        advice "Look at the line and column that are named, and correct the entry.";
    SECRET_LITERAL: Note "secret-literal", "the configuration has literal secrets",
        why "A configuration is easily copied, shared or committed, and the secrets with it.",
        advice "Run `mcpzip secret migrate`, which moves them to the keychain and writes `${keyring:NAME}` instead, or `mcpzip config extract-secrets`, which moves them to a private file next to the configuration.";
    SECRET_IN_CLIENT: Note "secret-in-client", "a client's file has literal secrets",
        why "The file is read by other programs, and easily copied, shared or committed.",
        advice "Run `mcpzip secret migrate --clients`, which moves those servers to mcpzip and their secrets to the keychain.";
    SECRET_UNSET: Error "secret-unset", "a server needs a secret that is not set",
        why "The server is left out; the others work.",
        advice "Run `mcpzip secret set NAME`.";
    SECRET_LOCKED: Error "secret-locked", "a server needs a secret that cannot be read",
        why "The server is left out until the secret can be read; the others work.",
        advice "Unlock the keychain, or run `mcpzip secret unlock` for the encrypted file. A session without a desktop needs MCPZIP_SECRET_KEY.";
    SECRETS_STORE: Note "secrets-store", "where the secrets are kept",
        why "The keychain is locked and unlocked with your login. The encrypted file needs a passphrase or MCPZIP_SECRET_KEY.",
        advice "`mcpzip secret list` shows the place of each.";
    SECRETS_UNREADABLE: Error "secrets-unreadable", "the file of secrets cannot be used",
        why "Servers that use a secret are left out.",
        advice "Follow the message. A backup of the file can be put back; the key or passphrase stays the same.";
    VARIABLE_MISSING: Error "variable-missing", "a server needs a variable that is not set",
        why "The server is left out. A client that is started from the desktop has other variables than your shell.",
        advice "Set the variable where the client is started, or write `${NAME:-default}`.";
    COMMAND_MISSING: Error "command-missing", "a server's command was not found",
        why "The server cannot start.",
        advice "If `command` holds a whole command line, move its arguments to `args`. Otherwise install the program, or write its whole path as `command`.";
    COMMAND_DESKTOP_PATH: Warning "command-desktop-path", "a server's command is found in this shell only",
        why "A client that is started from the desktop has a shorter PATH, and the server does not start there.",
        advice "Write the whole path of the program as `command`.";
    SERVER_FAILED: Error "server-failed", "a server does not work",
        why "Its tools cannot be called. Search still finds those that it listed before.",
        advice "Read the reason; `mcpzip logs SERVER` has what the server wrote.";
    SERVER_UNREACHABLE: Error "server-unreachable", "a remote server cannot be reached",
        why "Its tools cannot be called. Search still finds those that it listed before.",
        advice "Check the `url` of SERVER in the configuration, whether the server runs there (`curl` with that URL), and what is between: VPN, firewall, proxy (`HTTPS_PROXY`).";
    SERVER_LOGIN: Warning "server-login", "a server requires a login",
        why "Its tools cannot be called until then.",
        advice "Run `mcpzip login SERVER`.";
    SERVER_SLOW: Note "server-slow", "a server takes a long time to start and list its tools",
        why "The first call of one of its tools waits for that time.",
        advice "Set `idle_timeout` to \"never\" for it; a package runner is quicker with a fixed version.";
    SERVER_FLAWED: Warning "server-flawed", "some entries of a server's lists cannot be used",
        why "Those tools, prompts or resources are left out.",
        advice "Report it to the server's author; a newer version may be correct.";
    SERVER_EMPTY: Note "server-empty", "a server has no tools",
        why "It is only useful for its prompts and resources, if it has any.",
        advice "Remove or disable it if you do not use those.";
    COMMAND_HELP_POOR: Note "command-help-poor", "the help of a command line says little about its arguments",
        why "Agents get a free list of arguments for those subcommands, and have to guess.",
        advice "Name the argument that prints the full help in `cli_help`, or define the tools that you need in `cli_tools`.";
    SANDBOX_UNAVAILABLE: Error "sandbox-unavailable", "a server's sandbox cannot be made on this machine",
        why "The server does not start, because it would reach more than its entry permits.",
        advice "Follow the message: install what is missing, or take `sandbox` out of the entry if you trust the server.";
    PROGRAM_CHANGEABLE: Warning "program-changeable", "a server without a sandbox runs a file that a server in a sandbox may change",
        why "The server in the sandbox can replace the file, or a link on the way to it: the next start of the server then runs its code outside of every sandbox, with all your access.",
        advice "Move the program or script of SERVER out of the named path, name less in `write` of the other entry (or change its \"project\"), or give SERVER a `sandbox` as well.";
    SANDBOX_POSSIBLE: Note "sandbox-possible", "a server is known to work in a sandbox",
        why "It can reach everything that you can: your files, your keys, the network. In a sandbox it has a data directory of its own, the files of its package and those that its entry names.",
        advice "Add the named `sandbox` to the entry of SERVER; docs/sandbox.md says what it permits.";
    SERVER_NAMES_ALIKE: Warning "server-names-alike", "two servers have nearly the same name",
        why "Agents vary dashes and letter case, so a call may mean either of them.",
        advice "Rename one of them.";
    TOOL_HIDDEN_TEXT: Warning "tool-hidden-text", "a tool's text has characters that a reader does not see",
        why "Zero-width characters, changes of the writing direction and terminal escapes hide words from you that the agent reads.",
        advice "Look at the text, which is shown with these characters spelled out. Remove the server unless it is a mistake.";
    TOOL_SUSPICIOUS_TEXT: Warning "tool-suspicious-text", "a server's text has a phrase that is typical of attacks",
        why "Models read these texts and may follow orders in them. Honest texts may have such a phrase, too.",
        advice "Read the whole text with `mcpzip describe`. Remove the server if you don't trust it.";
    TOOL_MALFORMED: Warning "tool-malformed", "a tool's definition is malformed",
        why "Clients that get the tool under its own name (`surface`, `show`, interfaces) would refuse their whole list of tools because of it. In such lists mcpzip leaves out the named parts, or the whole tool if they are in its `inputSchema`.",
        advice "Report it to the server's author; a newer version may be correct. The three tools reach the tool in any case.";
    TOOL_CHANGED: Warning "tool-changed", "a tool has changed since it was first seen",
        why "A server can change a tool's description after you decided to trust it.",
        advice "Run `mcpzip approve SERVER`, which shows the change.";
    TOOL_HELD_BACK: Warning "tool-held-back", "a changed or new tool is held back",
        why "By the server's `trust`, or a quarantine that no person has ended, agents don't see the tool until you approve it.",
        advice "Run `mcpzip approve SERVER`, which shows the change.";
    SERVER_TRUST_SHARED: Note "server-trust-shared", "a server's `trust` is stricter than its entry says",
        why "Another entry runs the same program, or has the same URL, with a stricter `trust`. That counts for both, so that a second name does not avoid it.",
        advice "Write the same `trust` in both entries, or a less strict one in the other entry if that was a mistake.";
    SERVER_PROGRAM_UNKNOWN: Note "server-program-unknown", "which program a server starts is not known",
        why "A shell makes the name of the program (`$(…)`, a variable, `. \"$FILE\"`, `xargs`, `-EncodedCommand`, `eval` other than of `\"$(fnm env)\"` and the like), or the line is too long to be read. For what is held back it counts as the program of every other server: it has the strictest `trust`, and what was rejected elsewhere before it was first listed is rejected here; if a record of that is damaged or gone, all of it is held back until `mcpzip approve SERVER`. Rules of clients for the same program do not reach it.",
        advice "Write the program into the entry, as in `\"command\": \"npx\"`, and give the server rules of its own.";
    TOOL_OVERRIDE: Error "tool-override", "an override of a tool cannot be applied",
        why "The tool is held back, because the override may hide or set an argument to protect something. An override of a tool that the server does not have protects nothing.",
        advice "Correct `tools.override` in the server's entry; `mcpzip describe` shows a tool's definition once the override is out.";
    TOOL_FILTER: Error "tool-filter", "the `select` of an override is not a filter",
        why "A call through `execute_tool` is made and then ends with an error; calls in other ways return the whole result.",
        advice "Correct `select` in `tools.override` of the server's entry; it is a jq program.";
    RULE_UNMATCHED: Warning "rule-unmatched", "a rule matches no tool",
        why "A misspelt rule under `deny` or `ask` protects nothing.",
        advice "Correct the rule; `mcpzip tools` prints the names, and `mcpzip rules check` says what applies.";
    PROFILE_UNUSABLE: Error "profile-unusable", "a profile cannot be used",
        why "Its sessions are refused, because a profile must never show more than it says.",
        advice "Correct the entry of `profiles`, or the `profile` of the client; `servers` needs at least one server that can be used.";
    SCRIPTS_FAIL: Error "scripts-fail", "a script cannot be run",
        why "Scripts are on, and every `mcpzip__run` of an agent fails.",
        advice "Follow the message; on Linux, `/proc` must be mounted. `\"scripts\": false` takes the tool from agents.";
    SCRIPTS_ALL_TOOLS: Note "scripts-all-tools", "scripts call tools that change something without a question",
        why "With `\"allow\": \"all\"` and no rule under `tools.ask` or `tools.deny`, one script can make a hundred changes before you see one.",
        advice "Name the tools that need your consent under `tools.ask`: a script asks once, with the list of calls.";
    ROLE_UNUSABLE: Error "role-unusable", "a role cannot be used",
        why "People with the role get nothing by it, because a role must never give more than it says.",
        advice "Correct the entry of `roles`; each name in its `profiles` must be one of `profiles`, or `*`.";
    RULE_ROLE_UNKNOWN: Warning "rule-role-unknown", "a rule names a role that does not exist",
        why "No person has the role, so a rule with it matches no one, and a rule with `!` before it matches everyone.",
        advice "Correct the name after `@role:`, or add the role to `roles`.";
    LIMITS_UNUSABLE: Error "limits-unusable", "the limits cannot be used",
        why "Every request over HTTP is refused, because a limit that is not understood would limit nothing.",
        advice "Correct the entry of `limits` that the message names.";
    STORE_UNUSABLE: Error "store-unusable", "the store of the gateways cannot be used",
        why "A gateway does not start without its store. One that runs goes on with what it knows, for a while.",
        advice "Follow the message; `mcpzip store check` tries again. docs/store.md describes the URL, the keys and the schema.";
    GATEWAY_UNUSABLE: Error "gateway-unusable", "`mcpzip serve --http` would not start",
        why "Clients over HTTP cannot connect. A gateway that runs goes on with what it has read.",
        advice "Correct the file or key of `http`, or the variable, that the message names.";
    GATEWAY_UNREACHED: Error "gateway-unreached", "a gateway is not reached at its `http.peer`",
        why "Other gateways send answers, cancellations and calls of its clients and servers to this URL: what is sent elsewhere is lost.",
        advice "Set `http.peer` of that gateway to a URL of it alone, not to that of a balancer, and start it again.";
    SERVER_PLACEMENT: Warning "server-placement", "a server is to run at one replica, and there is no store",
        why "`\"placement\": \"one\"` has no effect: without a store, replicas do not know each other, and each one runs a process of the server.",
        advice "Set `store` to the database that the replicas share (docs/replicas.md), or remove `placement` if there is one gateway.";
    TOKENS_UNREADABLE: Error "tokens-unreadable", "the file of tokens cannot be used",
        why "Every client that shows a token is refused.",
        advice "Follow the message. Without the file there are no tokens; `mcpzip token create` makes new ones.";
    KEYS_UNUSABLE: Error "keys-unusable", "the file of keys of the authorization server cannot be used",
        why "No person can log in, and every access token of mcpzip is refused.",
        advice "Follow the message. Only if the keys are damaged or lost: `mcpzip token rotate-keys` makes new ones; all clients log in again then.";
    ISSUER_UNUSABLE: Error "issuer-unusable", "an OAuth issuer does not answer, or not as `http.auth` expects",
        why "Clients with its tokens, or people who log in there, are refused. A gateway that runs goes on with the keys that it has, for a day.",
        advice "Compare `issuer` and `jwks_url` (or `introspection_url`) with the metadata of the issuer, `/.well-known/openid-configuration`; otherwise check whether it runs, and what is between: DNS, firewall, proxy (`HTTPS_PROXY`).";
    TOKEN_USELESS: Warning "token-useless", "a valid token gives nothing",
        why "Its client is refused: a role or profile that the token names is gone, or no role has its name.",
        advice "Add the name to `users` of a role, or revoke the token and make another one.";
    IDENTITY_UNSERVED: Warning "identity-unserved", "a server needs the caller's name or login, and the gateway cannot provide it",
        why "Each request to the server is refused, because it must never get the credentials of another person.",
        advice "Set `http.auth`, `http.auth.oauth` or `http.public_url`, or `\"identity\": \"shared\"` if everyone may use the configured credentials.";
    WINDOW_WITHOUT_URL: Warning "window-without-url", "the window of the gateway has no URL",
        why "Browsers that use a name of the gateway are refused, because any name could be pointed at it; browsers that use its address get in.",
        advice "Set `http.public_url` to the URL that people use.";
    WINDOW_UNMANAGED: Note "window-unmanaged", "no one manages the gateway in its window",
        why "Everyone sees what is theirs there. No one sees all servers and the whole audit log, or decides on calls that wait.",
        advice "Give a role `\"manage\": true`, or leave it so if commands on the machine suffice.";
    SHOW_UNUSED: Warning "show-unused", "a pattern of `show` lists no tool",
        why "The tools that you expect next to the three are not there: the server or tool has another name, is denied or held back, or the surface lists every tool anyway.",
        advice "Correct `show`; `mcpzip tools` prints the tools as agents know them.";
    TOOL_NAMES_ALIKE: Note "tool-names-alike", "two tools of a server have nearly the same name",
        why "Agents vary dashes and letter case, so a call may mean either of them.",
        advice "Deny one of them by `tools`, if you need only one.";
    AUDIT_UNWRITABLE: Error "audit-unwritable", "the audit log cannot be written",
        why "With an audit log, no call is answered whose line was not written, so every call is refused.",
        advice "Make the directory writable for you, or take `audit` out of the configuration.";
    AUDIT_NOT_DURABLE: Error "audit-not-durable", "the audit log must be in a store, and there is none",
        why "With `\"durable\": \"store\"`, no call is answered whose line is not committed in the store, so every call is refused.",
        advice "Set `store` to the URL of a PostgreSQL database, or take `audit.durable` out of the configuration.";
    AUDIT_TARGET: Warning "audit-target", "a target for copies of the audit log accepts none",
        why "The log itself is written, but the copies that you asked for with `audit.to` are dropped.",
        advice "Start the target, or correct `audit.to`, `audit.syslog` or `otlp.endpoint`.";
    PAUSED: Warning "paused", "mcpzip is paused",
        why "While it is paused, every call is refused, and no server gets anything.",
        advice "`mcpzip daemon resume` ends the pause.";
    NOTIFY_UNAVAILABLE: Warning "notify-unavailable", "desktop notifications cannot be shown",
        why "`notify` is on, but nothing on the desktop says that a call or a server waits for you. `mcpzip status` still does.",
        advice "Read the reason: start a notification service, run this where your desktop's D-Bus is known (`DBUS_SESSION_BUS_ADDRESS`), or take `notify` out of the configuration.";
    LOGIN_UNREADABLE: Error "login-unreadable", "a login cannot be opened",
        why "It is encrypted with a key in the keychain, which cannot be read now.",
        advice "Unlock the keychain, or log in again with `mcpzip login SERVER`.";
    LOGIN_SCOPES: Warning "login-scopes", "a login lacks scopes",
        why "The server has refused calls for it.",
        advice "Run `mcpzip login SERVER`.";
    LOGIN_DAMAGED: Note "login-damaged", "a damaged login was set aside",
        why "It could not be read, so the server counts as logged out.",
        advice "Log in again if that is needed, then remove the file that is named.";
    KEYCHAIN_NONE: Note "keychain-none", "logins are kept in plain files",
        why "Logins are not encrypted. Their files are readable by you alone, as SSH keys are.",
        advice "Start a keychain (a Secret Service such as GNOME Keyring), if you want them encrypted.";
    KEYCHAIN_UNUSABLE: Error "keychain-unusable", "the keychain does not work, and nothing else may be used",
        why "`credentials` is \"keychain\", so no login can be kept or read.",
        advice "Unlock or start the keychain, or set `credentials` to \"auto\".";
    CACHE_DAMAGED: Warning "cache-damaged", "a cached tool list is damaged",
        why "It is not used, and the server lists its tools again.",
        advice "No action is needed once the server is listed again. If it happens often, check the disk.",
        fix "Removes the damaged file. The server was listed again already.";
    RECORD_DAMAGED: Error "record-damaged", "the record of a server's tools cannot be used",
        why "It is not known which tools were approved or rejected, so tools of the server are held back.",
        advice "Make each file that is named readable and writable, or put it back from a backup. Otherwise run `mcpzip approve SERVER` at a terminal: it replaces what is damaged or gone, and you decide again on each tool of the server, as what you rejected before is not known.";
    CACHE_STALE: Note "cache-stale", "a tool list is old",
        why "The server could not be asked, and may have other tools by now.",
        advice "Repair the server; `mcpzip servers` then asks it again.";
    CACHE_OLD_FORMAT: Note "cache-old-format", "the cache has lists of an older version",
        why "This version does not read them; they only take up space.",
        advice "Remove the directory that is named, unless an older mcpzip is still in use.",
        fix "Removes the directory.";
    CACHE_UNWRITABLE: Error "cache-unwritable", "a directory cannot be written",
        why "Tool lists, logins or logs cannot be kept, so every start begins without them.",
        advice "Make the directory writable for yourself, or choose another with `--cache-dir` and `--state-dir`.";
    SEARCH_INDEX: Error "search-index", "the search index cannot be built or read",
        why "Agents find no tools.",
        advice "Remove the directory `search` in the cache directory; it is built again.";
    SEARCH_MEANING: Note "search-meaning", "some tools cannot be found by meaning yet",
        why "They are found by words only, until their vectors are computed in the background while a client is served.",
        advice "Wait, or let `--fix` do it now.",
        fix "Computes the missing vectors, for at most two minutes.";
    FILE_OPEN: Warning "file-open", "a file or directory of mcpzip is open to others",
        why "Configurations, logins and logs may hold secrets.",
        advice "`chmod 600` for files, `chmod 700` for directories.",
        fix "Removes the permissions of other users. Follows no link.";
    FILE_OWNER: Warning "file-owner", "a file of mcpzip belongs to another user",
        why "It was created by another user, perhaps with `sudo mcpzip`, and cannot be replaced.",
        advice "Change the owner with `chown`.";
    DAEMON_DIRECTORY: Warning "daemon-directory", "a directory for the daemon's socket is not used",
        why "Other users could enter it, or replace the socket. Sessions use the next directory, or run their own servers.",
        advice "Give the directory to yourself with the mode 700, or remove it.";
    DAEMON_SOCKET_OPEN: Warning "daemon-socket-open", "a daemon's socket is open to others",
        why "Only the mode of its directory keeps other users from it. mcpzip creates it with the mode 600.",
        advice "`chmod 600` for the socket.",
        fix "Removes the permissions of other users. Follows no link.";
    DAEMON_ORPHAN: Note "daemon-orphaned-socket", "a daemon's socket is left over",
        why "A daemon was killed. The next session with this build replaces its own socket; those of other builds stay.",
        advice "Remove the file.",
        fix "Removes the file.";
    DAEMON_OTHER: Warning "daemon-other", "another daemon serves sessions with this configuration",
        why "Sessions of another version of mcpzip, or in a sandbox, have a daemon and servers of their own. After an update, the old daemon ends after its last session.",
        advice "Start the sessions of the old version again. If the other sessions are in a sandbox, nothing is wrong.";
    DAEMON_HTTP: Warning "daemon-http", "the daemon serves no HTTP clients",
        why "`http.address` is set, and the daemon cannot listen there.",
        advice "Read the reason: end the process that has the port, choose another address, or set a token.";
    DAEMON_SHARE: Note "daemon-share", "sessions could share servers",
        why "Without a daemon each session starts all servers again.",
        advice "Set `\"daemon\": \"auto\"`.";
    DAEMON_CAPABILITIES: Note "daemon-capabilities", "sessions that share a server have several processes of it",
        why "Their clients have different capabilities (elicitation, sampling, roots), which a process gets once. Processes that write one file can lose each other's changes.",
        advice "If the server need not ask anything, write `\"client_capabilities\": false` in its entry.";
    PROCESS_LIMIT: Warning "process-limit", "the table of processes is nearly full",
        why "When the limit is reached no server can start, and neither can a shell.",
        advice "End programs that you don't need, share servers between sessions (`\"daemon\": \"auto\"`), or raise the limit (`ulimit -u`).";
    CLIENT_NONE: Note "client-none", "no client uses mcpzip",
        why "Agents cannot use it yet.",
        advice "Run `mcpzip init`, or `mcpzip connect CLIENT`.";
    CLIENT_UNREADABLE: Warning "client-unreadable", "a client's file cannot be read",
        why "It is not known whether the client uses mcpzip; the client itself may fail as well.",
        advice "Check the file at the position that is named.";
    CLIENT_PROGRAM_GONE: Error "client-program-gone", "a client starts an mcpzip that does not exist",
        why "The client has no tools from mcpzip, and most clients do not report that.",
        advice "Run `mcpzip doctor --fix`, or write the path of this mcpzip into the entry.",
        fix "Writes the path of this mcpzip; `mcpzip undo` reverts it.";
    CLIENT_OTHER_VERSION: Warning "client-other-version", "a client starts another version of mcpzip",
        why "The version that you run here may behave differently from the one that the client starts.",
        advice "Run `mcpzip doctor --fix` if the client is to start this one; otherwise run the other one, or update this one.",
        fix "Writes the path of this mcpzip, unless the other one is newer; `mcpzip undo` reverts it.";
    CLIENT_OTHER_COPY: Note "client-other-copy", "a client starts another copy of mcpzip",
        why "An update of this one does not reach the client.",
        advice "Remove the copy that you don't want, or change the entry.";
    CLIENT_OTHER_CONFIG: Warning "client-other-config", "a client uses another configuration",
        why "This report is about another configuration than the client's.",
        advice "Run `mcpzip doctor --config FILE` with that file, or change the entry.";
    CLIENT_LACKS: Warning "client-lacks", "a client's entry lacks what the client needs",
        why "The client hides mcpzip's tools behind its own tool search, asks before each call, or withholds variables.",
        advice "Run `mcpzip doctor --fix`, or add the keys that are named.",
        fix "Adds the keys; `mcpzip undo` removes them.";
    CLIENT_REFUSES: Warning "client-refuses", "a client refuses every call through mcpzip",
        why "Codex asks before each call of mcpzip's tools, and does not call them if it may not ask.",
        advice "Set `default_tools_approval_mode` of the entry to \"approve\", after which every tool runs without asking, or change `approval_policy`.";
    CLIENT_DISABLED: Warning "client-disabled", "a client's entry for mcpzip is switched off",
        why "The client has no tools from mcpzip.",
        advice "Switch it on in the client.";
    RUN_INTERRUPTED: Warning "run-interrupted", "a run or its undo was interrupted",
        why "It may have changed some of its files and not the others: each is the old one or the new one.",
        advice "Run `mcpzip undo RUN`, which reverts what was changed, then the command again.";
    RUN_DAMAGED: Warning "run-damaged", "the record of a run, or a file that was kept with it, is damaged or gone",
        why "`mcpzip undo` cannot revert the run, or only the values that it changed. It changes nothing before it knows that it can restore each file.",
        advice "Follow the message: put back by hand what you want to have back, then remove the directory of the run. Other runs can be undone.";
    CLIENT_TWICE: Warning "client-twice", "a client has mcpzip twice",
        why "The agent gets the same three tools twice, and every server is started twice.",
        advice "Run `mcpzip disconnect CLIENT`, then `mcpzip connect CLIENT`.";
    CLIENT_DUPLICATE: Warning "client-duplicate", "a server is configured both in mcpzip and in a client",
        why "The client starts it as well, and the agent sees its tools twice.",
        advice "Run `mcpzip migrate --only SERVER`, which removes it from the client.";
    CLIENT_RULE: Warning "client-rule", "a client's rule does not hold for a server behind mcpzip",
        why "The client has the server through mcpzip alone, where a rule about the server's own name has no effect: the client may call what the rule withholds, or without being asked.",
        advice "Run `mcpzip migrate --client SERVER --dry-run`, which shows the rule that mcpzip gets in its place, then without `--dry-run`.";
    CLIENT_RULE_LOST: Warning "client-rule-lost", "a client's rule cannot hold for a server behind mcpzip",
        why "The rule withholds the whole server, which mcpzip has for all clients, or has no counterpart.",
        advice "Limit the server for all clients (`tools`, `projects`, `mcpzip disable`), or give the client a profile without it: `mcpzip disconnect SERVER`, then `mcpzip connect SERVER --profile NAME`.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_apart_and_texts_are_sentences() {
        for (at, kind) in ALL.iter().enumerate() {
            assert!(
                ALL[..at].iter().all(|other| other.code != kind.code),
                "`{}` twice",
                kind.code
            );
            assert!(
                kind.code
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'-'),
                "{}",
                kind.code
            );
            assert!(!kind.title.ends_with('.'), "{}", kind.code);
            for text in [kind.why, kind.advice].into_iter().chain(kind.fix) {
                assert!(text.ends_with('.'), "{}: {text}", kind.code);
            }
        }
    }

    /// `cargo test doctor_page -- --nocapture` prints the expected page.
    #[test]
    fn the_doctor_page_has_every_finding() {
        let page = page();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/doctor.md");
        let written = std::fs::read_to_string(path).unwrap_or_default();
        if written != page {
            println!("{page}");
            panic!("docs/doctor.md is not made of the table any more; it is printed above");
        }
    }

    fn page() -> String {
        let mut page = include_str!("page.md").to_owned();
        for kind in ALL {
            let severity = format!("{:?}", kind.severity).to_lowercase();
            page.push_str(&format!(
                "\n## {}\n\n*{severity}*: {}.\n\n{}\n\n",
                kind.code, kind.title, kind.why
            ));
            page.push_str(&format!("**To fix it**: {}\n", kind.advice));
            if let Some(fix) = kind.fix {
                page.push_str(&format!("\n**`--fix`**: {fix}\n"));
            }
        }
        page
    }
}
