// Draws a matrix of many regions as the page does, without a service, and compares it with what it should
// be. Run by test_matrix.py in the page.
async ([count, width]) => {
  const { Overview } = await import("./assets/matrix/overview.js");
  const { level, scaleOf, shade } = await import("./assets/shared/metrics.js");
  const holder = document.createElement("div");
  holder.style.width = `${width}px`;
  document.body.append(holder);
  let seed = 7;
  const chance = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const regions = Array.from({ length: count }, (_, at) => `aws:place-${at}`);
  // Rates that rise from the first region to the last, so that a wrong place is a wrong colour.
  const values = regions.map((_, src) => regions.map((__, dst) => (src === dst ? null : src + dst + chance())));
  const matrix = { regions, values };
  const zooms = [];
  const overview = new Overview(holder, { point: () => {}, zoom: (...ranges) => zooms.push(ranges), out: () => {} });
  const groups = [{ title: "AWS", members: regions.map((_, at) => at) }];
  overview.build(matrix, groups, groups);
  const scale = scaleOf("aggregate", values);
  overview.paint(matrix, "aggregate", scale);
  const { k, square, across, down, canvas } = overview;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const [left, top] = [canvas.width / devicePixelRatio - across * square, canvas.height / devicePixelRatio - down * square];
  const wrong = [];
  for (let i = 0; i < down; i += 7) {
    for (let j = 0; j < across; j += 5) {
      const inside = [];
      for (let src = i * k; src < Math.min(count, (i + 1) * k); src += 1)
        for (let dst = j * k; dst < Math.min(count, (j + 1) * k); dst += 1) if (src !== dst) inside.push(values[src][dst]);
      inside.sort((a, b) => a - b);
      const middle = (inside[(inside.length - 1) >> 1] + inside[inside.length >> 1]) / 2;
      const wanted = getComputedStyle(document.documentElement).getPropertyValue(`--shade-${level(scale.limits, middle)}`).trim();
      const [x, y] = [left + (j + 0.4) * square, top + (i + 0.4) * square].map((px) => Math.floor(px * devicePixelRatio));
      const pixel = data.slice(4 * (y * canvas.width + x), 4 * (y * canvas.width + x) + 4);
      const found = `#${[...pixel].slice(0, 3).map((part) => part.toString(16).padStart(2, "0")).join("")}`;
      if (inside.length && found !== wanted) wrong.push([i, j, found, wanted]);
    }
  }
  canvas.focus();
  const key = (name, shiftKey = false) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key: name, shiftKey, bubbles: true }));
  for (let step = 0; step < 30; step += 1) key("ArrowDown");
  for (let step = 0; step < 20; step += 1) key("ArrowRight");
  for (let step = 0; step < 30; step += 1) key("ArrowDown", true);
  for (let step = 0; step < 25; step += 1) key("ArrowRight", true);
  key("Enter");
  const fits = canvas.clientWidth <= width;
  holder.remove();
  return { k, wrong, fits, zooms };
}
