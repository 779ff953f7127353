// The plane of two inputs: the partition of one tree, the surface of all trees, training rows.
import { $, CLASS_COLOURS, clamp, context, css, keepDrawn, number, ramp } from "./dom.js";

/**
 * Cells of a tree with their mean targets, laid out once so that a frame only walks and fills.
 * Nodes are [time, axis, location, below, above]; a cell is { x0, y0, x1, y1, mean, count, node, kids }.
 */
export function layOut(plane, classes) {
  const cell = (node, x0, y0, x1, y1, rows) => {
    let mean = 0;
    if (classes) {
      const counts = new Array(classes.length).fill(0);
      for (const row of rows) counts[plane.points[row][2]] += 1;
      mean = counts.indexOf(Math.max(...counts));
    } else {
      for (const row of rows) mean += plane.points[row][2];
      mean /= rows.length || 1;
    }
    return { node, x0, y0, x1, y1, mean, count: rows.length, rows, kids: null };
  };
  const { x, y, nodes, points } = plane;
  const root = cell(nodes.length ? 0 : -1, x.min, y.min, x.max, y.max, points.map((_, i) => i));
  const stack = [root];
  while (stack.length) {
    const at = stack.pop();
    if (at.node < 0) continue;
    const [, axis, cut, below, above] = nodes[at.node], low = [], high = [];
    for (const row of at.rows) (points[row][axis] <= cut ? low : high).push(row);
    at.kids = axis === 0
      ? [cell(below, at.x0, at.y0, cut, at.y1, low), cell(above, cut, at.y0, at.x1, at.y1, high)]
      : [cell(below, at.x0, at.y0, at.x1, cut, low), cell(above, at.x0, cut, at.x1, at.y1, high)];
    stack.push(...at.kids);
  }
  return root;
}

/** Where the values of most points lie: outliers do not take the colours. */
export function valueRange(values) {
  if (!values.length) return [0, 1];
  const sorted = Float64Array.from(values).sort();
  const lo = sorted[Math.floor(0.02 * (sorted.length - 1))], hi = sorted[Math.ceil(0.98 * (sorted.length - 1))];
  return hi > lo ? [lo, hi] : [lo - 0.5, lo + 0.5];
}

/** How a value becomes a colour, for this theme. */
function painter(range, classes, density) {
  const empty = css("--cell");
  if (classes) {
    const colours = CLASS_COLOURS.map(css);
    return (cell) => (cell.count ? colours[cell.mean % colours.length] : empty);
  }
  const colours = ramp(64);
  if (density) {
    const [lo, hi] = range;
    return (cell) => {
      if (!cell.count) return empty;
      const logDensity = Math.log(cell.count / ((cell.x1 - cell.x0) * (cell.y1 - cell.y0)));
      return colours[Math.round(clamp(0.5 + (0.5 * (logDensity - lo)) / (hi - lo), 0.5, 1) * 63)];
    };
  }
  const [lo, hi] = range;
  return (cell) => (cell.count ? colours[Math.round(clamp((cell.mean - lo) / (hi - lo), 0, 1) * 63)] : empty);
}

