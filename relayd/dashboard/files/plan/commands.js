// The same question for a shell, for any HTTP client and for Python: what differs from the
// defaults, and nothing else.

import { isSignedIn } from "../shared/api.js";
import { QUESTION } from "./fields.js";
import { asked, question } from "./request.js";

const base = () => new URL(".", document.baseURI).href.replace(/\/$/, "");

// A word of a POSIX shell.
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);
// A value that begins with a dash would be taken for an option.
const flagged = (flag, text) => (text.startsWith("-") ? quoted(`${flag}=${text}`) : `${flag} ${quoted(text)}`);

// A number is in the unit of the field; a text says its own.
const withUnit = (value, unit = "") => `${value}${typeof value === "number" ? unit : ""}`;

function words({ option, control, unit, of }, value) {
  if (value === true) return [option];
  if (control === "list") return value.map((each) => flagged(option, each));
  if (control === "places") {
    return Object.entries(value).map(([place, each]) => flagged(option, `${place}=${withUnit(each, of.unit)}`));
  }
  if (Array.isArray(value)) {
    return value.map(({ src, dst, volume_gb: gb }) => flagged(option, `${src}>${dst}=${withUnit(gb, "GB")}`));
  }
  return [flagged(option, withUnit(value, unit))];
}

// What an option takes from a file: a document, and all that is no option of its own. Fields of one
// file are its keys.
const isFile = ({ control, option }) => control === "document" || !option.startsWith("--");

function filesOf(pairs) {
  const files = new Map();
  for (const [field, value] of pairs.filter(([field]) => isFile(field))) {
    const { option } = field;
    files.set(option, [...(files.get(option) ?? []), [field, value]]);
  }
  return [...files].map(([option, fields]) => {
    const [[field, value]] = fields;
    const content = QUESTION.fields.filter((each) => each.option === option).length > 1
      ? Object.fromEntries(fields.map(([{ name }, each]) => [name, each])) : value;
    return { option, name: `${field.name}.json`, text: JSON.stringify(content) };
  });
}

// Files first, as here-documents, so that one paste asks the whole question.
export function commandLine(request) {
  const pairs = asked(request);
  const files = filesOf(pairs);
  const made = files.map(({ name, text }) => `cat > ${name} <<'END'\n${text}\nEND\n`);
  const named = files.map(({ option, name }) => (option.startsWith("--") ? `${option} ${name}` : name));
  const options = pairs.filter(([field]) => !isFile(field)).flatMap(([field, value]) => words(field, value));
  return made.join("") + [`relayd ${QUESTION.command}`, ...named, ...options].join(" ");
}

export function curl(request) {
  const { isBody, content } = question(request);
  const token = isSignedIn() ? ' -H "Authorization: Bearer $RELAYD_TOKEN"' : "";
  if (isBody) {
    return `curl -sS${token} -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(content))} ${quoted(base() + QUESTION.path)}`;
  }
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(content)) {
    for (const each of Array.isArray(value) ? value : [value]) query.append(name, each);
  }
  return `curl -sS${token} ${quoted(`${base()}${QUESTION.path}?${query.toString().replaceAll("%3A", ":")}`)}`;
}

function literal(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map((pair) => pair.map(literal).join(": ")).join(", ")}}`;
  return JSON.stringify(value);
}

export function python(request) {
  const { src, dst, ...rest } = question(request).content;
  const keywords = Object.entries(rest).map(([name, value]) => `${name}=${literal(value)}`);
  // The library takes the ends of a transfer by position, as people say them.
  const ends = QUESTION.name === "transfer" ? [literal(src ?? ""), literal(dst ?? "")] : src === undefined ? [] : [`src=${literal(src)}`];
  return `import relayd

wan = relayd.open(${literal(base())})
plan = wan.${QUESTION.method}(${[...ends, ...keywords].join(", ")})
print(plan.reason)`;
}
