// The fields of a transfer, as the service specifies them (GET /v1/questions).

import { get } from "../shared/api.js";

// By name; empty until they are loaded.
export const FIELDS = new Map();

// The page asks for the frontier unless told not to: its chart needs it.
const ON_PAGE = { frontier: "true" };

export async function loadFields() {
  const { questions } = await get("v1/questions");
  for (const field of questions.find((question) => question.name === "transfer").fields) {
    const made = { ...field, control: controlOf(field) };
    made.standard = ON_PAGE[field.name] ?? (typeof field.default === "object" ? "" : String(field.default));
    FIELDS.set(field.name, made);
  }
}

// How a field is filled in: list and places hold several values, with commas.
function controlOf({ kind }) {
  if (["choice", "flag", "region"].includes(kind)) return kind;
  if (["rules", "regions"].includes(kind)) return "list";
  return kind === "by_place" ? "places" : "number";
}

// The field that a problem of the API names: `budget_usd`, `vms_in aws:us-east-1`.
export const fieldOf = (name) => FIELDS.get(name.split(" ")[0]) ?? null;