/** The partition of one tree on a canvas; `lifetime` changes at every move of the slider. */
export function partition(canvas, overlay) {
  let plane = null, root = null, lifetime = 0, classes = null, density = false, range = [0, 1], showPoints = true, seen = null, gone = new Set(), paint = null, theme = "";
  const stats = { cells: 0, frames: 0, millis: 0 };

  const draw = () => {
    if (!plane) return;
    const started = performance.now();
    const { g, width, height } = context(canvas);
    const wide = width / (plane.x.max - plane.x.min || 1), tall = height / (plane.y.max - plane.y.min || 1);
    const now = document.documentElement.dataset.theme;
    if (!paint || theme !== now) { paint = painter(range, classes, density); theme = now; }
    const lines = new Path2D(), stack = [root];
    let cells = 0;
    g.fillStyle = css("--paper");
    g.fillRect(0, 0, width, height);
    while (stack.length) {
      const at = stack.pop();
      const x0 = (at.x0 - plane.x.min) * wide, x1 = (at.x1 - plane.x.min) * wide, y0 = height - (at.y0 - plane.y.min) * tall, y1 = height - (at.y1 - plane.y.min) * tall;
      // In a stream, a cut shows once learned rows lie on both sides of it.
      const parts = at.kids && plane.nodes[at.node][0] <= lifetime && (seen === null || (at.kids[0].first < seen && at.kids[1].first < seen));
      if (parts) {
        const [, axis, cut] = plane.nodes[at.node];
        if (axis === 0) { const p = (cut - plane.x.min) * wide; lines.moveTo(p, y0); lines.lineTo(p, y1); }
        else { const p = height - (cut - plane.y.min) * tall; lines.moveTo(x0, p); lines.lineTo(x1, p); }
        stack.push(at.kids[0], at.kids[1]);
      } else {
        cells += 1;
        g.fillStyle = seen === null || at.first < seen ? paint(at) : css("--cell");
        g.fillRect(x0, y1, x1 - x0 + 0.5, y0 - y1 + 0.5);
      }
    }
    g.strokeStyle = css("--rule");
    g.lineWidth = cells < 60 ? 3 : cells < 500 ? 1.6 : 0.7;
    g.stroke(lines);
    stats.cells = cells;
    stats.frames += 1;
    stats.millis = performance.now() - started;
    canvas.dataset.cells = cells;
  };
  const drawPoints = () => {
    if (!plane || !overlay) return;
    const { g, width, height } = context(overlay);
    g.clearRect(0, 0, width, height);
    if (!showPoints) return;
    const wide = width / (plane.x.max - plane.x.min || 1), tall = height / (plane.y.max - plane.y.min || 1);
    g.fillStyle = css("--ink");
    g.globalAlpha = 0.55;
    for (const [px, py] of plane.points) g.fillRect((px - plane.x.min) * wide - 1, height - (py - plane.y.min) * tall - 1, 2, 2);
  };
  const redraw = keepDrawn(canvas, draw);
  const redrawPoints = overlay ? keepDrawn(overlay, drawPoints) : () => {};
  return {
    stats,
    set(next, options) {
      plane = next;
      ({ classes = null, density = false } = options);
      root = layOut(plane, classes);
      firsts(root, new Set());
      range = density ? logDensityRange(root) : valueRange(plane.points.map((p) => p[2]));
      paint = null;
      redraw(); redrawPoints();
    },
    clear() { plane = null; },
    at(value) { lifetime = value; redraw(); },
    seen(n) { seen = n; redraw(); },
    /** Rows that are forgotten part nothing and colour nothing. */
    forget(rows) {
      gone = new Set(rows);
      if (!root) return;
      firsts(root, gone);
      redraw();
    },
    points(show) { showPoints = show; redrawPoints(); },
    range: () => range,
    /** The learned row nearest to a place on the canvas. */
    nearest(event) {
      if (!plane) return null;
      const box = canvas.getBoundingClientRect();
      const px = (event.clientX - box.left) / box.width, py = 1 - (event.clientY - box.top) / box.height;
      let best = null, least = Infinity;
      plane.points.forEach(([x, y], i) => {
        if (seen !== null && (i >= seen || gone.has(i))) return;
        const d = ((x - plane.x.min) / (plane.x.max - plane.x.min) - px) ** 2 + ((y - plane.y.min) / (plane.y.max - plane.y.min) - py) ** 2;
        if (d < least) { least = d; best = i; }
      });
      return best;
    },
  };
}

