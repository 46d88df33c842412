// Ask, a page for every question: the request in the address, the answer below. What an answer looks like
// is in answers/all.js by the name of its question; all else is the same for all.

import { optionTable } from "../answers/parts.js";
import { planForm, showChips, titled } from "./form.js";
import {
  FIELDS, QUESTION, QUESTIONS, STORED, TOOLS, asked, besideOf, fromAddress, loadFields, question, tidied, toAddress, worded, written,
} from "./request.js";
import {
  address, band, baselineNote, button, cardTable, choice, content, copyChoice, copyable, count, duration, element, ends,
  fail, folded, fragment, get, isPhone, isSignedIn, keep, keepOpen, link, muted, number, once, percent, places, post, providerOf,
  range, replace, restsOn, say, secondary, show, small, times, usd, volume, waiting, when, words,
} from "../shared/kit.js";

const answer = element("div", { id: "answer", "aria-live": "off" });
const spoken = element("p", { class: "hidden-text", role: "status", "aria-live": "polite" });
const addressOf = (request, beside) => `./?${toAddress(request, beside)}`;
const { question: name = "transfer", transfer } = Object.fromEntries(new URLSearchParams(location.search));
const wait = element("div");
const begun = waiting(wait);
let asking = new AbortController();
const LONGEST_LINKED = 1_000_000; // browsers follow no address of 2 MB, and an answer grows when it is encoded

// Where to go on from an answer: to the question that takes it as a document.
const REPLAN = ["replan", "plan", "Re-plan while it is under way"];
const GOES_ON = {
  transfer: REPLAN, shuffle: REPLAN, broadcast: REPLAN,
  schedule: ["schedule", "existing", "Go on with this schedule"],
};

// What is moved, in words; other questions come after these, by their names.
const MOVED = { transfer: "one transfer", shuffle: "many transfers at once", broadcast: "to many places", schedule: "many by deadlines",
  "place-reduce": "where to reduce data", "place-tasks": "which VM runs which task", comparison: "which region or VM type",
  replan: "a transfer under way" };
const menu = () => element("span", { class: "questions" }, "Plan ", element("select", { "aria-label": "What to plan", on: { change: ({ target }) =>
  location.assign(target.value === "transfer" ? "./" : `./?question=${target.value}`) } },
[...QUESTIONS].sort((one, other) => (one.name in MOVED ? 0 : 1) - (other.name in MOVED ? 0 : 1)).map(({ name }) =>
  element("option", { value: name, selected: name === QUESTION.name }, MOVED[name] ?? titled(name)))));

function commands(request, plan) {
  const [name, field, text] = (plan && GOES_ON[QUESTION.name]) ?? [];
  const written = name && JSON.stringify(plan);
  const texts = [["CLI command", commandLine(request)], ["curl", curl(request)], ["Python", python(request)]];
  return secondary("commands", "The same elsewhere", copyChoice("Copy as", texts), plan && downloads(plan, QUESTION.name),
    name && element("p", {}, written.length < LONGEST_LINKED
      ? link(`./?question=${name}#${new URLSearchParams({ [field]: written })}`, text)
      : `${text}: this answer is too long for a link. Download its JSON and paste it there.`));
}

// What is known of the pair, asked for when it is opened.
const pairPart = ({ src, dst }, signal) => folded("pair", `What is known of ${src} → ${dst}`, () => {
  const place = element("div", { class: "pair" });
  import("./pair.js").then(({ showPair }) => showPair(place, { src, dst }, signal)).catch(fail);
  return place;
});

async function answerTo(request, signal) {
  const { isBody, content: body } = question(request);
  return (isBody ? post : get)(QUESTION.path.slice(1), body, { signal });
}

// Going back leads to where the reader was, once what was there is there again.
history.scrollRestoration = "manual";
const asLeft = ({ top } = history.state ?? {}) => () => top && scrollTo({ top });

