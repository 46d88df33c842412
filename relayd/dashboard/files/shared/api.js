// Asks the service that sent this page. Errors are the problem documents of the API (RFC 9457).

// Readable, and worth nothing: says that this browser has the cookie that no script can read.
const MARK = "relayd-signed-in";
const [AGAIN_MS, SILENT_MS] = [3000, 45_000];

export class Problem extends Error {
  constructor(status, content) {
    super(content.detail || content.title || `The service answered ${status}.`);
    const { kind = "", field = "", request_id: requestId = "" } = content;
    Object.assign(this, { status, content, kind, field, requestId });
  }
}

export const isSignedIn = () => document.cookie.includes(`${MARK}=1`);
export const isSignedOut = () => "needsToken" in document.documentElement.dataset && !isSignedIn();
const mark = (more) => { document.cookie = `${MARK}=1; SameSite=Strict${more}`; };

// From then on the browser sends the token by itself, from pages of this service alone.
export async function signIn(token) {
  const found = await content(await send("v1/session", { method: "POST", headers: { Authorization: `Bearer ${token}` } }));
  mark("");
  return found;
}

export async function signOut() {
  mark("; Max-Age=0");
  await content(await send("v1/session", { method: "DELETE" }));
}

let ask = null;
// shell.js goes to the page where a token is typed; null where the answer is an error like others.
export const onUnauthorized = (go) => { ask = go; };

async function send(path, options) {
  const response = (!ask || path === "v1/session" || !isSignedOut()) && await fetch(path, options).catch((error) => {
    throw error.name === "AbortError" ? error : new Problem(0, { detail: "The service does not answer. Is it still running?" });
  });
  if (ask && (!response || response.status === 401)) {
    ask();
    await new Promise(() => {}); // this page ends here
  }
  return response;
}

async function content(response) {
  if (response.ok) return response.json();
  throw new Problem(response.status, await response.json().catch(() => ({})));
}

export function address(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === null || value === "") continue;
    for (const each of Array.isArray(value) ? value : [value]) query.append(name, each);
  }
  return query.size ? `${path}?${query}` : path;
}

// Paths are relative ("v1/links"), so that a prefix of a reverse proxy does no harm.
export const get = async (path, parameters = {}, { signal } = {}) =>
  content(await send(address(path, parameters), { signal }));

export const post = async (path, body, { signal } = {}) => content(await send(path,
  { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal }));

// The last page of a list with all entries, at most `most`; `key` names the list in the answer.
export async function all(path, key, parameters = {}, { most = 20000, signal } = {}) {
  const found = [];
  let page;
  do {
    page = await get(path, { limit: 1000, ...parameters, cursor: page?.next_cursor }, { signal });
    found.push(...page[key]);
  } while (page.next_cursor && found.length < most);
  return { ...page, [key]: found };
}

// What an answer says, part by part as it comes.
export async function* texts(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
}

// Server-sent events, for ever: EventSource does not tell of signs of life, so they are read by hand.
// `heard({ kind, data })` for each; `onState(true | false)` as the stream comes and goes.
export async function events(heard, onState = () => {}) {
  let last = "";
  for (;;) {
    // The service says every 15 s that it is still here. A connection that died without a word, as when a
    // laptop slept, is given up, and another one made.
    const round = new AbortController();
    let timer = setTimeout(() => round.abort(), SILENT_MS);
    try {
      const response = await send("v1/events", { headers: last ? { "Last-Event-ID": last } : {}, signal: round.signal });
      if (!response.ok) await content(response);
      onState(true);
      let text = "";
      for await (const part of texts(response)) {
        clearTimeout(timer);
        timer = setTimeout(() => round.abort(), SILENT_MS);
        const blocks = (text + part).split("\n\n");
        text = blocks.pop();
        for (const block of blocks) {
          const field = (name) => block.match(new RegExp(`^${name}: ?(.*)$`, "m"))?.[1];
          last = field("id") ?? last;
          if (field("data")) heard({ kind: field("event"), data: JSON.parse(field("data")) });
        }
      }
    } catch (error) {
      // Without a token that may read, trying again is of no use; all else may pass.
      if (error.status === 401 || error.status === 403) return;
    } finally {
      clearTimeout(timer);
      onState(false);
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

// The service's first start prints a link with a token after the #, which browsers send nowhere.
const linked = () => new URLSearchParams(location.hash.slice(1)).get("token");
addEventListener("hashchange", () => linked() && location.reload()); // pasted into an open tab
if (linked()) {
  const token = linked();
  history.replaceState(null, "", location.pathname + location.search);
  await signIn(token).catch(() => {}); // what is asked next says why
}
