// The form of a request, made from the fields of the question; what is wrong is said at its field.

import { FIELDS, QUESTION, columnsOf, fieldOf, isLong, question, rowsOf, textOf, tidied, worded } from "./request.js";
import {
  Problem, button, duration, element, nameList, post, providerOf, replace, scrolling, small, tag, usd, withCode,
} from "../shared/kit.js";

// Always shown, with what the question is about: its first group, but for tables and documents that
// it can do without. The others are behind "More options".
const BASIC = ["deadline_s", "objective", "time_value_usd_per_h"];
const RARE = ["objects"];
const id = (field) => `option-${field.name}`;
const placeOf = (field, part) => document.getElementById(`${id(field)}${part}`);
// "place-reduce" as a heading.
export const titled = (name) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll("-", " ");

function control(field) {
  const { name, control: kind } = field;
  const shared = { id: id(field), name, "aria-describedby": `${id(field)}-help ${id(field)}-problem` };
  if (kind === "choice") return element("select", shared, field.choices.map(([value, text]) => element("option", { value }, `${value}: ${text}`)));
  if (kind === "flag") return element("input", { ...shared, type: "checkbox" });
  if (isLong(field)) return editor(field, shared);
  const list = kind === "region" ? (field.choices.length ? "relay-names" : "names") : null;
  const placeholder = kind === "number" ? (field.optional ? "none" : field.standard) : field.standard || field.example;
  return element("input", { ...shared, type: "text", list, autocomplete: "off", spellcheck: "false", class: kind, placeholder });
}

function labelled(field) {
  // A figure is in the field's unit, or says its own, as people write it.
  const written = ["volume", "duration", "rate"].includes(field.kind) ? ` or ${field.example}` : "";
  return element("div", { class: `field field-${field.control}` },
    element("div", { class: "labelled" }, element("label", { for: id(field) }, field.label, field.unit && small(field.unit, written)),
      element("details", { class: "help", title: field.help }, element("summary", { "aria-label": "Help", tabindex: "-1" }, "?"),
        element("small", { id: `${id(field)}-help` }, withCode(field.help)))), control(field),
    field.control === "region" && element("div", { class: "chips", id: `${id(field)}-chips` }),
    element("p", { class: "field-problem bad", id: `${id(field)}-problem` }));
}

// places: the answer of /v1/regions; onAsk(request) when the form is sent.
export function planForm(places, onAsk) {
  const every = [...FIELDS.values()];
  const isBasic = (field) => field === every[0] || BASIC.includes(field.name)
    || (field.group === every[0].group && (field.required || !isLong(field)) && !RARE.includes(field.name));
  const more = every.filter((field) => !isBasic(field));
  const summary = element("summary");
  const groups = [...new Set(more.map((field) => field.group))];
  const details = element("details", { class: "more-options" }, summary, element("div", { class: "option-groups" },
    groups.map((group) => element("fieldset", {}, element("legend", {}, titled(group)),
      more.filter((field) => field.group === group).map(labelled)))));
  const basic = every.filter(isBasic).sort((a, b) => BASIC.indexOf(a.name) - BASIC.indexOf(b.name)).map(labelled);
  const inputOf = (name) => form.elements.namedItem(name);
  if (FIELDS.get("dst")?.control === "region") {
    basic.splice(1, 0, button("⇄", () => {
      const [src, dst] = ["src", "dst"].map(inputOf);
      [src.value, dst.value] = [dst.value, src.value];
    }, { class: "swap", "aria-label": "Swap source and destination", title: "Swap" }));
  }
  const verb = titled(QUESTION.command.replace(/^(plan|transfers) /, ""));
  const form = element("form", { class: "plan-form panel", "aria-label": "Request", novalidate: true, on: {
    input: () => count(),
    // In an editor of many cells, Enter would send what is half filled in.
    keydown: (event) => event.key === "Enter" && event.target.closest(".editor") && event.preventDefault(),
    submit: (event) => {
      event.preventDefault();
      onAsk(read());
    },
  } },
  element("div", { class: "basic-options" }, basic, element("button", { type: "submit", class: "main" }, verb)),
  details, nameList("names", places), nameList("relay-names", places, ["any", "one", "none"]));

  const read = () => tidied(Object.fromEntries(every.map(({ name, control: kind }) =>
    [name, kind === "flag" ? String(inputOf(name).checked) : inputOf(name).value])));

  function fill(request) {
    for (const { name, control: kind, standard } of every) {
      const [made, text] = [inputOf(name), request[name]];
      if (kind === "flag") made.checked = (text ?? standard) === "true";
      else made.value = text ?? (kind === "choice" ? standard : "");
      made.dispatchEvent(new Event("filled"));
    }
    count();
    clear();
  }

  function count() {
    const request = read();
    const set = more.filter((field) => field.name in request).length;
    replace(summary, "More options", set > 0 && tag(`${set} set`, ""));
  }

  function clear() {
    for (const field of every) {
      inputOf(field.name).removeAttribute("aria-invalid");
      for (const part of ["-problem", "-chips"]) placeOf(field, part)?.replaceChildren();
    }
  }

  // Says a problem at its field; false where it names none.
  function problem(error) {
    const field = fieldOf(error.field);
    if (!field) return false;
    const at = placeOf(field, "");
    at.dispatchEvent(new Event("wrong"));
    replace(placeOf(field, "-problem"), worded(error));
    if (details.contains(at)) details.open = true;
    if (!form.querySelector("[aria-invalid]")) at.focus();
    at.setAttribute("aria-invalid", "true");
    return true;
  }

  // What else is wrong with a transfer: each other field is asked about by itself, between two regions that are known.
  async function others(request, { field }, signal) {
    const [src, dst] = places.regions.map((region) => region.id);
    const names = Object.keys(request).filter((name) => name !== fieldOf(field).name);
    const answers = await answersTo(names.map((name) => ({ src, dst, [name]: request[name] })), signal);
    return answers.map(({ problem: found }) => found && new Problem(422, found)).filter((found, at) =>
      found && ["input", "unknown-region"].includes(found.kind) && fieldOf(found.field)?.name === names[at] && problem(found));
  }
  return { form, fill, clear, problem, others };
}

