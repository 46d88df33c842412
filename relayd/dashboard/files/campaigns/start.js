// Starting a campaign: a dry run says what it costs, then the budget is typed once more as consent.

import { post } from "../shared/api.js";
import { cardTable } from "../shared/parts.js";
import { oldPrices } from "../shared/prices.js";
import { budgetOf, PHASES, stageName } from "./state.js";
import { element, facts, replace } from "../shared/dom.js";
import { duration, figure, percent, usd, volume } from "../shared/format.js";
import { fail, say } from "../shared/shell.js";

// A time as people write it; without a unit it is in minutes. NaN where it is none.
const MINUTES = { s: 1 / 60, min: 1, "": 1, h: 60, d: 1440 };
function minutesOf(text) {
  const [, figure, unit = ""] = /^\s*(\d+\.?\d*|\.\d+)\s*(s|min|h|d)?\s*$/.exec(text) ?? [];
  return Number(figure) * MINUTES[unit];
}

// A field of numbers, or of what the attributes say.
const input = (name, attributes) => element("input", { type: "number", class: "short", name, ...attributes });
const budgetField = (value) => input("budget", { min: "0.01", max: "1000000", step: "any", required: true, value });

export function startForm(fleet) {
  const result = element("div", { class: "forecast", "aria-live": "polite" });
  const fields = {
    budget: budgetField("5"), after: input("after", { type: "text", autocomplete: "off", placeholder: "none" }),
    connections: input("connections", { min: "1", max: "128", value: "64" }), thorough: element("input", { type: "checkbox", name: "thorough" }),
    pairs: element("textarea", { rows: "2", cols: "36", name: "pairs", spellcheck: "false", placeholder: "aws:us-east-1>gcp:us-east1" }),
  };
  const phases = PHASES.map(([value, name, title]) => element("label", { title },
    element("input", { type: "checkbox", name: "phase", value, checked: true }), name));

  function request() {
    const chosen = phases.map((label) => label.control).filter((box) => box.checked).map((box) => box.value);
    const lines = fields.pairs.value.split("\n").map((text) => text.trim()).filter(Boolean);
    return {
      budget_usd: Number(fields.budget.value), thorough: fields.thorough.checked, connections: Number(fields.connections.value),
      ...(chosen.length < PHASES.length && { phases: chosen }), ...(lines.length && { pairs: lines }),
      ...(fields.after.value.trim() && { max_minutes: minutesOf(fields.after.value) }),
    };
  }
  async function dryRun(event) {
    event.preventDefault();
    const asked = request();
    const wrong = asked.phases?.length === 0 ? "Choose at least one thing to measure."
      : Number.isNaN(asked.max_minutes) ? `End after: "${fields.after.value}" is no time. Write 90min, 2h or 1d.` : "";
    if (wrong) {
      fail(new Error(wrong));
      return;
    }
    replace(result, element("p", { class: "muted" }, "Asking what it would take …"));
    try {
      const [found, outdated] = await Promise.all([post("v1/campaigns/forecast", asked), oldPrices()]);
      say("");
      replace(result, outdated, forecast(found, asked));
    } catch (error) {
      replace(result);
      fail(error);
    }
  }
  return element("details", { class: "panel start" },
    element("summary", {}, "Start a campaign"),
    element("p", { class: "muted" }, `Measures among the ${fleet.hosts.length} hosts of the fleet. Egress costs real money: a dry run says how much at most.`),
    element("form", { on: { submit: dryRun, input: () => replace(result) } },
      element("div", { class: "row" },
        element("label", {}, "Budget", fields.budget, "USD"),
        element("label", {}, "End after", fields.after, "minutes, or 2h"),
        element("label", {}, "At most", fields.connections, "connections a probe"),
        element("label", {}, fields.thorough, "All pairs, not only those that matter")),
      element("fieldset", {}, element("legend", {}, "What to measure"), element("div", { class: "row" }, phases)),
      element("details", {}, element("summary", {}, "Only some pairs"),
        element("label", {}, "One a line, SOURCE>DESTINATION", fields.pairs)),
      element("div", { class: "row" }, element("button", { type: "submit", class: "main" }, "Dry run: what would it cost?"))),
    result);
}

