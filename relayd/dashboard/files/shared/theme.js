// Not a module: it runs before the first paint, so that a page never flashes in the other theme.
try {
  document.documentElement.dataset.theme = localStorage.getItem("relayd-theme") ?? "";
} catch {
  // storage may be forbidden; the system's theme is used
}
