// Where a directed pair of regions is found: its page, and what the service knows of it.

import { element } from "./dom.js";

export const pairAddress = (src, dst) => `pair?${new URLSearchParams({ src, dst })}`;
// A line breaks between the names of regions before it breaks one of them.
const end = (region) => element("span", { class: "end" }, region);
export const ends = (src, dst) => [end(src), " → ", end(dst)];
export const pairLink = (src, dst) => element("a", { href: pairAddress(src, dst) }, ends(src, dst));
export const linkPath = (src, dst) => `v1/links/${encodeURIComponent(src)}/${encodeURIComponent(dst)}`;
