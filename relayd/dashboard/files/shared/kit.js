// All that a page is made of, in one place to import it from.

export * from "./api.js";
export * from "./dom.js";
export * from "./format.js";
export * from "./shell.js";
export * from "./parts.js";
