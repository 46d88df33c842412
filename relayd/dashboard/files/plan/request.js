// A request between form, address and API: what differs from the defaults is what is said.

import { FIELDS } from "./fields.js";

const parts = (text) =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);

const isSeveral = (field) => ["list", "places"].includes(field.control);

// A request: names to texts as they are written in the form; what is empty is left out.
export function fromAddress(search) {
  const query = new URLSearchParams(search);
  const request = {};
  for (const field of FIELDS.values()) {
    const given = query.getAll(field.name).filter((value) => value.trim() !== "");
    if (given.length) request[field.name] = isSeveral(field) ? given.join(", ") : given.at(-1);
  }
  return request;
}

function isDefault(field, text) {
  return field.control === "number" ? Number(text) === field.default : text === field.standard;
}

// Without what is empty or at its default.
export function tidied(request) {
  return Object.fromEntries(
    [...FIELDS.values()]
      .map((field) => [field, String(request[field.name] ?? "").trim()])
      .filter(([field, text]) => text && !isDefault(field, text))
      .map(([field, text]) => [field.name, text]),
  );
}

export function toAddress(request) {
  const query = new URLSearchParams();
  for (const [name, text] of Object.entries(tidied(request))) {
    for (const value of isSeveral(FIELDS.get(name)) ? parts(text) : [text]) query.append(name, value);
  }
  // Colons and slashes are allowed in a query and easier to read.
  return query.toString().replaceAll("%3A", ":").replaceAll("%2F", "/");
}

// What is asked of the API, as pairs of a field and a value of its JSON type.
export function asked(request) {
  const said = tidied({ ...request, frontier: "" });
  const pairs = Object.entries(said).map(([name, text]) => [FIELDS.get(name), valueOf(FIELDS.get(name), text)]);
  const frontier = FIELDS.get("frontier");
  if ((request.frontier ?? frontier.standard) === "true") pairs.push([frontier, true]);
  return pairs;
}

// What is no number stays a text, such as `1TB`: the API reads it, or says what is wrong.
function numeric(text) {
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text)) ? Number(text) : text;
}

function valueOf(field, text) {
  if (field.control === "number") return numeric(text);
  if (field.control === "list") return parts(text);
  if (field.control !== "places") return text;
  return Object.fromEntries(
    parts(text).map((part) => {
      const at = part.lastIndexOf("=");
      const [place, value] = at < 0 ? [part, ""] : [part.slice(0, at).trim(), part.slice(at + 1).trim()];
      return [place, field.of.kind === "text" ? value : numeric(value)];
    }),
  );
}

// How it is asked: a query string, or a body where figures by place need one.
export function question(request) {
  const pairs = asked(request);
  return {
    isBody: pairs.some(([field]) => field.control === "places"),
    content: Object.fromEntries(pairs.map(([field, value]) => [field.name, value])),
  };
}
