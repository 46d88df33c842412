// Where a directed pair of regions is found: its page, and what the service knows of it.

import { element } from "./dom.js";

export const pairAddress = (src, dst) => `pair?${new URLSearchParams({ src, dst })}`;
export const pairLink = (src, dst) => element("a", { href: pairAddress(src, dst) }, `${src} → ${dst}`);
export const linkPath = (src, dst) => `v1/links/${encodeURIComponent(src)}/${encodeURIComponent(dst)}`;