async function ask(request, beside, form, go) {
  const scrolled = asLeft();
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  form.clear();
  say("");
  spoken.textContent = "";
  answer.classList.remove("stale");
  answer.setAttribute("aria-busy", "true");
  const ended = begun(() => {
    asking.abort();
    replace(answer);
    answer.removeAttribute("aria-busy");
    say("Cancelled: the question is still in the form.");
    form.form.querySelector("button.main").focus();
  });
  try {
    const [{ answerParts }, plan, other, earlier] = await Promise.all([
      import("../answers/all.js"), answerTo(request, signal),
      beside && answerTo(beside.request, signal).catch((error) => error), earlierSnapshots(),
    ]);
    const { title, head, body } = await answerParts(QUESTION.name, plan,
      { request, addressOf, signal, command: commandLine, commands: commands(request, plan) });
    restsOn(plan.snapshot);
    answer.dataset.asked = when(Date.now() / 1000);
    replace(answer, baselineNote(plan.snapshot), head, whatIfs(request, plan, addressOf, earlier),
      beside && besideTable({ request, plan }, { ...beside, plan: other }, addressOf),
      element("div", { class: "answer-grid" }, body, isTransfer() && pairPart(plan.request, signal)));
    spoken.textContent = `${title}. ${plan.reason}`;
    form.fold(true);
    if (location.hash === "#open=pair") document.getElementById("pair").scrollIntoView();
    else answer.querySelector(".verdict")?.scrollIntoView({ block: "nearest" });
    scrolled();
    showChips(request, plan, [], { addressOf, signal });
  } catch (error) {
    if (error.name === "AbortError") return;
    if (error.status === 0 && answer.querySelector(".verdict")) {
      answer.classList.add("stale");
      return void say(element("span", { class: "problem" }, `${error.message} The answer below is as of ${answer.dataset.asked}.`));
    }
    replace(answer);
    form.fold(false);
    if (form.problem(error)) {
      const all = [error, ...await form.others(request, error, signal)];
      spoken.textContent = all.map(worded).join(" ");
      showChips(request, {}, all, { addressOf, signal });
    } else if (["infeasible", "data"].includes(error.kind)) {
      replace(answer, element("section", { class: "problem no-plan" }, element("h2", {}, "No plan"),
        element("p", {}, worded(error)), loosened(request, error.content)), commands(request), isTransfer() && pairPart(request, signal));
      answer.firstElementChild.scrollIntoView({ block: "nearest" });
    } else fail(error);
  } finally {
    ended();
    if (!signal.aborted) answer.removeAttribute("aria-busy");
  }
}

// The same question with what is said to be feasible, and without each limit that it has.
function loosened(request, { change }) {
  const feasible = Object.entries(change ?? {}).map(([name, value]) => element("a", { class: "button", href: addressOf({ ...request, [name]: value }) },
    `Ask with ${FIELDS.get(name).label.toLowerCase()} ${{ duration, money: usd }[FIELDS.get(name).kind]?.(value) ?? `${value} Gbit/s`}`));
  const limits = [...FIELDS.values()].filter(({ name, group, optional }) => name in request && (group === "limits" || ["vms", "vms_in", "avoid", "allow"].includes(name))
    && optional !== false && !["src", "dst"].includes(name));
  return limits.length > 0 && element("p", { class: "row" }, feasible, "Feasible, perhaps: ", limits.map(({ name, label }) =>
    link(addressOf({ ...request, [name]: "" }), `without “${label}”`)));
}

// Before a question: where a region's traffic can go, three ways to begin where nothing is measured, or
// where relays pay.
async function opening(known, request) {
  const part = answer.appendChild(element("section", { class: "gains" }));
  if (request.src) {
    const { regionView } = await import("./region.js");
    return void replace(part, await regionView(request.src, known, (dst) => addressOf({ ...request, dst })));
  }
  if (known.snapshot.source === "baseline") replace(part, beginnings(await get("v1/fleet")));
  return showGains(part.appendChild(element("div")));
}

const isTransfer = () => QUESTION.name === "transfer";
const isComplete = (request) => Object.keys(request).length > 0 && QUESTION.fields.every((field) => !field.required || request[field.name]);

