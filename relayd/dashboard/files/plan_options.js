// What can be asked of one transfer: every option of GET /v1/plans, and those of its JSON form.
// A test holds names and defaults equal to the service's own model.

// kind: region, number, choice, text, flag, list (repeated), places (PLACE=VALUE, repeated).
// flag (of the command line) takes the value with its unit behind it.
export const OPTIONS = [
  { name: "src", label: "From", kind: "region", flag: "--src", basic: true, placeholder: "aws:us-east-1, us-east, Frankfurt" },
  { name: "dst", label: "To", kind: "region", flag: "--dst", basic: true, placeholder: "aws:sa-east-1, sa, Sao Paulo" },
  { name: "volume_gb", label: "Volume", kind: "number", unit: "GB", default: 100, flag: "--volume", written: "GB", basic: true },
  { name: "objective", label: "Aim", kind: "choice", default: "value", flag: "--objective", basic: true,
    choices: [["value", "least cost plus time"], ["time", "least time"], ["cost", "least cost"], ["latency", "least round-trip time"]] },
  { name: "time_value_usd_per_h", label: "An hour is worth", kind: "number", unit: "$/h", default: 20, flag: "--time-value", written: "usd/h", basic: true,
    help: "0 is least cost, inf least time." },
  { name: "budget_usd", label: "Budget", kind: "number", unit: "$", flag: "--budget", written: "usd", placeholder: "no limit", group: "Limits", help: "Egress and VMs together." },
  { name: "deadline_s", label: "Deadline", kind: "number", unit: "s", flag: "--deadline", written: "s", placeholder: "no limit", group: "Limits", help: "From now; 3600 is an hour." },
  { name: "min_throughput_gbps", label: "Least rate", kind: "number", unit: "Gbit/s", flag: "--min-throughput", written: "gbps", placeholder: "no limit", group: "Limits" },
  { name: "max_age_s", label: "Oldest measurement", kind: "number", unit: "s", flag: "--max-age", written: "s", placeholder: "any age", group: "Limits", help: "Of the direct leg; 86400 is a day." },
  { name: "relays", label: "Relays", kind: "region", default: "any", flag: "--relays", group: "Relays", choices: ["any", "one", "none"], help: "any, one, none, or the only region to consider." },
  { name: "margin", label: "Margin", kind: "number", default: 0.1, flag: "--margin", group: "Relays", help: "What a relay must surely gain; 0.1 is 10 %." },
  { name: "avoid", label: "Avoid", kind: "list", flag: "--avoid", group: "Relays", placeholder: "provider:aws, country:DE", help: "Must not relay, nor be an end." },
  { name: "allow", label: "Allow", kind: "list", flag: "--allow", group: "Relays", placeholder: "continent:EU", help: "The only places that may relay." },
  { name: "vms", label: "VMs a region", kind: "number", default: 1, flag: "--vms", group: "VMs", help: "At most." },
  { name: "connections", label: "Connections a VM", kind: "number", default: 64, flag: "--connections", group: "VMs", help: "1 for an application that can't open more." },
  { name: "vm_start_s", label: "VM start", kind: "number", unit: "s", default: 60, flag: "--vm-start", written: "s", group: "VMs", help: "Paid for before anything is sent." },
  { name: "vms_in", label: "VMs of one region", kind: "places", flag: "--vms", group: "By place", placeholder: "aws:us-east-1=2" },
  { name: "vm_types", label: "VM types", kind: "places", flag: "--vm-type", group: "By place", placeholder: "aws=t2.micro", text: true, help: "By provider or region." },
  { name: "month_to_date_gb", label: "Billed this month, in GB", kind: "places", flag: "--month-to-date", written: "GB", group: "By place", placeholder: "aws=40000", help: "For tiered fees; * for all." },
  { name: "candidates", label: "Relays compared", kind: "number", default: 6, flag: "--candidates", group: "Answer", help: "At most, one by one." },
  // The page asks for it unless told not to: its chart needs it.
  { name: "frontier", label: "Cost-time frontier", kind: "flag", default: false, onPage: true, flag: "--frontier", group: "Answer" },
];

const BY_NAME = new Map(OPTIONS.map((option) => [option.name, option]));
const parts = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);

// The option that a problem of the API means by its field: `time_value_usd_per_h.float`,
// `budget`, `vm_type`, `vms in aws:us-east-1`, `month_to_date aws`.
export function optionOf(field) {
  if (field.startsWith("vms in")) return BY_NAME.get("vms_in");
  const head = field.split(/[. ]/)[0];
  return BY_NAME.get(head) ?? OPTIONS.find((option) => head && option.name.startsWith(head)) ?? null;
}

// A request: names to texts as they are written in the form; what is empty is left out.
export function fromAddress(search) {
  const query = new URLSearchParams(search);
  const request = {};
  for (const option of OPTIONS) {
    const given = query.getAll(option.name).filter((value) => value.trim() !== "");
    if (given.length) request[option.name] = option.kind === "list" || option.kind === "places" ? given.join(", ") : given.at(-1);
  }
  return request;
}

function isDefault(option, text) {
  if (option.onPage !== undefined) return text === String(option.onPage);
  if (option.default === undefined) return false;
  return option.kind === "number" ? text !== "" && Number(text) === option.default : text === option.default;
}

// Without what is empty or at its default: what differs is what is said.
export function tidied(request) {
  return Object.fromEntries(OPTIONS.map((option) => [option, String(request[option.name] ?? "").trim()])
    .filter(([option, text]) => text && !isDefault(option, text)).map(([option, text]) => [option.name, text]));
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
  return Object.fromEntries(parts(text).map((part) => {
    const at = part.lastIndexOf("=");
    const [place, value] = at < 0 ? [part, ""] : [part.slice(0, at).trim(), part.slice(at + 1).trim()];
    return [place, option.text ? value : numeric(value)];
  }));
}

// How it is asked: a query string, or a body where figures by place need one.
export function question(request) {
  const pairs = asked(request).map(([option, value]) => [option.name, value]);
  return { isBody: withPlaces(tidied(request)), content: Object.fromEntries(pairs) };
}