// ---- fields of many lines ----

const MOST_ROWS = 200;

// Names are regions, but those of a question that has tasks.
const namesList = () => ([...FIELDS.values()].some((field) => field.kind === "tasks") ? null : "names");

// A text, pasted or uploaded, that is filled in cell by cell as a list, too. The text is what counts: it hears
// "filled" when it was put in and "wrong" when there is a problem with it. shared: its attributes.
function editor(field, shared) {
  const isTable = field.control !== "document";
  const columns = isTable ? columnsOf(field) : [];
  const text = element("textarea", { ...shared, rows: isTable ? "6" : "3", spellcheck: "false", class: "long",
    placeholder: isTable ? columns.map(({ name }) => name).join(",") : "The JSON of an answer",
    on: { filled: () => view(wantsList), wrong: () => view(false),
      paste: ({ clipboardData: data }) => field.kind === "pairs" && !text.value.trim() && take(data.getData("text"), "what was pasted") } });
  const holder = scrolling(field.label);
  const note = small();
  const [asList, asText] = [["List", true], ["Text", false]].map(([title, isList]) => button(title, () => view(wantsList = isList)));
  const more = button("Add a row", () => put([...kept, {}]));
  let [wantsList, kept] = [isTable, []];

  function write(value) {
    text.value = value;
    text.dispatchEvent(new Event("input", { bubbles: true }));
  }
  // A file of demands (a table or matrix in any unit, a bill, a log, a network) is read by the service.
  async function take(value, name) {
    const read = field.kind === "pairs" && await post("v1/demands", { text: value, name }).catch((error) => ({ error }));
    write(read?.demands ? textOf(columns, read.demands) : value);
    view(wantsList && !read?.error);
    note.append(read?.error ? worded(read.error) : read?.notes?.join(" ") ?? "");
  }
  const tell = () => write(textOf(columns, kept.filter((row) => Object.values(row).some((value) => String(value) !== ""))));
  const isNamed = (kind) => kind === "region" || (field.kind === "pairs" && kind === "text");
  const cell = (row, at, { name, label, kind }) => element("td", {}, element("input", {
    type: "text", value: row[name] ?? "", "aria-label": `${label}, row ${at + 1}`, autocomplete: "off", spellcheck: "false",
    list: isNamed(kind) ? namesList() : null, class: ["text", "region"].includes(kind) ? "word" : "figure",
    on: { input: (event) => {
      row[name] = event.target.value;
      tell();
    } },
  }));
  const remove = (at) => button("×", () => {
    put(kept.toSpliced(at, 1));
    tell();
  }, { "aria-label": `Remove row ${at + 1}` });
  function put(rows) {
    kept = rows.length ? rows : [{}];
    const heads = columns.map(({ label, unit, help, required }) => element("th", { scope: "col", title: help }, label,
      unit && small(` ${unit}`), required && element("span", { class: "muted", "aria-hidden": "true" }, " *")));
    replace(holder, element("table", { class: "editor" }, element("thead", {}, element("tr", {}, heads, element("td"))),
      element("tbody", {}, kept.map((row, at) =>
        element("tr", {}, columns.map((column) => cell(row, at, column)), element("td", {}, remove(at)))))));
  }
  // What is too much to fill in cell by cell, and what can't be read, is shown as text.
  function view(isList) {
    note.textContent = "";
    try {
      const rows = isList && text.value.trim() ? rowsOf(field, text.value) : [];
      if (!Array.isArray(rows)) throw new Error("These rows can only be shown as text.");
      if (rows.length > MOST_ROWS) throw new Error(`${rows.length} rows: shown as text.`);
      put(rows.map((row) => ({ ...row })));
    } catch (error) {
      note.textContent = error.message;
      isList = false;
    }
    text.hidden = isList;
    holder.hidden = more.hidden = !isList;
    asList.setAttribute("aria-pressed", String(isList));
    asText.setAttribute("aria-pressed", String(!isList));
  }
  const file = element("input", { type: "file", class: "hidden-text",
    "aria-label": `${field.label}: a file`, tabindex: "-1", on: { change: async () => {
      if (!file.files[0]) return;
      await take(await file.files[0].text(), file.files[0].name);
      file.value = "";
    } } });
  view(wantsList);
  return element("div", { class: "editor-field" }, holder, text, element("div", { class: "row" },
    isTable && element("span", { role: "group", "aria-label": `${field.label} as` }, asList, asText),
    more, button("Upload a file", () => file.click()), file, note));
}