function hint({ regions }) {
  if (!isTransfer()) return element("p", {}, `${QUESTION.summary}. `, link(addressOf(written(QUESTION.example)), "An example"), ".");
  const [src, dst] = [regions[0], regions.find((region) => region.continent !== regions[0]?.continent)].map((region) => region?.id);
  return element("p", {}, "Say where from and where to: region ids, aliases such as us-east, or cities. ",
    src && dst && ["For example, ", link(addressOf({ src, dst, volume_gb: "500" }), `500 GB from ${src} to ${dst}`), "."]);
}

function start(known) {
  const made = planForm(known, go);
  // On a phone, what was asked is a line once it is answered.
  const asks = isPhone ? element("details", { class: "asks", open: true }, element("summary", {}, "The question"), menu(), made.form)
    : [element("div", { class: "row" }, menu()), made.form];
  made.fold = (is) => { if (isPhone) asks.open = !is; };
  replace(content, asks, spoken, wait, answer);
  if (QUESTION.name !== "transfer") document.title = `${titled(QUESTION.name)} - ${document.title}`;

  function showAddress() {
    answer.classList.remove("stale");
    const request = fromAddress(location.search, location.hash);
    made.fill(request);
    // It says by itself that it waits.
    if (isComplete(request)) return void ask(request, besideOf(location.hash), made, go);
    asking.abort();
    answer.removeAttribute("aria-busy");
    restsOn(known.snapshot);
    replace(answer, request.src && baselineNote(known.snapshot), !request.src && hint(known));
    return isTransfer() && opening(known, request).then(asLeft(), (error) => made.problem(error) || fail(error));
  }

  // The address is the request: it can be shared, and Back leads to the question before. What it is
  // compared with stays.
  function go(request) {
    const beside = besideOf(location.hash);
    const [before, address] = [fromAddress(location.search, location.hash), request].map((each) => addressOf(each, beside?.address));
    const { worth = "" } = Object.fromEntries(fragment());
    if (before !== address) history.pushState(null, "", address);
    keepOpen();
    keep({ worth });
    if (isTransfer() && request.src && !request.dst) return showAddress();
    made.fill(request);
    return ask(request, beside, made, go);
  }

  // What is in the form is not what was answered: until it is asked, the answer is dimmed.
  made.form.addEventListener("input", () => answer.classList.add("stale"));
  addEventListener("scrollend", () => history.replaceState({ top: scrollY }, ""));
  addEventListener("popstate", showAddress);
  if (!location.search && matchMedia("(pointer: fine)").matches) made.form.elements.namedItem("src")?.focus();
  return showAddress();
}

show(async () => {
  const [known] = await Promise.all([places(), loadFields(name, transfer)]);
  return start(known);
});

// An empty store: three ways to fill it, each one click or a command to copy.

const BEGINNINGS = [
  ["Measure your own VMs", "relayd logs in by SSH to the VMs of a fleet file, and asks for a budget before it sends anything.",
    "relayd probe --fleet fleet.toml --budget 20usd"],
  ["Import what you have", "Results of iperf3, ping, Smokeping and others, or a CSV file.", "relayd import csv measurements.csv"],
  ["Try it on one machine", "Forty emulated regions with real TCP; it prints the fleet file to measure them with. Needs Linux.",
    "relayd measure lab up"],
];

function beginnings(fleet) {
  return [
    element("h2", {}, "Nothing is measured yet: three ways to begin"),
    muted("Answers above already work. Until you measure, they rest on the baseline: models fitted to open measurements, with wide bounds."),
    element("ol", { class: "beginnings grid" }, BEGINNINGS.map(([title, text, command], at) => element("li", { class: "panel" },
      element("h3", {}, title), element("p", {}, text), !at && fleet.may_start_campaigns
        ? element("a", { class: "button", href: "campaigns" }, "Price a campaign")
        : element("div", { class: "command" }, copyable(command, "Copy", "Command"))))),
  ];
}

// What if: the same question with one thing changed, and its answer beside the one it began with.

const vmsOf = ({ vms }) => (vms && !Array.isArray(vms) && Object.values(vms).every((each) => typeof each === "number") ? vms : null);

