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

export const median = (values) => quantile(values, 0.5);
