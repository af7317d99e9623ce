// A person in a browser without scripts: follows redirects, keeps cookies, logs in and consents. `browser.mjs PERSON URL` prints the URL
// of the first redirect to a port without a server, which is the client's.

const decoded = (text) => text.replaceAll("&quot;", '"').replaceAll("&#39;", "'").replaceAll("&amp;", "&");

/** The form of a page, with the members that a person would send. */
function formOf(html, at, person) {
  const form = html.match(/<form[^>]*>/i)?.[0];
  if (!form) throw new Error(`no form at ${at}: ${html}`);
  const fields = new URLSearchParams();
  for (const [tag] of html.matchAll(/<(input|button)\b[^>]*>/gi)) {
    const value = (name) => decoded(tag.match(new RegExp(`\\b${name}="([^"]*)"`, "i"))?.[1] ?? "");
    const name = value("name");
    if (name === "login") fields.set(name, person);
    else if (name === "password") fields.set(name, "any");
    else if (name && !(name === "decision" && value("value") !== "allow")) fields.set(name, value("value"));
  }
  const action = decoded(form.match(/\baction="([^"]*)"/i)?.[1] ?? "");
  return { action: new URL(action || at, at), fields };
}

/** Goes to `url` and on, until a redirect to `end`, and returns that. */
export async function visit(url, end, person, cookies = new Map()) {
  let [method, body] = ["GET", undefined];
  for (let step = 0; step < 30; step += 1) {
    if (String(url).startsWith(end)) return new URL(url);
    const at = new URL(url);
    const own = cookies.get(at.host) ?? new Map();
    cookies.set(at.host, own);
    const headers = { cookie: [...own].map(([name, value]) => `${name}=${value}`).join("; ") };
    if (method === "POST") {
      headers["content-type"] = "application/x-www-form-urlencoded";
      headers.origin = at.origin;
    }
    const answer = await fetch(at, { method, body, headers, redirect: "manual" });
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name, value] = cookie.match(/^([^=]+)=([^;]*)/);
      if (value && !/expires=Thu, 01 Jan 1970/i.test(cookie)) own.set(name, value);
      else own.delete(name);
    }
    const html = await answer.text();
    if (answer.status >= 300 && answer.status < 400) {
      [url, method, body] = [new URL(answer.headers.get("location"), at), "GET", undefined];
      continue;
    }
    if (answer.status >= 400) throw new Error(`HTTP ${answer.status} at ${at}: ${html}`);
    const form = formOf(html, at, person);
    [url, method, body] = [form.action, "POST", form.fields.toString()];
  }
  throw new Error(`no end: ${url}`);
}

/** Accepts the invitation at a link. */
export async function accept(link, person, cookies) {
  const page = await fetch(link);
  const { host, origin } = new URL(link);
  const own = new Map();
  const keep = (answer) => {
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name, value] = cookie.match(/^([^=]+)=([^;]*)/);
      own.set(name, value);
    }
  };
  keep(page);
  const form = formOf(await page.text(), link, person);
  const cookie = [...own].map(([name, value]) => `${name}=${value}`).join("; ");
  const headers = { cookie, origin, "content-type": "application/x-www-form-urlencoded" };
  const answer = await fetch(form.action, { method: "POST", body: form.fields.toString(), headers });
  if (answer.status !== 200) throw new Error(`HTTP ${answer.status} at ${link}: ${await answer.text()}`);
  keep(answer);
  cookies.set(host, own);
}

if (process.argv[1]?.endsWith("browser.mjs")) {
  const [person, end, url, link] = process.argv.slice(2);
  const cookies = new Map();
  if (link) await accept(link, person, cookies);
  console.log(String(await visit(url, end, person, cookies)));
}