// Earlier snapshots that are kept: the newest of at least that age.
const AGES = [["yesterday's", "1d", 86400], ["last week's", "7d", 7 * 86400], ["last month's", "30d", 30 * 86400]];
const earlierSnapshots = once(async () => {
  const all = await Promise.all(AGES.map(([name, age, older_than_s]) => get("v1/snapshots", { older_than_s, limit: 1 })
    .then(({ snapshots: [found] }) => found && { name, age, id: found.id }, () => null)));
  return all.filter((each, at) => each && all.findIndex((other) => other?.id === each.id) === at);
});

// Links to the same question with another number of VMs, of connections, without relays, or with
// another objective; each keeps this answer beside the new one.
function whatIfs(request, plan, addressOf, earlier) {
  const [vms, connections, relays, objective] = ["vms", "connections", "relays", "objective"].map((name) => FIELDS.get(name));
  const most = Math.max(0, ...Object.values(vmsOf(plan) ?? {}));
  const opened = 2 * Number(request.connections ?? connections?.default);
  const others = (objective?.choices ?? []).filter(([choice]) => choice !== (request.objective ?? objective.default));
  const ifs = [
    vms?.kind === "count" && most && most < vms.maximum && [`${most + 1} VMs a region`, { vms: String(most + 1) }],
    connections?.kind === "count" && opened <= connections.maximum && [`${opened} connections a VM`, { connections: String(opened) }],
    relays?.choices.some(([choice]) => choice === "none")
      && (request.relays === "none" ? ["with relays", { relays: "" }] : ["no relays", { relays: "none" }]),
    ...others.map(([choice, meaning]) => [meaning, { objective: choice }]),
    ...(request.snapshot ? [["the newest snapshot", { snapshot: "" }]] : !FIELDS.has("snapshot") ? []
      : earlier.map(({ name, age }) => [`${name} snapshot`, { snapshot: age }])),
  ];
  const now = toAddress(request);
  const links = [...ifs.filter(Boolean), ["keep this answer and change the form", {}]]
    .map(([text, change]) => link(addressOf({ ...request, ...change }, now), text));
  return element("nav", { class: "what-ifs", "aria-label": "What if" }, isPhone ? element("details", { class: "asks" }, element("summary", {}, "What if"), links)
    : [element("span", { class: "muted" }, "What if: "), links]);
}

// An answer as an option beside another, with what only some questions have.
function optionOf(plan) {
  const { cost_usd: cost, duration_s: time, verdict, relayed_share: share, admitted } = { ...plan.candidates?.[0], ...plan[plan.verdict], ...plan };
  return { ...plan, cost_usd: cost, duration_s: time ?? plan.end_s, vms: vmsOf(plan),
    facts: [["Verdict", verdict], ["Relayed", share !== undefined && percent(100 * share)], ["Admitted", admitted]] };
}

function differences(one, other) {
  const [before, after] = [tidied(one), tidied(other)];
  const said = (field, text = field.standard || "not set") => (text.length > 40 ? "other rows"
    : field.unit && text && Number.isFinite(Number(text)) ? `${text} ${field.unit}` : text);
  return [...FIELDS.values()].filter((field) => before[field.name] !== after[field.name])
    .map((field) => `${field.label}: ${said(field, before[field.name])} → ${said(field, after[field.name])}`);
}

// before: the answer that was kept, or the problem that came in its place.
function besideTable(now, before, addressOf) {
  const differ = differences(before.request, now.request);
  const isKnown = !(before.plan instanceof Error);
  return element("section", { class: "panel beside", "aria-labelledby": "beside" }, element("h2", { id: "beside" }, "Before and now"),
    element("p", {}, differ.length ? differ.join("; ") : "Both are the same question: change the form and ask again."),
    !isKnown && element("p", { class: "problem" }, `Before: ${worded(before.plan)}`),
    optionTable([["Before", isKnown && optionOf(before.plan), "direct"], ["Now", optionOf(now.plan), "chosen"]]),
    element("p", { class: "row" }, link(`./?${before.address}`, "Back to the one before"), link(addressOf(now.request), "Stop comparing")));
}

