//! The identity provider of an enterprise: people log in, and ID tokens are exchanged for assertions (ID-JAG). Its signatures are
//! empty words, which only the server that takes an assertion would look at.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use serde_json::{Value, json};

use super::http::{HttpServer, Reply, Request};

/// The id and the secret of mcpzip there.
pub(crate) const CLIENT: (&str, &str) = ("zip-at-idp", "secret-of-zip-at-idp");

/// The behaviour of the provider. A default is the best behaviour.
#[derive(Debug, Clone)]
pub(crate) struct Conduct {
    /// The lifetime of an ID token in seconds.
    pub(crate) life: u64,
    /// Whether it issues refresh tokens.
    pub(crate) refreshes: bool,
    /// The error of each exchange.
    pub(crate) refuses: Option<&'static str>,
    /// Members of the claims of ID tokens, and of the header and the claims of assertions, in place of the right ones.
    pub(crate) id_claims: Value,
    pub(crate) head: Value,
    pub(crate) claims: Value,
    /// The `issued_token_type`.
    pub(crate) kind: &'static str,
}

/// The state of the provider.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) conduct: Conduct,
    codes: BTreeMap<String, String>,
    /// The ID tokens and refresh tokens that are valid.
    pub(crate) subjects: Vec<String>,
    /// Everything that is to appear nowhere else.
    pub(crate) secrets: Vec<String>,
    pub(crate) logins: usize,
    pub(crate) exchanges: usize,
}

/// A running provider.
#[derive(Clone)]
pub(crate) struct IdentityProvider {
    pub(crate) web: HttpServer,
    known: Arc<Mutex<Known>>,
}

impl Default for Conduct {
    fn default() -> Self {
        Self {
            life: 3600,
            refreshes: true,
            refuses: None,
            id_claims: json!({}),
            head: json!({}),
            claims: json!({}),
            kind: "urn:ietf:params:oauth:token-type:id-jag",
        }
    }
}

impl IdentityProvider {
    pub(crate) fn start(conduct: Conduct) -> Self {
        let known = Arc::new(Mutex::new(Known {
            conduct,
            codes: BTreeMap::new(),
            subjects: Vec::new(),
            secrets: vec![CLIENT.1.to_owned()],
            logins: 0,
            exchanges: 0,
        }));
        let shared = known.clone();
        let web = HttpServer::start(move |request, reply| answer(&shared, request, reply));
        Self { web, known }
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap()
    }

    pub(crate) fn issuer(&self) -> String {
        self.web.url("")
    }

    /// The `oauth` of a server that is used with this provider, where mcpzip is the client `me`.
    pub(crate) fn oauth(&self, secret: &str) -> Value {
        json!({
            "grant": "id-jag", "client_id": "me", "client_secret": secret,
            "idp": { "issuer": self.issuer(), "client_id": CLIENT.0, "client_secret": CLIENT.1 },
        })
    }

    /// An ID token, as another program would have got it.
    pub(crate) fn id_token(&self) -> String {
        self.known().id_token(&self.issuer(), "")
    }
}

impl Known {
    fn id_token(&mut self, issuer: &str, nonce: &str) -> String {
        let mut claims = json!({
            "iss": issuer, "aud": CLIENT.0, "sub": "anna", "exp": now() + self.conduct.life, "nonce": nonce,
            "jti": self.secrets.len(),
        });
        put(&mut claims, &self.conduct.id_claims);
        let token = jwt(&json!({ "alg": "ES256", "typ": "JWT" }), &claims);
        self.subjects.push(token.clone());
        self.secrets.push(token.clone());
        token
    }
}

