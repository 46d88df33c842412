#!/bin/sh
# Fetches again what pages draw with: uPlot as it is released; d3-geo and topojson-client as one module, with
# what the map uses of them; and the outline of the land. Needs npm and a network.
set -eu
target=$(cd "$(dirname "$0")/.." && pwd)/relayd/dashboard/files/vendor
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --silent --no-audit --no-fund d3-geo@3.1.1 topojson-client@3.1.0 d3-array@3.2.4 internmap@2.0.3 world-atlas@2.0.2 uplot@1.6.32 \
  rollup@4 @rollup/plugin-node-resolve@16 terser@5
cat > entry.js <<'JS'
export { geoAzimuthalEqualArea, geoDistance, geoEqualEarth, geoGraticule10, geoInterpolate, geoPath } from "d3-geo";
export { feature } from "topojson-client";
JS
npx rollup entry.js --silent -p @rollup/plugin-node-resolve -f es -o whole.js
{
  echo '// d3-geo 3.1.1 and topojson-client 3.1.0, by Mike Bostock (ISC license): licenses.txt has the texts.'
  echo '// Made by scripts/vendor.sh; not to be changed by hand.'
  npx terser whole.js --module -c -m
} > "$target/geo.js"
cp node_modules/uplot/dist/uPlot.iife.min.js "$target/uplot.js"
cp node_modules/uplot/dist/uPlot.min.css "$target/uplot.css"
for package in d3-geo d3-array internmap topojson-client world-atlas; do
  printf '%s %s\n\n' "$package" "$(node -p "require('./node_modules/$package/package.json').version")"
  cat "node_modules/$package/LICENSE"* && echo
done > "$target/licenses.txt"
{
  printf 'uPlot 1.6.32\n\nuplot.js is dist/uPlot.iife.min.js of https://registry.npmjs.org/uplot/-/uplot-1.6.32.tgz, unchanged,\nSHA-256 %s;\n' "$(sha256sum "$target/uplot.js" | cut -d' ' -f1)"
  printf 'uplot.css is its dist/uPlot.min.css, unchanged,\nSHA-256 %s.\n\n' "$(sha256sum "$target/uplot.css" | cut -d' ' -f1)"
  cat node_modules/uplot/LICENSE && echo
} >> "$target/licenses.txt"
cp node_modules/world-atlas/land-110m.json "$target/../world/land.json"
