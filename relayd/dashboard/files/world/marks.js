// Markers that would overlap are moved apart; labels find a place where they cover nothing that counts.

const ROUNDS = 60;
const FARTHEST = 4; // markers away from its place one may be moved, or it would tell a lie
const LINE = 16;
// As base.css has it for labels.
const pen = document.createElement("canvas").getContext("2d");
pen.font = '600 13px system-ui, "Liberation Sans", sans-serif';

// points: [{ x, y }], changed in place: those nearer than `apart` px are moved apart.
export function spread(points, apart) {
  const homes = points.map(({ x, y }) => [x, y]);
  points.forEach((point, at) => { // those at the very same place begin in different directions
    point.x += 0.01 * Math.cos(at);
    point.y += 0.01 * Math.sin(at);
  });
  for (let round = 0; round < ROUNDS; round += 1) {
    const moved = points.map((one, at) => points.slice(at + 1).map((other) => pushed(one, other, apart)).some(Boolean));
    if (!moved.some(Boolean)) break;
  }
  points.forEach((point, at) => {
    const [dx, dy] = [point.x - homes[at][0], point.y - homes[at][1]];
    const share = Math.min(1, (FARTHEST * apart) / (Math.hypot(dx, dy) || 1));
    [point.x, point.y] = [homes[at][0] + dx * share, homes[at][1] + dy * share];
  });
}

function pushed(one, other, apart) {
  const [dx, dy] = [other.x - one.x, other.y - one.y];
  const distance = Math.hypot(dx, dy);
  if (distance >= apart * 0.999) return false;
  const step = (apart - distance) / 2 / (distance || 1);
  one.x -= dx * step;
  one.y -= dy * step;
  other.x += dx * step;
  other.y += dy * step;
  return true;
}

const overlap = (a, b) => Math.max(0, Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x))
  * Math.max(0, Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y));
const DIRECTIONS = [[0, -1], [0, 1], [1, 0], [-1, 0], [1, -1], [-1, -1], [1, 1], [-1, 1]];

// wanted: [{ x, y, text, isEnd }], the most important first. Returns those that have a place, each with its
// box: that of an end may be far from its marker, to which a line leads then.
export function labels(wanted, { width, height, marker }) {
  const boxes = wanted.map(({ x, y }) => ({ x: x - marker, y: y - marker, width: 2 * marker, height: 2 * marker }));
  const found = [];
  for (const { x, y, text, isEnd } of wanted) {
    const size = { width: Math.ceil(pen.measureText(text).width) + 6, height: LINE };
    const places = (isEnd ? [3, 18, 36, 56] : [3]).map((beyond) => marker + beyond).flatMap((away) => DIRECTIONS.map(([dx, dy]) => ({
      ...size, isFar: away > marker + 3,
      x: Math.max(2, Math.min(width - size.width - 2, x + dx * away - size.width * (1 - dx) / 2)),
      y: Math.max(2, Math.min(height - LINE - 2, y + dy * away - LINE * (1 - dy) / 2)),
    })));
    const free = places.find((box) => boxes.every((other) => overlap(box, other) === 0));
    if (!free) continue;
    boxes.push(free);
    found.push({ ...free, text, to: [x, y] });
  }
  return found;
}
