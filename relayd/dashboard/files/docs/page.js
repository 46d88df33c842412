// The description of the API, for people: every operation with a form to try it, to this host only.

import { address, content, element, get, link, offerSignIn, replace, show, texts, withCode } from "../shared/kit.js";

const MOST_SHOWN = 20000;
const TO_TRY = { src: "us-east", dst: "sa" }; // of what has no default

const nameOf = (reference) => reference.slice(reference.lastIndexOf("/") + 1);
const modelLink = (reference) => link(`#model-${nameOf(reference)}`, element("code", {}, nameOf(reference)));
const row = (cells, tag, attributes = {}) => element("tr", {}, cells.map((cell) => element(tag, attributes, cell)));
const table = (heads, rows) => element("table", {}, element("thead", {}, row(heads, "th", { scope: "col" })),
  element("tbody", {}, rows.map((cells) => row(cells, "td"))));
const between = (parts, text) => parts.flatMap((part, at) => (at ? [text, part] : [part]));

function type(schema) {
  if (schema.$ref) return modelLink(schema.$ref);
  if (schema.anyOf) return between(schema.anyOf.map(type), " or ");
  if (schema.enum) return between(schema.enum.map((option) => element("code", {}, String(option))), " | ");
  if (schema.type === "array") return ["list of ", type(schema.items ?? {})];
  return typeof schema.additionalProperties === "object" ? ["object of ", type(schema.additionalProperties)] : String(schema.type ?? "any");
}

async function ask(form, method, path, answer) {
  const [query, headers] = [{}, {}];
  for (const { name, value, dataset } of form.querySelectorAll("[data-in]")) {
    const given = value.trim();
    if (dataset.in === "path" && given) path = path.replace(`{${name}}`, encodeURIComponent(given));
    else if (given) (dataset.in === "header" ? headers : query)[name] = given;
  }
  const url = `.${address(path, query)}`;
  const body = form.querySelector("textarea")?.value;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  answer.hidden = false;
  answer.textContent = "...";
  const began = performance.now();
  try {
    const response = await fetch(url, { method, headers, body });
    const kind = response.headers.get("Content-Type") ?? "";
    const first = `${method} ${url}\n${response.status}, ${Math.round(performance.now() - began)} ms\n\n`;
    answer.textContent = first;
    if (kind.startsWith("text/event-stream")) {
      for await (const part of texts(response)) answer.textContent = (answer.textContent + part).slice(-MOST_SHOWN);
      return;
    }
    const text = kind.includes("json") ? JSON.stringify(await response.json(), null, 2) : await response.text();
    answer.textContent = first + (text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}\n... (${text.length} characters)` : text);
  } catch (error) {
    answer.textContent = `No answer: ${error.message}`;
  }
}

function field(id, { name, in: place, required, schema, description }) {
  const about = { id: `${id}-${name}`, name, dataset: { in: place } };
  const input = schema.enum ? element("select", about, ["", ...schema.enum].map((option) => element("option", {}, String(option))))
    : element("input", { ...about, required, value: required ? TO_TRY[name] : null });
  const usual = "default" in schema ? ` default ${JSON.stringify(schema.default)}` : "";
  return element("div", { class: "field" }, element("label", { for: about.id }, element("code", {}, name), required && element("abbr", { title: "required" }, "*")),
    input, element("small", {}, withCode(description ?? ""), usual));
}

function bodyField(id, { content: kinds }, schemas) {
  const { schema, example } = kinds["application/json"];
  const required = schemas[nameOf(schema.$ref)].required ?? [];
  const text = JSON.stringify(example ?? Object.fromEntries(required.map((name) => [name, TO_TRY[name] ?? null])), null, 1);
  return element("div", { class: "field wide" }, element("label", { for: `${id}-body` }, modelLink(schema.$ref)),
    element("textarea", { id: `${id}-body`, spellcheck: "false", rows: 8 }, text));
}

function operation([method, path, about], schemas) {
  const id = about.operationId;
  const answer = element("pre", { class: "answer", tabindex: "0", hidden: true });
  const form = element("form", { on: { submit: (event) => {
    event.preventDefault();
    ask(form, method, path, answer);
  } } }, (about.parameters ?? []).map((each) => field(id, each)), about.requestBody && bodyField(id, about.requestBody, schemas),
  element("button", { type: "submit" }, "Try it"), answer);
  const kinds = (found) => Object.entries(found.content ?? {}).map(([kind, { schema }]) => element("div", {}, element("code", {}, kind), " ", schema.$ref && modelLink(schema.$ref)));
  return element("section", { id }, element("h2", {}, element("span", { class: "method" }, method), " ", element("code", {}, path)),
    element("p", {}, element("strong", {}, about.summary)), about.description && element("p", {}, withCode(about.description)),
    about.tags.includes("internal") && element("p", {}, "Internal: it serves these pages, and may change with them."),
    about["x-scope"] && element("p", {}, "Token scope: ", element("code", {}, about["x-scope"])), form,
    element("details", {}, element("summary", {}, "Answers"), table(["Status", "Meaning", "Content"],
      Object.entries(about.responses).map(([status, found]) => [status, found.description, kinds(found)]))));
}

const model = ([name, { description = "", properties = {}, required = [] }]) => element("details", { id: `model-${name}` },
  element("summary", {}, element("code", {}, name)), element("p", {}, withCode(description.split("\n\n")[0])),
  table(["Key", "Type", "Meaning"], Object.entries(properties).map(([key, value]) =>
    [[element("code", {}, key), required.includes(key) && " *"], type(value), withCode(value.description ?? "")])));

offerSignIn();
show(async () => {
  const { info, paths, components: { schemas } } = await get("openapi.json");
  const operations = Object.entries(paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, about]) => [method.toUpperCase(), path, about]));
  const models = Object.entries(schemas).sort(([a], [b]) => a.localeCompare(b));
  replace(content, element("div", { class: "docs" },
    element("nav", { "aria-label": "Operations" }, element("ul", {}, operations.map(([method, path, { operationId }]) =>
      element("li", {}, link(`#${operationId}`, element("b", {}, method), " ", path))))),
    element("div", {}, element("p", {}, link("openapi.json", "openapi.json"), `, version ${info.version}`),
      info.description.split("\n\n").map((text) => element("p", {}, withCode(text))),
      operations.map((each) => operation(each, schemas)), element("h2", {}, "Models"), models.map(model))));
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
});
