// Figures as people read them: three digits, with their unit.

const digits = (value) => (Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(3))));

export const providerOf = (region) => region.split(":")[0];
export const UNKNOWN = "–";
const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);
const withUnit = (unit) => (value) => (known(value) ? `${digits(value)} ${unit}` : UNKNOWN);

export const figure = (value) => (known(value) ? digits(value) : UNKNOWN);
// In columns of rates: two decimals, or three digits where it is small.
export const rate = (value) => (known(value) ? (Math.abs(value) >= 0.1 ? value.toFixed(2) : digits(value)) : UNKNOWN);
export const gbps = withUnit("Gbit/s");
export const mbps = withUnit("Mbit/s");
export const ms = withUnit("ms");
export const percent = withUnit("%");
export const times = (value) => (known(value) ? `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)}×` : UNKNOWN);
const cents = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
export const usd = (value) => (!known(value) ? UNKNOWN : value > 0 && value < 0.0001 ? "under $0.0001"
  : `$${value > 0 && value < 0.1 ? Number(value.toPrecision(2)) : value.toLocaleString("en-US", cents)}`);
export const perGb = (value) => (known(value) ? `$${value.toFixed(4)}/GB` : UNKNOWN);

export function volume(gb) {
  if (!known(gb)) return UNKNOWN;
  const [unit, size] = gb >= 1000 ? ["TB", 1000] : gb >= 1 ? ["GB", 1] : gb >= 0.001 || gb === 0 ? ["MB", 1e-3] : ["kB", 1e-6];
  return `${digits(gb / size)} ${unit}`;
}

export function duration(seconds) {
  if (!known(seconds)) return UNKNOWN;
  if (seconds < 60) return `${digits(seconds)} s`;
  const whole = Math.round(seconds);
  const [d, h, m, s] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60, whole % 60];
  const two = (first, second, unit) => (second ? `${first} ${second} ${unit}` : first);
  if (d) return two(`${d} d`, h, "h");
  return h ? two(`${h} h`, m, "min") : two(`${m} min`, s, "s");
}

export const count = (value) => value.toLocaleString("en-US");
export const when = (seconds) => (known(seconds) ? new Date(seconds * 1000).toISOString().replace("T", " ").replace(/\.\d+Z/, "Z") : UNKNOWN);
const [HOUR_S, DAY_S] = [3600, 86400];
// As coarse as ages are looked at, by the rule of the service's own texts; which of two is older is seen by their times.
export function aged(age_s) {
  if (!known(age_s)) return UNKNOWN;
  if (age_s >= 730 * DAY_S) return `${(age_s / (365.25 * DAY_S)).toFixed(1)} years`;
  const [unit, size] = age_s < 60 ? ["s", 1] : age_s < HOUR_S ? ["min", 60] : age_s < 2 * DAY_S ? ["h", HOUR_S] : ["d", DAY_S];
  return `${Math.floor(age_s / size)} ${unit}`;
}
export const ago = (seconds) => (known(seconds) ? `${aged(Math.max(0, Date.now() / 1000 - seconds))} ago` : "never");

export const range = (low, high, shown = figure) => `${shown(low)} to ${shown(high)}`;
// An estimate of the API: expected (low to high).
export const bounds = (estimate, shown = figure) => (estimate ? `${shown(estimate.expected)} (${range(estimate.low, estimate.high)})` : UNKNOWN);

// The p-th part (0 to 1) of known figures, linear between neighbours; null of none. A Float64Array
// is taken as sorted.
export function quantile(values, part) {
  if (!values.length) return null;
  const sorted = values instanceof Float64Array ? values : Float64Array.from(values).sort();
  const at = part * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}
