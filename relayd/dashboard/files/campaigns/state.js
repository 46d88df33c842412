// What state a campaign is in, in words; and what it measures.

export const PHASES = [
  ["rtt", "Round trips", "a few pings a pair; next to nothing"],
  ["per-flow", "Single flows", "one TCP connection a pair"],
  ["caps", "VM caps", "one VM to and from many at once"],
  ["aggregate", "Aggregates", "many TCP connections a pair"],
];
const NAMES = new Map(PHASES.map(([phase, name]) => [phase, name]));

export function stageName(stage) {
  const [phase, number] = (stage ?? "").split(" ");
  const name = NAMES.get(phase) ?? stage ?? "";
  return number ? `${name}, choice ${number}` : name;
}

export function phasesOf(campaign) {
  const phases = campaign.options.wish?.phases ?? [];
  return phases.length === PHASES.length ? "all" : phases.map((phase) => NAMES.get(phase) ?? phase).join(", ");
}

export const byWatcher = (campaign) => campaign.options.started_by === "watch";
export const startedBy = (campaign) => (byWatcher(campaign) ? "the watcher" : "request");

// [text, kind of tag]
export function stateOf(campaign, progress = null) {
  if (campaign.is_running) return ["running", "good"];
  if (campaign.finished_at_s !== null) {
    return campaign.probes.failed ? ["ended, some failed", "warn"] : ["done", "good"];
  }
  if (progress?.status === "running" || progress?.status === "started") return ["running or interrupted", "warn"];
  if (progress?.status === "failed") return ["failed", "bad"];
  return [progress?.status === "interrupted" ? "interrupted" : "unfinished", "warn"];
}

export const budgetOf = (campaign) => campaign.options.budget_usd ?? null;
export const countOf = ({ planned, done, failed }) => planned + done + failed;