/** The first row of every cell that is not forgotten, by order of arrival. */
function firsts(root, gone) {
  const stack = [root];
  while (stack.length) {
    const at = stack.pop();
    at.first = at.rows.find((row) => !gone.has(row)) ?? Infinity;
    if (at.kids) stack.push(...at.kids);
  }
}
function logDensityRange(root) {
  const all = [];
  const stack = [root];
  while (stack.length) {
    const at = stack.pop();
    if (at.kids) stack.push(...at.kids);
    if (at.count) all.push(Math.log(at.count / ((at.x1 - at.x0) * (at.y1 - at.y0))));
  }
  return valueRange(all);
}

/** All trees together on a lattice of the plane: means, classes or a density with its contours. */
export function surface(canvas) {
  let data = null, options = {};
  const small = document.createElement("canvas");
  const draw = () => {
    if (!data) return;
    const { g, width, height } = context(canvas);
    const { n, values, classes } = data;
    small.width = small.height = n;
    const s = small.getContext("2d"), image = s.createImageData(n, n);
    const colours = (options.classes ? CLASS_COLOURS.map(css) : ramp(64)).map(parse), paper = parse(css("--paper"));
    const [lo, hi] = options.range;
    for (let j = 0; j < n; j++) for (let i = 0; i < n; i++) {
      const from = j * n + i, to = ((n - 1 - j) * n + i) * 4;
      let colour;
      if (options.classes) {
        const base = colours[classes[from] % colours.length], t = clamp((values[from] - 1 / options.classes.length) / (1 - 1 / options.classes.length), 0.08, 1);
        colour = base.map((v, k) => paper[k] + (v - paper[k]) * t);
      } else {
        const t = clamp((values[from] - lo) / (hi - lo), 0, 1);
        colour = colours[Math.round((options.density ? 0.5 + t / 2 : t) * 63)];
      }
      image.data.set([...colour, 255], to);
    }
    s.putImageData(image, 0, 0);
    g.imageSmoothingEnabled = !options.classes;
    g.drawImage(small, 0, 0, width, height);
    if (options.density) contours(g, data, width, height, lo, hi);
  };
  const redraw = keepDrawn(canvas, draw);
  return {
    set(next, how, words) { data = next; options = how; canvas.setAttribute("aria-label", words); redraw(); },
    clear() { data = null; },
  };
}

function parse(colour) {
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = colour;
  const text = probe.fillStyle;
  return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
}

/** Level lines by marching squares, seven of them evenly by value. */
function contours(g, { n, values }, width, height, lo, hi) {
  g.strokeStyle = css("--ink");
  g.lineWidth = 1;
  const px = (i) => ((i + 0.5) / n) * width, py = (j) => height - ((j + 0.5) / n) * height;
  g.beginPath();
  for (let k = 1; k < 8; k++) {
    const level = lo + ((hi - lo) * k) / 8;
    for (let j = 0; j + 1 < n; j++) for (let i = 0; i + 1 < n; i++) {
      const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]], v = corners.map(([a, b]) => values[b * n + a]);
      const hits = [];
      for (let e = 0; e < 4; e++) {
        const a = v[e], b = v[(e + 1) % 4];
        if (a < level !== b < level) {
          const t = (level - a) / (b - a), [x0, y0] = corners[e], [x1, y1] = corners[(e + 1) % 4];
          hits.push([px(x0 + (x1 - x0) * t), py(y0 + (y1 - y0) * t)]);
        }
      }
      for (let e = 0; e + 1 < hits.length; e += 2) { g.moveTo(...hits[e]); g.lineTo(...hits[e + 1]); }
    }
  }
  g.stroke();
}

/** The ends of an axis in the file's units. */
export function ends(side) {
  return [side.low === null ? number(side.min, 3) : number(side.low, 3), side.high === null ? number(side.max, 3) : number(side.high, 3)];
}
export function labelAxes(prefix, plane) {
  const [low, high] = ends(plane.x), [bottom, top] = ends(plane.y);
  $(`${prefix}-low`).textContent = low;
  $(`${prefix}-name`).textContent = `${plane.x.name} → · ${plane.y.name} ↑ from ${bottom} to ${top}`;
  $(`${prefix}-high`).textContent = high;
}
