// The fields of a question, as the service specifies them (GET /v1/questions).

import { get } from "../shared/api.js";

// By name; empty until they are loaded.
export const FIELDS = new Map();
// The question that they belong to, and the names of all.
export let QUESTION = null;
export let QUESTIONS = [];

// The page of a transfer asks for the frontier unless told not to: its chart needs it.
const ON_PAGE = { transfer: { frontier: "true" } };

// An unknown name is that of a transfer, the question of every address without one.
export async function loadFields(name = "transfer") {
  QUESTIONS = (await get("v1/questions")).questions;
  QUESTION = QUESTIONS.find((question) => question.name === name) ?? QUESTIONS[0];
  FIELDS.clear();
  for (const field of QUESTION.fields) {
    if (!field.option) continue; // names an array's rows: for the library alone
    const made = { ...field, control: controlOf(field), unit: field.kind === "moved" ? "GB" : field.unit };
    made.standard = ON_PAGE[QUESTION.name]?.[field.name] ?? (typeof field.default === "object" ? "" : String(field.default));
    FIELDS.set(field.name, made);
  }
}

// How a field is filled in: list and places hold several values, with commas; a table and a document
// are texts of many lines.
function controlOf({ kind }) {
  if (["choice", "flag", "region", "document"].includes(kind)) return kind;
  if (["rules", "regions", "types"].includes(kind)) return "list";
  if (["pairs", "items", "tasks"].includes(kind)) return "table";
  return { by_place: "places", moved: "moved" }[kind] ?? "number";
}

export const isLong = (field) => ["table", "document"].includes(field.control);

// The field that a problem of the API names: `budget_usd`, `vms_in aws:us-east-1`.
export const fieldOf = (name = "") => FIELDS.get(name.split(" ")[0]) ?? null;

// A problem with fields as the form calls them: "Volume must be ...", not `volume_gb: must be ...`.
export function worded({ message, field: named }) {
  const field = fieldOf(named);
  const text = !field ? message
    : message.replace(/^Missing /, "").startsWith(named) ? message.replace(named, field.label + named.slice(field.name.length))
      : /^[a-z]/.test(message) ? `${field.label} ${message}` : message;
  const quoted = (said, name) => (FIELDS.has(name) ? `"${FIELDS.get(name).label}"` : said);
  return text.replace(/`?\b([a-z]+(?:_[a-z]+)+)\b`?/g, quoted);
}
