// Tables as people paste them: CSV (commas, semicolons or tabs) with a heading, as a list or as a
// matrix of volumes, or JSON. A text is what the form and the address keep.

import { Problem } from "../shared/api.js";

// Of pairs, as people head them.
const COLUMN_OF = { from: "src", to: "dst", gb: "volume_gb", volume: "volume_gb" };
const PAIR = [
  { name: "src", label: "From", kind: "text" }, { name: "dst", label: "To", kind: "text" },
  { name: "volume_gb", label: "Volume", kind: "volume", unit: "GB" },
];
const TASK = [{ name: "id", label: "Id", kind: "text" }, { name: "cpus", label: "CPUs", kind: "number" }];

// The columns of a table: those of its items, or of what its kind is known to hold.
export const columnsOf = (field) => ({ pairs: PAIR, tasks: TASK })[field.kind] ?? field.fields;

const wrong = (field, text) => new Problem(422, { kind: "input", field: field.name, detail: text });

// Cells by line. A cell in quotes may hold what divides cells, and two quotes for one.
function cellsOf(text) {
  const first = text.trimStart().split("\n", 1)[0];
  const divider = first.includes("\t") ? "\t" : first.includes(",") ? "," : ";";
  const lines = [[""]];
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const [letter, line] = [text[at], lines.at(-1)];
    if (letter === '"' && quoted && text[at + 1] === '"') line[line.length - 1] += text[(at += 1)];
    else if (letter === '"' && (quoted || line.at(-1) === "")) quoted = !quoted;
    else if (letter === divider && !quoted) line.push("");
    else if (letter === "\n" && !quoted) lines.push([""]);
    else line[line.length - 1] += letter;
  }
  return lines.map((line) => line.map((cell) => cell.trim())).filter((line) => line.some(Boolean));
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
  if (field.kind === "pairs" && !names.includes("src")) {
    return lines.flatMap(([src, ...cells]) => cells.map((cell, at) => ({ src, dst: head[at + 1], volume_gb: numeric(cell) }))
      .filter((row) => row.volume_gb !== "" && row.src !== row.dst));
  }
  const isText = new Set(columnsOf(field).filter((column) => ["text", "region"].includes(column.kind)).map((column) => column.name));
  return lines.map((line) => Object.fromEntries(names.map((name, at) => [name, isText.has(name) ? line[at] : numeric(line[at])])
    .filter(([, value]) => value !== "")));
}

export function documentOf(field, text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw wrong(field, `is not JSON: ${error.message}.`);
  }
}

const written = (cell) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);

// Rows as CSV; a column that no row fills is left out.
export function textOf(columns, rows) {
  const used = columns.map(({ name }) => name).filter((name) => rows.some((row) => String(row[name] ?? "") !== ""));
  if (!used.length) return "";
  return [used, ...rows.map((row) => used.map((name) => written(String(row[name] ?? ""))))].map((line) => line.join(",")).join("\n");
}

// What is no number stays a text, such as `1TB`: the API reads it, or says what is wrong.
export function numeric(text) {
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text)) ? Number(text) : text;
}
