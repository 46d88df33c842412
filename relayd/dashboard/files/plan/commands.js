// The same question for a shell, for any HTTP client and for Python: what differs from the
// defaults, and nothing else.

import { keptToken } from "../shared/api.js";
import { asked, question } from "./request.js";

const base = () => new URL(".", document.baseURI).href.replace(/\/$/, "");

// A word of a POSIX shell.
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`;
}

function flagged(flag, text) {
  // A value that begins with a dash would be taken for an option.
  return text.startsWith("-") ? quoted(`${flag}=${text}`) : `${flag} ${quoted(text)}`;
}

// A number is in the unit of the field; a text says its own.
const withUnit = (value, unit = "") => `${value}${typeof value === "number" ? unit : ""}`;

function words({ option, control, unit, of }, value) {
  if (value === true) return [option];
  if (control === "list") return value.map((each) => flagged(option, each));
  if (control === "places") {
    return Object.entries(value).map(([place, each]) => flagged(option, `${place}=${withUnit(each, of.unit)}`));
  }
  return [flagged(option, withUnit(value, unit))];
}

export function commandLine(request) {
  return ["relayd plan", ...asked(request).flatMap(([field, value]) => words(field, value))].join(" ");
}

export function curl(request) {
  const { isBody, content } = question(request);
  const token = keptToken() ? ' -H "Authorization: Bearer $RELAYD_TOKEN"' : "";
  if (isBody) {
    return `curl -sS${token} -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(content))} ${quoted(`${base()}/v1/plans`)}`;
  }
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(content)) {
    for (const each of Array.isArray(value) ? value : [value]) query.append(name, each);
  }
  return `curl -sS${token} ${quoted(`${base()}/v1/plans?${query.toString().replaceAll("%3A", ":")}`)}`;
}

function literal(value) {
  if (value === true) return "True";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value)
      .map(([name, each]) => `${literal(name)}: ${literal(each)}`)
      .join(", ")}}`;
  return JSON.stringify(value);
}

export function python(request) {
  const { src, dst, ...rest } = question(request).content;
  const keywords = Object.entries(rest).map(
    ([name, value]) => `, ${name}=${literal(value)}`,
  );
  return `import relayd

wan = relayd.open(${literal(base())})
plan = wan.plan(${literal(src ?? "")}, ${literal(dst ?? "")}${keywords.join("")})
print(plan.verdict, plan.reason)`;
}
