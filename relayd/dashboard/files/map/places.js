// Where things are on the map: views, markers that would overlap, great circles.

const RADIANS = Math.PI / 180;
// Half the width of the Equal Earth projection at a scale of 1 (Savric, Patterson, Jenny 2018).
const HALF_WIDTH = 2.70663;
// A window narrower than this has smaller markers, and room for fewer words.
export const NARROW = 600;
// Farther than this a marker would tell a lie about its place, even on a small screen.
const MOST_DEGREES = 5;

// Where a view looks, and how many times it magnifies.
export const VIEWS = {
  world: { title: "World", at: [10, 5.5], zoom: 1 },
  "north-america": { title: "North America", at: [-96, 40], zoom: 4.2 },
  "south-america": { title: "South America", at: [-60, -20], zoom: 3.4 },
  europe: { title: "Europe", at: [8, 51], zoom: 6.5 },
  "middle-east-africa": { title: "Middle East and Africa", at: [32, 8], zoom: 2.8 },
  asia: { title: "Asia", at: [108, 24], zoom: 3 },
  oceania: { title: "Oceania", at: [145, -28], zoom: 4 },
};

export function frame(viewName, width) {
  const view = VIEWS[viewName] ?? VIEWS.world;
  // The world without the ice at its ends; a closer view has room for more height.
  const height = Math.round(width * (view.zoom === 1 ? 0.44 : width < NARROW ? 0.9 : 0.55));
  const scale = (width / (2 * HALF_WIDTH)) * view.zoom;
  const projection = {
    type: "equalEarth",
    rotate: [-view.at[0], 0, 0],
    center: [0, view.at[1]],
    scale,
    translate: [width / 2, height / 2],
    precision: 0.1,
  };
  const marker = width < NARROW ? 7 : 11;
  return { width, height, projection, marker, apart: marker / (scale * RADIANS) };
}

// Region to [longitude, latitude] of its marker: those nearer than `apart` degrees are moved apart.
export function spread(regions, apart) {
  const made = regions
    .filter((region) => region.latitude_deg !== null && region.longitude_deg !== null)
    .map((region, at) => ({
      id: region.id,
      home: [region.longitude_deg, region.latitude_deg],
      // Those at the very same place begin in different directions.
      x: region.longitude_deg + 1e-3 * Math.cos(at),
      y: region.latitude_deg + 1e-3 * Math.sin(at),
    }));
  for (let round = 0; round < 60; round += 1) {
    let moved = false;
    for (let a = 0; a < made.length; a += 1) {
      for (let b = a + 1; b < made.length; b += 1) moved = pushed(made[a], made[b], apart) || moved;
    }
    if (!moved) break;
  }
  return new Map(made.map((each) => [each.id, within(each)]));
}

function pushed(one, other, apart) {
  const narrow = Math.cos(one.y * RADIANS);
  const [dx, dy] = [(other.x - one.x) * narrow, other.y - one.y];
  const distance = Math.hypot(dx, dy);
  if (distance >= apart * 0.999) return false;
  const step = (apart - distance) / 2 / (distance || 1);
  one.x -= (dx * step) / narrow;
  one.y -= dy * step;
  other.x += (dx * step) / narrow;
  other.y += dy * step;
  return true;
}

function within({ home, x, y }) {
  const distance = Math.hypot(x - home[0], y - home[1]);
  const share = Math.min(1, MOST_DEGREES / distance);
  return [home[0] + (x - home[0]) * share, home[1] + (y - home[1]) * share];
}

// A line between two points is a great circle in Vega's projections.
export function arc(from, to, properties) {
  return { type: "Feature", geometry: { type: "LineString", coordinates: [from, to] }, properties };
}
