// A request between form, address and API: what differs from the defaults is what is said. Its fields are
// those of a question, as the service specifies them (GET /v1/questions).

import { Problem, get } from "../shared/kit.js";

// By name; empty until they are loaded.
export const FIELDS = new Map();
// The question that they belong to, and all of them; the tools that plans are written for; a transfer under way and
// its plan, for which its id stands in addresses and commands.
export let [QUESTION, QUESTIONS, TOOLS, STORED] = [null, [], [], {}];

// The page of a transfer asks for the frontier unless told not to: its chart needs it.
const ON_PAGE = { transfer: { frontier: "true" } };

// An unknown name is that of a transfer, the question of every address without one.
export async function loadFields(name, id) {
  ({ questions: QUESTIONS, tools: TOOLS } = await get("v1/questions"));
  QUESTION = QUESTIONS.find((question) => question.name === name) ?? QUESTIONS[0];
  FIELDS.clear();
  for (const field of QUESTION.fields) {
    if (!field.option) continue; // names an array's rows: for the library alone
    const made = { ...field, control: CONTROLS[field.kind] ?? "number", unit: field.kind === "moved" ? "GB" : field.unit };
    made.standard = ON_PAGE[QUESTION.name]?.[field.name] ?? (typeof field.default === "object" ? "" : String(field.default));
    FIELDS.set(field.name, made);
  }
  if (id) STORED = { id, plan: JSON.stringify((await get(`v1/transfers/${encodeURIComponent(id)}`)).details.plan) };
}

// How a field is filled in: list and places hold several values, with commas; a table and a document
// are texts of many lines.
const CONTROLS = { by_place: "places", rules: "list", regions: "list", types: "list", pairs: "table", items: "table", tasks: "table" };
for (const own of ["choice", "flag", "region", "document", "moved"]) CONTROLS[own] = own;

export const isLong = (field) => ["table", "document"].includes(field.control);

// The field that a problem of the API names: `budget_usd`, `vms_in aws:us-east-1`.
export const fieldOf = (name = "") => FIELDS.get(name.split(" ")[0]) ?? null;

// A problem with fields as the form calls them: "Volume must be ...", not `volume_gb: must be ...`.
export function worded({ message, field: named }) {
  const field = fieldOf(named);
  const bare = message.replace(/^Missing /, "");
  const text = !field ? message : bare.startsWith(named) ? message.replace(field.name, field.label)
    : /^[a-z]/.test(message) ? `${field.label} ${message}` : message;
  const quoted = (said, name) => (FIELDS.has(name) ? `"${FIELDS.get(name).label}"` : said);
  return text.replace(/`?\b([a-z]+(?:_[a-z]+)+)\b`?/g, quoted);
}

const parts = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);
const isSeveral = (field) => ["list", "places"].includes(field.control);

