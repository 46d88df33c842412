// A request between form, address and API: what differs from the defaults is what is said.

import { BY_NAME, OPTIONS } from "./options.js";

const parts = (text) =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);

// A request: names to texts as they are written in the form; what is empty is left out.
export function fromAddress(search) {
  const query = new URLSearchParams(search);
  const request = {};
  for (const option of OPTIONS) {
    const given = query.getAll(option.name).filter((value) => value.trim() !== "");
    if (given.length)
      request[option.name] = option.kind === "list" || option.kind === "places" ? given.join(", ") : given.at(-1);
  }
  return request;
}

function isDefault(option, text) {
  if (option.onPage !== undefined) return text === String(option.onPage);
  if (option.default === undefined) return false;
  return option.kind === "number" ? text !== "" && Number(text) === option.default : text === option.default;
}

// Without what is empty or at its default.
export function tidied(request) {
  return Object.fromEntries(
    OPTIONS.map((option) => [option, String(request[option.name] ?? "").trim()])
      .filter(([option, text]) => text && !isDefault(option, text))
      .map(([option, text]) => [option.name, text]),
  );
}

const withPlaces = (request) => OPTIONS.some((option) => option.kind === "places" && request[option.name]);

export function toAddress(request) {
  const query = new URLSearchParams();
  for (const [name, text] of Object.entries(tidied(request))) {
    const kind = BY_NAME.get(name).kind;
    for (const value of kind === "list" || kind === "places" ? parts(text) : [text]) query.append(name, value);
  }
  // Colons and slashes are allowed in a query and easier to read.
  return query.toString().replaceAll("%3A", ":").replaceAll("%2F", "/");
}

// What is asked of the API, as pairs of an option and a value of its JSON type.
export function asked(request) {
  const said = tidied({ ...request, frontier: "" });
  const pairs = Object.entries(said).map(([name, text]) => [BY_NAME.get(name), valueOf(BY_NAME.get(name), text)]);
  const frontier = BY_NAME.get("frontier");
  if ((request.frontier ?? String(frontier.onPage)) === "true") pairs.push([frontier, true]);
  return pairs;
}

// What is no number stays a text, for the API to say so.
function numeric(text) {
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text)) ? Number(text) : text;
}

function valueOf(option, text) {
  if (option.kind === "number") return numeric(text);
  if (option.kind === "list") return parts(text);
  if (option.kind !== "places") return text;
  return Object.fromEntries(
    parts(text).map((part) => {
      const at = part.lastIndexOf("=");
      const [place, value] = at < 0 ? [part, ""] : [part.slice(0, at).trim(), part.slice(at + 1).trim()];
      return [place, option.text ? value : numeric(value)];
    }),
  );
}

// How it is asked: a query string, or a body where figures by place need one.
export function question(request) {
  const pairs = asked(request).map(([option, value]) => [option.name, value]);
  return { isBody: withPlaces(tidied(request)), content: Object.fromEntries(pairs) };
}