// Where relays pay at the reader's settings: what the planner answers for ten pairs, with its price.

const WORTH = [["0", "nothing: least cost"], ["20", "$20"], ["100", "$100"], ["1000", "$1,000"], ["inf", "all: least time"]];
const said = (worth) => (worth === null ? "where time alone counts" : worth === 0 ? "where cost alone counts"
  : `at ${usd(worth).replace(".00", "")} an hour`);

const planAddress = ({ src, dst }, { volume_gb, vms, time_value_usd_per_h: worth }) => addressOf({
  src, dst, volume_gb, relays: "one", vms, ...(worth === null ? { objective: "time" } : { time_value_usd_per_h: worth }) });

async function showGains(part) {
  const asked = { hour: "20", vms: "1", ...Object.fromEntries(fragment()) };
  const setting = (title, name, options) => choice(title, options, asked[name], (value) => {
    asked[name] = value;
    keep({ [name]: value });
    show(refresh);
  });
  const found = element("div", { "aria-live": "polite" });
  replace(part, element("h2", {}, "Where relays pay"),
    element("div", { class: "row" }, setting("An hour is worth", "hour", WORTH),
      setting("VMs a region, at most", "vms", ["1", "2", "4", "8"].map((each) => [each, each]))), found);
  async function refresh() {
    found.setAttribute("aria-busy", "true");
    found.prepend(muted("The planner is asked at these settings."));
    const answer = await get("v1/relay-gains", { time_value_usd_per_h: asked.hour, vms: asked.vms });
    found.removeAttribute("aria-busy");
    replace(found, shown(answer));
  }
  return refresh();
}

function shown(answer) {
  const { relays, pairs, asked, promising, volume_gb, time_value_usd_per_h: hour, vms } = answer;
  const settings = `${said(hour)}, with ${vms === 1 ? "one VM" : `at most ${vms} VMs`} a region`;
  const rest = promising > asked ? ` The planner was asked about the ${count(asked)} most promising of ${count(promising)} pairs.` : "";
  if (!relays.length) return element("p", {}, `None ${settings}: ${asked ? `of ${count(asked)} pairs on which a relay might pay, the planner sends all direct.` : "send direct."}`);
  // A gain of 400 and one of 2 are seen side by side on a logarithmic scale from 1.
  const onScale = (value) => Math.log(Math.max(1, value));
  const most = onScale(Math.max(...relays.map((each) => each.gain_high)));
  const beside = (title, key, note, shown) => number(title, key, (value, each) => [shown(value), small(note(each))]);
  return [
    cardTable("gains", `For ${volume(volume_gb)} ${settings}, the planner relays on ${count(pairs)} pairs; of these, the largest gains.${rest} `
      + "Links in trouble are left out. Bands are the plan's, nine of ten times; their scale is logarithmic and begins at 1×.", [
      words("Transfer", (each) => [link(planAddress(each, answer), ends(each.src, each.dst)),
        small(`${each.verdict === "split" ? "direct and " : ""}through ${each.relay}${each.source === "measured" ? "" : ` (${each.source})`}`)]),
      number("Gain", "gain", (gain, { gain_low: low, gain_high: high }) => [times(gain), small(range(low, high, times), low < 1 && ": direct may be faster"),
        band({ low: onScale(low), expected: onScale(gain), high: onScale(high) }, most,
          `Gain ${times(gain)}, ${range(low, high, times)}`, { width: 90 })]),
      beside("Time", "relay_s", (each) => `direct ${duration(each.direct_s)}`, duration),
      beside("Price", "relay_usd", (each) => `direct ${usd(each.direct_usd)}`, usd),
      beside("Pays from", "pays_from_usd_per_h", () => "an hour", usd),
    ], relays, { key: ({ src, dst }) => `${src}>${dst}` }),
    element("p", {}, link("matrix?metric=relay-gain", "What every pair would gain, whatever it costs"))];
}

// An answer as files: its JSON, and a transfer's plan as what a tool runs.

function save(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000); // the browser reads it after this
}