// A request: names to texts as they are written in the form; what is empty is left out. Tables and
// documents stand behind the #, which browsers send nowhere: an address may be longer than a service
// takes.
export function fromAddress(search, hash = "") {
  const [query, long] = [new URLSearchParams(search), new URLSearchParams(hash.replace(/^#/, ""))];
  const request = {};
  for (const field of FIELDS.values()) {
    const given = (isLong(field) ? long : query).getAll(field.name).filter((value) => value.trim() !== "");
    if (given.length) request[field.name] = isSeveral(field) ? given.join(", ") : given.at(-1);
  }
  return query.get("transfer") === STORED.id ? { plan: STORED.plan, ...request } : request;
}

const isDefault = (field, text) => (field.control === "number" ? Number(text) === field.default : text === field.standard);
// Without what is empty or at its default.
export const tidied = (request) => Object.fromEntries([...FIELDS.values()]
  .map((field) => [field, String(request[field.name] ?? "").trim()])
  .filter(([field, text]) => text && !isDefault(field, text))
  .map(([field, text]) => [field.name, text]));

// Values of JSON as the form writes them.
export const written = (values) => Object.fromEntries(Object.entries(values).map(([name, value]) => [name,
  typeof value !== "object" ? String(value) : FIELDS.get(name)?.control === "places" ? Object.entries(value).map((pair) => pair.join("=")).join(", ")
    : FIELDS.get(name)?.control === "list" ? value.join(", ") : JSON.stringify(value, null, 1)]));

// beside: the address of the request whose answer stands beside this one's.
export function toAddress(request, beside = "") {
  const [query, long] = [new URLSearchParams(), new URLSearchParams()];
  if (QUESTION.name !== "transfer") query.set("question", QUESTION.name);
  for (const [name, text] of Object.entries(tidied(request))) {
    const field = FIELDS.get(name);
    if (text === STORED.plan) query.set("transfer", STORED.id);
    else for (const value of isSeveral(field) ? parts(text) : [text]) (isLong(field) ? long : query).append(name, value);
  }
  if (beside) long.set("beside", beside);
  // Colons and slashes are allowed in a query and easier to read.
  return [query, long].map((part) => part.toString().replaceAll("%3A", ":").replaceAll("%2F", "/")).filter(Boolean).join("#");
}

export function besideOf(hash) {
  const address = new URLSearchParams(hash.replace(/^#/, "")).get("beside");
  if (!address) return null;
  const [query, long = ""] = address.split("#");
  return { address, request: fromAddress(query, long) };
}

// What is asked of the API, as pairs of a field and a value of its JSON type.
export function asked(request) {
  const said = tidied(request);
  return [...FIELDS.values()].flatMap((field) => {
    const text = said[field.name] ?? (field.control === "flag" ? String(request[field.name] ?? field.standard) : "");
    if (field.control === "flag") return text === "true" ? [[field, true]] : [];
    return text ? [[field, READ[field.control]?.(field, text) ?? text]] : [];
  });
}

function placed(text, of) {
  return parts(text).map((part) => {
    const [, place, value] = /^(.*?)(?:=([^=]*))?$/s.exec(part);
    return [place.trim(), of?.kind === "text" ? value?.trim() ?? "" : numeric(value?.trim() ?? "")];
  });
}

// A time of day here, such as 17:30, as the seconds until then; null for other texts.
const until = (text) => (!/^([01]?\d|2[0-3]):[0-5]\d$/.test(text) ? null
  : Math.round((new Date().setHours(...text.split(":"), 0, 0) - Date.now()) / 1000 + 86400) % 86400);

// Raises a problem at its field where a table or a document can't be read.
const READ = {
  number: ({ name }, text) => (name === "deadline_s" ? until(text) : null) ?? numeric(text), list: (_, text) => parts(text), table: rowsOf, document: documentOf,
  places(field, text) {
    const found = placed(text, field.of);
    if (new Set(found.map(([place]) => place)).size < found.length) throw wrong(field, "names a place twice.");
    return Object.fromEntries(found);
  },
  moved: (_, text) => (!text.includes("=") ? numeric(text) : placed(text).map(([pair, volume_gb]) => {
    const [src, dst = ""] = pair.split(">").map((end) => end.trim());
    return { src, dst, volume_gb };
  })),
};

// How it is asked: a transfer by a query string, unless figures by place need a body as all else does.
export function question(request) {
  const pairs = asked(request);
  return {
    isBody: QUESTION.name !== "transfer" || pairs.some(([field]) => field.control === "places"),
    content: Object.fromEntries(pairs.map(([field, value]) => [field.name, value])),
  };
}

// Tables as people write them: CSV with a heading, or JSON. A text is what the form and the address keep.

const COLUMN_OF = { from: "src", to: "dst", gb: "volume_gb", volume: "volume_gb" };
const [PAIR, TASK] = [["src From text", "dst To text", "volume_gb Volume volume GB"], ["id Id text", "cpus CPUs number"]]
  .map((columns) => columns.map((column) => column.split(" ")).map(([name, label, kind, unit]) => ({ name, label, kind, unit })));

export const columnsOf = (field) => ({ pairs: PAIR, tasks: TASK })[field.kind] ?? field.fields;

const wrong = (field, text) => new Problem(422, { kind: "input", field: field.name, detail: text });

// Cells by line. A cell in quotes may hold what divides cells, and two quotes for one.
function cellsOf(text) {
  const [first] = text.trimStart().split("\n", 1);
  const divider = ["\t", ","].find((each) => first.includes(each)) ?? ";";
  const lines = [[]];
  for (const [, cell, end] of text.matchAll(new RegExp(`("(?:[^"]|"")*" *|[^${divider}\n]*)(${divider}|\r?\n|$)`, "g"))) {
    lines.at(-1).push(cell.trimEnd().replace(/^"(.*)"$/s, (_, inner) => inner.replaceAll('""', '"')).trim());
    if (end !== divider) lines.push([]);
  }
  return lines.filter((line) => line.some(Boolean));
}

// What a table's text says, as JSON for the API: objects by column, numbers where they are some.
export function rowsOf(field, text) {
  if (/^\s*[[{]/.test(text)) return documentOf(field, text);
  const [head, ...lines] = cellsOf(text);
  if (!lines.length) throw wrong(field, "has no rows under its heading.");
  lines.forEach((line, at) => {
    if (line.length !== head.length) throw wrong(field, `Row ${at + 1} under the heading has ${line.length} of ${head.length} cells.`);
  });
  const names = head.map((name) => name.toLowerCase()).map((name) => (field.kind === "pairs" ? COLUMN_OF[name] ?? name : name));
  if (field.kind === "pairs" && !names.includes("src")) return lines.flatMap(([src, ...cells]) => cells // of a matrix, whose corner is a unit
    .map((cell, at) => ({ src, dst: head[at + 1], volume_gb: cell && numeric(`${cell} ${head[0]}`.trim()) })).filter((row) => row.volume_gb !== "" && row.src !== row.dst));
  const isText = new Set(columnsOf(field).filter((column) => ["text", "region"].includes(column.kind)).map((column) => column.name));
  return lines.map((line) => Object.fromEntries(names.map((name, at) => [name, isText.has(name) ? line[at] : numeric(line[at])])
    .filter(([, value]) => value !== "")));
}

function documentOf(field, text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw wrong(field, `is not JSON: ${error.message}.`);
  }
}

// Rows as CSV; a column that no row fills is left out.
export function textOf(columns, rows) {
  const said = (row, name) => String(row[name] ?? "");
  const used = columns.map(({ name }) => name).filter((name) => rows.some((row) => said(row, name)));
  const written = (cell) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  return used.length ? [used, ...rows.map((row) => used.map((name) => written(said(row, name))))].join("\n") : "";
}

// What is no number stays a text, such as `1TB`: the API reads it, or says what is wrong.
function numeric(text) {
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text)) ? Number(text) : text;
}