// ---- what a name fits, below its field: links to the same question with each of the regions ----

const MOST_PRICED = 4;

// What an answer, or problems, say that names may mean: [field, regions, the one taken].
function meant(request, { resolutions = [] }, problems) {
  const asked = problems.map(({ field, content: { matches, near } }) => [field, matches ?? near ?? [], null]);
  return problems.length ? asked.filter(([, regions]) => regions.length) : Object.entries(request).flatMap(([name, text]) => resolutions
    .filter((each) => each.others.length && each.name === text.trim()).slice(0, 1)
    .map(({ region_id: taken, others }) => [name, [taken, ...others], taken]));
}

const priced = (chip, plan) => chip.append(" ", small(`${usd(plan.cost_usd.total)}, ${duration(plan.duration_s)}`));

// One region of each provider first, then all. Once the answer is shown, a few are priced by one request, which
// the next question gives up.
export async function showChips(request, answer, problems, { addressOf, signal }) {
  const open = [];
  for (const [name, regions, taken] of meant(request, answer, problems)) {
    if (FIELDS.get(name)?.control !== "region") continue;
    const chip = (region) => {
      const asked = { ...request, [name]: region };
      const made = element("a", { class: "chip", href: addressOf(asked), "aria-current": region === taken && "true" }, region);
      if (region === taken) priced(made, answer);
      else open.push([asked, made]);
      return made;
    };
    const [first, rest] = [true, false].map((is) => regions.filter((region, at) =>
      (regions.findIndex((other) => providerOf(other) === providerOf(region)) === at) === is));
    replace(placeOf(FIELDS.get(name), "-chips"), first.map(chip), rest.length > 0 && element("details", {},
      element("summary", {}, `all ${regions.length}`), rest.map(chip)));
  }
  const few = open.slice(0, MOST_PRICED);
  // What has no plan has no price.
  (await answersTo(few.map(([asked]) => asked), signal)).forEach(({ plan }, at) => plan && priced(few[at][1], plan));
}

// What several transfers are answered at once, each with a plan or a problem; nothing to other questions.
async function answersTo(requests, signal) {
  const plans = requests.map((request) => question({ ...request, frontier: "false", candidates: "1" }).content);
  if (QUESTION.name !== "transfer" || !plans.length) return [];
  return post("v1/plans/batch", { plans }, { signal }).then(({ results }) => results, () => []);
}
