// A request between form, address and API: what differs from the defaults is what is said.

import { Problem } from "../shared/api.js";
import { FIELDS, isLong, QUESTION } from "./fields.js";
import { documentOf, numeric, rowsOf } from "./rows.js";

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
  return request;
}

const isDefault = (field, text) => (field.control === "number" ? Number(text) === field.default : text === field.standard);

// Without what is empty or at its default.
export const tidied = (request) => Object.fromEntries([...FIELDS.values()]
  .map((field) => [field, String(request[field.name] ?? "").trim()])
  .filter(([field, text]) => text && !isDefault(field, text))
  .map(([field, text]) => [field.name, text]));

// beside: the address of the request whose answer stands beside this one's.
export function toAddress(request, beside = "") {
  const [query, long] = [new URLSearchParams(), new URLSearchParams()];
  if (QUESTION.name !== "transfer") query.set("question", QUESTION.name);
  for (const [name, text] of Object.entries(tidied(request))) {
    const field = FIELDS.get(name);
    for (const value of isSeveral(field) ? parts(text) : [text]) (isLong(field) ? long : query).append(name, value);
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
    return text ? [[field, valueOf(field, text)]] : [];
  });
}

function placed(text, of) {
  return parts(text).map((part) => {
    const at = part.lastIndexOf("=");
    const [place, value] = at < 0 ? [part, ""] : [part.slice(0, at).trim(), part.slice(at + 1).trim()];
    return [place, of?.kind === "text" ? value : numeric(value)];
  });
}

function onceEach(field, figures) {
  const found = Object.fromEntries(figures);
  if (Object.keys(found).length < figures.length) throw new Problem(422, { kind: "input", field: field.name, detail: "names a place twice." });
  return found;
}

// Raises a problem at its field where a table or a document can't be read.
function valueOf(field, text) {
  if (field.control === "number") return numeric(text);
  if (field.control === "list") return parts(text);
  if (field.control === "table") return rowsOf(field, text);
  if (field.control === "document") return documentOf(field, text);
  if (field.control === "places") return onceEach(field, placed(text, field.of));
  if (field.control === "moved" && text.includes("=")) {
    return placed(text).map(([pair, volume_gb]) => {
      const [src, dst = ""] = pair.split(">").map((end) => end.trim());
      return { src, dst, volume_gb };
    });
  }
  return field.control === "moved" ? numeric(text) : text;
}

// How it is asked: a transfer by a query string, unless figures by place need a body as all else does.
export function question(request) {
  const pairs = asked(request);
  return {
    isBody: QUESTION.name !== "transfer" || pairs.some(([field]) => field.control === "places"),
    content: Object.fromEntries(pairs.map(([field, value]) => [field.name, value])),
  };
}