function forecast({ campaign, all_pairs: everything, regret }, asked) {
  const regions = Object.entries(campaign.regions).sort(([, a], [, b]) => b.egress_usd - a.egress_usd);
  const over = campaign.egress_usd > asked.budget_usd;
  const table = (caption, first, others, rows) => cardTable("cost", caption, [[first], ...others.map((title) => [title, "number"])], rows.map((cells) => ({ cells })));
  return [
    element("h3", {}, "Dry run: what it would take at most"),
    facts([
      ["Egress", [element("strong", {}, usd(campaign.egress_usd)), over ? " – more than the budget: it ends when that is used up" : ` of a budget of ${usd(asked.budget_usd)}`]],
      ["Volume", volume(campaign.volume_gb)],
      ["Time", `${duration(campaign.duration_s)} in ${figure(campaign.rounds)} rounds`],
      ["Expected regret", `${percent(100 * regret.before)} of throughput lost for lack of measurements, ${percent(100 * regret.after)} after all of it`],
      ...(regret.unknown_regions.length ? [["Regret is not of", `${regret.unknown_regions.join(", ")}: nothing is known of them yet`]] : []),
      ["All pairs would take", `${usd(everything.egress_usd)}, ${volume(everything.volume_gb)}, ${duration(everything.duration_s)}`],
    ]),
    element("div", { class: "grid" },
      table("By region", "Region", ["Sends", "Receives", "Egress"],
        regions.map(([region, part]) => [region, volume(part.sent_gb), volume(part.received_gb), usd(part.egress_usd)])),
      table("By phase", "Phase", ["Rounds", "Volume", "Egress"],
        Object.entries(campaign.phases).map(([phase, part]) => [stageName(phase), figure(part.rounds), volume(part.volume_gb), usd(part.egress_usd)]))),
    consent(asked),
  ];
}

// Going on with a campaign that was interrupted, or whose budget was used up.
export function resumeForm(campaign) {
  const budget = budgetField(budgetOf(campaign) ?? "");
  const place = element("div");
  const put = () => {
    const asked = { budget_usd: Number(budget.value), resume: true };
    const enough = asked.budget_usd > campaign.usd;
    replace(place, enough ? consent(asked, `of which ${usd(campaign.usd)} is spent already`)
      : element("p", { class: "warn" }, `${usd(campaign.usd)} is spent already: it needs a larger budget.`));
  };
  budget.addEventListener("input", put);
  put();
  return element("details", { class: "panel start" }, element("summary", {}, "Go on with it"),
    element("p", { class: "muted" }, "What failed is tried again, and what is left is measured."),
    element("label", {}, "Budget in all", budget, "USD"), place);
}

// The budget is typed again: a click alone spends nothing.
function consent(asked, note = "") {
  const typed = input("consent", { type: "text", inputmode: "decimal", autocomplete: "off" });
  const start = element("button", { type: "submit", disabled: true }, "Start and spend");
  const agrees = () => typed.value.trim() !== "" && Number(typed.value.trim().replace(/^\$/, "")) === asked.budget_usd;
  typed.addEventListener("input", () => {
    start.disabled = !agrees();
    start.classList.toggle("main", agrees());
  });
  async function begin(event) {
    event.preventDefault();
    if (!agrees() || start.disabled) return;
    start.disabled = true;
    try {
      const { campaign } = await post("v1/campaigns", asked);
      location.assign(`campaigns?id=${campaign.id}`);
    } catch (error) {
      start.disabled = false;
      fail(error);
    }
  }
  return element("form", { class: "consent", on: { submit: begin } },
    element("p", {}, "This sends traffic that your cloud bills you for, up to the budget of ", element("strong", {}, usd(asked.budget_usd)), note && `, ${note}`, "."),
    element("div", { class: "row" },
      element("label", {}, `Type ${asked.budget_usd} to agree`, typed, "USD"), start));
}