function downloads(plan, question) {
  const fetched = () => show(async () =>
    save({ haproxy: "haproxy.cfg", env: "plan.env" }[tool.value] ?? `${tool.value}.sh`, (await post("v1/plans/scripts", { plan, emit: tool.value })).script, "text/plain"));
  const has = { "": true, relays: plan.verdict !== "direct", buckets: plan.resolutions?.some(({ bucket }) => bucket), [providerOf(plan.request?.dst ?? "")]: true };
  const fit = TOOLS.filter(({ needs }) => has[needs]);
  const tool = element("select", { "aria-label": "Tool" }, fit.map(({ name }) => element("option", { value: name, selected: name === "rclone" }, name)));
  return element("div", { class: "row downloads" }, button("Download JSON", () => save(`${question}-${plan.plan_id}.json`, JSON.stringify(plan, null, 1), "application/json")),
    question === "transfer" && element("span", { class: "row" }, button("Download for", fetched), tool));
}

// The same question for a shell, for any HTTP client and for Python: what differs from the
// defaults, and nothing else.

const base = () => new URL(".", document.baseURI).href.replace(/\/$/, "");

const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);
// A value that begins with a dash would be taken for an option.
const flagged = (flag, text) => (text.startsWith("-") ? quoted(`${flag}=${text}`) : `${flag} ${quoted(text)}`);

// A number is in the unit of the field; a text says its own.
const withUnit = (value, unit = "") => `${value}${typeof value === "number" ? unit : ""}`;

function wordsOf({ option, control, unit, of }, value) {
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
  const files = Map.groupBy(pairs.filter(([field]) => isFile(field)), ([{ option }]) => option);
  return [...files].map(([option, fields]) => {
    const [[field, value]] = fields;
    const content = QUESTION.fields.filter((each) => each.option === option).length > 1
      ? Object.fromEntries(fields.map(([{ name }, each]) => [name, each])) : value;
    return { option, name: `${field.name}.json`, text: JSON.stringify(content) };
  });
}

// Files first, as here-documents, so that one paste asks the whole question.
function commandLine(request) {
  const pairs = asked(request);
  const files = filesOf(pairs);
  const made = files.map(({ name, text }) => (text === STORED.plan ? `relayd transfers show ${quoted(STORED.id)} --plan > ${name}\n`
    : `cat > ${name} <<'END'\n${text}\nEND\n`));
  const named = files.map(({ option, name }) => (option.startsWith("--") ? `${option} ${name}` : name));
  const options = pairs.filter(([field]) => !isFile(field)).flatMap(([field, value]) => wordsOf(field, value));
  return made.join("") + [`relayd ${QUESTION.command}`, ...named, ...options].join(" ");
}

function curl(request) {
  const { isBody, content } = question(request);
  const token = isSignedIn() ? ' -H "Authorization: Bearer $RELAYD_TOKEN"' : "";
  const path = base() + QUESTION.path;
  return isBody ? `curl -sS${token} -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(content))} ${quoted(path)}`
    : `curl -sS${token} ${quoted(address(path, content).replaceAll("%3A", ":"))}`;
}

function literal(value) {
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (value && typeof value === "object") return `{${Object.entries(value).map((pair) => pair.map(literal).join(": ")).join(", ")}}`;
  return new Map([[null, "None"], [true, "True"], [false, "False"]]).get(value) ?? JSON.stringify(value);
}

function python(request) {
  const { src, dst, ...rest } = question(request).content;
  const keywords = Object.entries(rest).map(([name, value]) => `${name}=${JSON.stringify(value) === STORED.plan
    ? `wan.transfer_details(${literal(STORED.id)}).plan` : literal(value)}`);
  // The library takes the ends of a transfer by position, as people say them.
  const ends = QUESTION.name === "transfer" ? [literal(src ?? ""), literal(dst ?? "")] : src === undefined ? [] : [`src=${literal(src)}`];
  return `import relayd

wan = relayd.open(${literal(base())})
plan = wan.${QUESTION.method}(${[...ends, ...keywords].join(", ")})
print(plan.reason)`;
}