fn answer(known: &Mutex<Known>, request: &Request, reply: &mut Reply) {
    let issuer = format!("http://{}", request.header("host"));
    let url = Url::parse(&format!("{issuer}{}", request.path)).unwrap();
    let pairs = match request.method.as_str() {
        "POST" => Url::parse(&format!("http://form?{}", request.text)).unwrap(),
        _ => url.clone(),
    };
    let fields: BTreeMap<String, String> = pairs.query_pairs().into_owned().collect();
    let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let mut known = known.lock().unwrap();
    match url.path() {
        "/.well-known/openid-configuration" => reply.json(
            &json!({
                "issuer": issuer, "authorization_endpoint": format!("{issuer}/authorize"),
                "token_endpoint": format!("{issuer}/token"), "scopes_supported": ["openid", "offline_access"],
            })
            .to_string(),
        ),
        "/authorize" => {
            let is_good = field("client_id") == CLIENT.0
                && field("scope").split(' ').any(|scope| scope == "openid")
                && field("code_challenge_method") == "S256"
                && !fields.contains_key("resource")
                && field("nonce").len() > 20;
            if !is_good {
                return reply.whole("400 Bad Request", "", "not so");
            }
            let code = format!("idp-code-{}-77e1", known.codes.len());
            known.codes.insert(code.clone(), field("nonce"));
            known.secrets.push(code.clone());
            let mut back = Url::parse(&field("redirect_uri")).unwrap();
            back.query_pairs_mut()
                .append_pair("code", &code)
                .append_pair("state", &field("state"));
            reply.whole("302 Found", &format!("location: {back}\r\n"), "");
        }
        "/token" => token(&mut known, &issuer, request, &field, reply),
        _ => reply.whole("404 Not Found", "", ""),
    }
}

fn token(
    known: &mut Known,
    issuer: &str,
    request: &Request,
    field: &dyn Fn(&str) -> String,
    reply: &mut Reply,
) {
    let mut refuse = |error: &str, words: &str| {
        let body = json!({ "error": error, "error_description": words }).to_string();
        reply.whole(
            "400 Bad Request",
            "content-type: application/json\r\n",
            &body,
        );
    };
    let pair =
        base64::engine::general_purpose::STANDARD.encode(format!("{}:{}", CLIENT.0, CLIENT.1));
    if request.header("authorization") != format!("Basic {pair}") {
        return refuse("invalid_client", "who are you");
    }
    if field("grant_type") == "authorization_code" {
        let Some(nonce) = known.codes.remove(&field("code")) else {
            return refuse("invalid_grant", "no such code");
        };
        known.logins += 1;
        let mut given = json!({ "access_token": "of-the-idp-itself", "token_type": "Bearer" });
        given["id_token"] = known.id_token(issuer, &nonce).into();
        if known.conduct.refreshes {
            let refresh = format!("idp-refresh-{}-5c2d", known.logins);
            known.subjects.push(refresh.clone());
            known.secrets.push(refresh.clone());
            given["refresh_token"] = refresh.into();
        }
        return reply.json(&given.to_string());
    }
    let kind = |kind: &str| format!("urn:ietf:params:oauth:token-type:{kind}");
    let is_exchange = field("grant_type") == "urn:ietf:params:oauth:grant-type:token-exchange"
        && field("requested_token_type") == kind("id-jag")
        && !field("audience").is_empty()
        && !field("resource").is_empty();
    if !is_exchange {
        return refuse("invalid_request", "not so");
    }
    known.exchanges += 1;
    let subject = field("subject_token");
    let expected = match subject.matches('.').count() {
        2 => kind("id_token"),
        _ => kind("refresh_token"),
    };
    if let Some(error) = known.conduct.refuses {
        // The error repeats the token, as a careless server does.
        return refuse(error, &format!("{subject} is no good"));
    }
    if !known.subjects.contains(&subject) || field("subject_token_type") != expected {
        return refuse("invalid_grant", &format!("{subject} is no good"));
    }
    let mut head = json!({ "alg": "ES256", "typ": "oauth-id-jag+jwt" });
    put(&mut head, &known.conduct.head);
    let mut claims = json!({
        "iss": issuer, "sub": "anna", "aud": field("audience"), "resource": field("resource"), "client_id": "me",
        "exp": now() + 300, "jti": known.exchanges, "scope": field("scope"),
    });
    put(&mut claims, &known.conduct.claims);
    let assertion = jwt(&head, &claims);
    known.secrets.push(assertion.clone());
    let given = json!({ "access_token": assertion, "issued_token_type": known.conduct.kind, "token_type": "N_A" });
    reply.json(&given.to_string());
}

fn put(object: &mut Value, members: &Value) {
    for (name, value) in members.as_object().unwrap() {
        object[name] = value.clone();
    }
}

fn jwt(head: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.c2lnbmVk", part(head), part(claims))
}

fn now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_secs()
}
