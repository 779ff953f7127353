"use strict";
// The report's own small charts: no library, no network. Every section of the data becomes one section of the page.
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const root = document.documentElement;

  // ---- elements -------------------------------------------------------------------------------------------------
  function fill(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value);
    }
    node.append(...children.filter((c) => c !== null && c !== undefined));
    return node;
  }
  const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const s = (tag, attributes, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const clamp = (x, a, b) => Math.min(b, Math.max(a, x));
  const COLOURS = ["--blue", "--red", "--yellow", "--soft", "--ink", "--faint"];

  function number(x, digits = 4) {
    if (x === null || x === undefined) return "–";
    if (typeof x !== "number") return x === "inf" ? "∞" : String(x);
    if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
    if (x === 0) return "0";
    const size = Math.abs(x);
    // Counts keep all their digits, in threes.
    if (Number.isInteger(x) && size >= 1e4 && size < 1e12) return String(x).replace("-", "−").replace(/\B(?=(\d{3})+$)/g, "\u202f");
    const text = size >= 1e6 || size < 1e-4 ? x.toExponential(2) : String(Number(x.toPrecision(digits)));
    return text.replace("-", "−");
  }

  // ---- themes ---------------------------------------------------------------------------------------------------
  const redraws = new Set();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  function theme() {
    root.dataset.theme = chosen || (dark.matches ? "dark" : "light");
    redraws.forEach((draw) => draw());
  }
  dark.addEventListener("change", theme);
  document.querySelector(".theme").addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    theme();
  });
  /** Draws now, on every change of width and of theme. */
  // Paper is narrower than most windows, and charts on it so low that a page holds two or three.
  const PAPER_WIDTH = 690, PAPER_HEIGHT = 195;
  let isOnPaper = false;
  const print = (is) => { isOnPaper = is; redraws.forEach((redraw) => redraw()); };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  const tall = (width, share, least, most) => (isOnPaper ? PAPER_HEIGHT : clamp(width * share, least, most));

  function keepDrawn(node, draw) {
    let width = 0;
    redraws.add(() => width && draw(isOnPaper ? PAPER_WIDTH : width));
    new ResizeObserver(() => {
      const now = Math.floor(node.clientWidth);
      // In the next frame: drawing inside the observer would resize what it observes.
      if (now && now !== width) requestAnimationFrame(() => draw((width = now)));
    }).observe(node);
  }

  // ---- scales ---------------------------------------------------------------------------------------------------
  function ticks(lo, hi, log, most) {
    if (log) {
      const from = Math.ceil(Math.log10(lo) - 1e-9), to = Math.floor(Math.log10(hi) + 1e-9);
      if (to > from) {
        const step = Math.ceil((to - from + 1) / most);
        const out = [];
        for (let e = from; e <= to; e += step) out.push(10 ** e);
        return out;
      }
    }
    const rough = (hi - lo) / most, power = 10 ** Math.floor(Math.log10(rough || 1));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((m) => m >= rough) || power;
    const out = [];
    for (let v = Math.ceil(lo / step - 1e-9) * step; v <= hi + step * 1e-9; v += step) out.push(Math.abs(v) < step * 1e-9 ? 0 : v);
    return out;
  }
  function scale(lo, hi, from, to, log) {
    if (!(hi > lo)) { lo -= log ? lo / 2 : 0.5; hi += log ? hi : 0.5; }
    const f = log ? Math.log : (x) => x, g = log ? Math.exp : (x) => x;
    const a = f(lo), b = f(hi);
    const at = (x) => from + ((f(clamp(x, log ? lo : -Infinity, Infinity)) - a) / (b - a)) * (to - from);
    at.inverse = (p) => g(a + ((p - from) / (to - from)) * (b - a));
    at.ticks = (most) => ticks(lo, hi, log, most);
    return at;
  }
  function axes(svg, x, y, width, height, m, xLabel, yLabel) {
    const g = s("g", { class: "axis" });
    for (const t of y.ticks(5)) {
      const p = y(t);
      g.append(s("line", { x1: m.left, x2: width - m.right, y1: p, y2: p }), s("text", { x: m.left - 9, y: p + 4, "text-anchor": "end" }, number(t)));
    }
    const bottom = height - m.bottom;
    for (const t of x.ticks(Math.max(3, Math.floor(width / 110)))) {
      g.append(s("line", { x1: x(t), x2: x(t), y1: bottom, y2: bottom + 5, class: "base" }), s("text", { x: x(t), y: bottom + 20, "text-anchor": "middle" }, number(t)));
    }
    g.append(s("line", { class: "base", x1: m.left, x2: width - m.right, y1: bottom, y2: bottom }));
    g.append(s("text", { class: "label", x: width - m.right, y: height - 4, "text-anchor": "end" }, xLabel));
    g.append(s("text", { class: "label", x: m.left - 9, y: m.top - 12, "text-anchor": "start" }, yLabel));
    svg.append(g);
  }
  function tipOf(parent) {
    const tip = h("div", { class: "tip", role: "status" });
    parent.append(tip);
    return {
      show(x, y, lines) {
        tip.replaceChildren(...lines.map((line) => h("div", {}, ...[].concat(line))));
        const room = parent.clientWidth - tip.offsetWidth;
        tip.style.transform = `translate(${clamp(x + 14, 0, Math.max(0, room))}px, ${Math.max(0, y)}px)`;
        tip.style.opacity = 1;
      },
      hide() { tip.style.opacity = 0; },
    };
  }
  /** Shows values under a pointer that moves, or where a finger taps; a tap elsewhere hides them. */
  function onPoint(node, show, hide) {
    node.addEventListener("pointermove", show);
    node.addEventListener("pointerdown", show);
    // A finger that is lifted leaves too: what it asked for stays.
    node.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && hide());
    document.addEventListener("pointerdown", (event) => !node.contains(event.target) && hide());
  }
  const swatch = (colour) => h("i", { style: `--c: var(${colour})` });
  /** Index of the last entry ≤ x of an increasing list. */
  function lastAtMost(list, x) {
    let a = 0, b = list.length;
    while (b - a > 1) { const m = (a + b) >> 1; if (list[m] <= x) a = m; else b = m; }
    return a;
  }

  /** Index of the entry nearest to x. */
  const nearestTo = (list, x) => list.reduce((best, v, i) => (Math.abs(v - x) < Math.abs(list[best] - x) ? i : best), 0);
  let clips = 0;

  // ---- curves ---------------------------------------------------------------------------------------------------
  function curve(spec) {
    const node = h("div", { class: "chart" });
    const state = { logX: spec.log_x !== false, logY: false };
    // JSON has no infinity: the last lifetime of an unlimited path arrives as null.
    const series = spec.series.map((one, i) => ({ ...one, x: one.x.map((v) => v ?? Infinity), colour: one.muted ? "--faint" : COLOURS[i % COLOURS.length] }));
    const legend = h("div", { class: "legend" }, ...series.map((one) => h("span", { style: `--c: var(${one.colour})` }, one.name)));
    const toggle = (label, key) => {
      const button = h("button", { class: "toggle", type: "button", "aria-pressed": state[key] }, label);
      button.addEventListener("click", () => { state[key] = !state[key]; button.setAttribute("aria-pressed", state[key]); draw(node.clientWidth); });
      return button;
    };
    const positive = series.every((one) => one.y.every((v) => v === null || v > 0));
    // Drag across the chart to look at a part of it.
    const whole = h("button", { class: "toggle", type: "button", hidden: "" }, "whole curve");
    whole.addEventListener("click", () => { state.zoom = null; whole.hidden = true; draw(node.clientWidth); });
    const tools = h("div", { class: "tools" }, legend, ...(spec.plain ? [] : [whole, toggle(`log ${spec.x_short || "λ"}`, "logX"), positive ? toggle("log error", "logY") : null]));
    const place = h("div", {});
    node.append(tools, place);
    const tip = tipOf(node);
    let cursor = null, frame = null;

    function draw(width) {
      // JSON has no infinity: an unlimited lifetime is marked at the right edge.
      const marks = (spec.marks || []).map((mark) => ({ ...mark, x: mark.x ?? Infinity }));
      // The words of marks have rows of their own above the plot: inside it they would lie on the curves of a narrow one.
      const words = 18 * marks.length, m = { left: 58, right: 14, top: 30 + words, bottom: 44 }, height = tall(width, 0.52, 250, 400) + words;
      const xs = series.flatMap((one) => one.x).filter(Number.isFinite);
      const smallest = Math.min(...xs.filter((v) => v > 0)), largest = Math.max(...xs);
      const log = state.logX && Number.isFinite(smallest);
      const range = state.zoom || [log ? smallest * 0.7 : Math.min(...xs), largest * (log ? 1.15 : 1)];
      const x = scale(range[0], range[1], m.left, width - m.right, log);
      // The values in sight, and those that reach into it from the left.
      const inSight = (one) => one.y.filter((v, i) => v !== null && Number.isFinite(v) && one.x[i] <= range[1] && (one.x[i + 1] ?? Infinity) >= range[0]);
      const ys = series.flatMap(inSight);
      const lo = Math.min(...ys), hi = Math.max(...ys), pad = (hi - lo) * 0.06 || Math.abs(hi) * 0.05 || 1;
      const y = state.logY ? scale(lo / 1.08, hi * 1.08, height - m.bottom, m.top, true) : scale(lo - pad, hi + pad, height - m.bottom, m.top, false);
      const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, height, tabindex: 0, role: "img", "aria-label": spec.title });
      axes(svg, x, y, width, height, m, spec.x_label, spec.y_label);
      const clip = `clip${++clips}`;
      svg.append(s("clipPath", { id: clip }, s("rect", { x: m.left, y: 0, width: Math.max(0, width - m.left - m.right), height })));
      const drawn = s("g", { "clip-path": `url(#${clip})` });
      svg.append(drawn);
      for (const [row, mark] of [...marks.entries()].filter(([, mark]) => !state.zoom || (mark.x >= range[0] && mark.x <= range[1]))) {
        const p = clamp(x(mark.x), m.left, width - m.right), text = `${mark.label} ${number(mark.x)}`, room = 7.4 * text.length + 10;
        // To the left where the words would leave the plot, or cross the line of a mark in a row above that lies to the right.
        const crosses = marks.slice(0, row).some((above) => x(above.x) > p && x(above.x) < p + room) && p - room > 0;
        const top = 14 + 18 * row, end = p + room > width - m.right || crosses;
        svg.append(
          s("line", { class: "mark", x1: p, x2: p, y1: top - 10, y2: height - m.bottom, stroke: css(mark.minor ? "--faint" : "--red"), "stroke-width": mark.minor ? 1 : 2, "stroke-dasharray": mark.minor ? "3 4" : null }),
          s("text", { x: p + (end ? -7 : 7), y: top, "text-anchor": end ? "end" : "start", fill: css(mark.minor ? "--faint" : "--red"), "font-size": 12.5, "font-weight": 600, "paint-order": "stroke", stroke: css("--paper"), "stroke-width": 5 }, text));
      }
      for (const one of series) {
        let d = "", last = 0;
        one.x.forEach((v, i) => {
          if (one.y[i] === null || !Number.isFinite(one.y[i])) return;
          // An unlimited lifetime, or a chart that has no width yet, has no place.
          const px = Math.min(x(v), x(range[1]) + width).toFixed(1), py = y(one.y[i]).toFixed(1);
          if (!Number.isFinite(Number(px)) || !Number.isFinite(Number(py))) return;
          last = Number(px);
          d += !d ? `M${px} ${py}` : spec.steps === false ? `L${px} ${py}` : `H${px}V${py}`;
        });
        if (spec.steps !== false && d && last < width - m.right) d += `H${width - m.right}`;
        drawn.append(s("path", { d, fill: "none", stroke: css(one.colour), "stroke-width": one.muted ? 1.2 : 2, "stroke-dasharray": one.muted ? "4 5" : null, "stroke-linejoin": "round" }));
        if (one.dots) one.x.forEach((v, i) => Number.isFinite(v) && one.y[i] !== null && drawn.append(s("circle", { cx: x(v), cy: y(one.y[i]), r: 3.2, fill: css(one.colour) })));
      }
      const line = s("line", { y1: m.top, y2: height - m.bottom, stroke: css("--ink"), "stroke-width": 1, opacity: 0 });
      svg.append(line);
      frame = { x, y, m, width, height, line };
      const valueOf = (event) => {
        const box = svg.getBoundingClientRect();
        return x.inverse(clamp(((event.clientX - box.left) / box.width) * width, m.left, width - m.right));
      };
      onPoint(svg, (event) => at(valueOf(event)), () => at(null));
      if (!spec.plain) {
        const band = s("rect", { y: m.top, height: Math.max(0, height - m.bottom - m.top), fill: css("--blue"), opacity: 0.12, width: 0 });
        svg.append(band);
        let from = null;
        svg.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse") { from = valueOf(event); try { svg.setPointerCapture(event.pointerId); } catch { /* a pointer that is gone already */ } } });
        svg.addEventListener("pointermove", (event) => {
          if (from === null) return;
          const ends = [x(from), x(valueOf(event))].sort((a, b) => a - b);
          band.setAttribute("x", ends[0]);
          band.setAttribute("width", ends[1] - ends[0]);
        });
        svg.addEventListener("pointerup", (event) => {
          if (from === null) return;
          const ends = [from, valueOf(event)].sort((a, b) => a - b), far = Math.abs(x(ends[1]) - x(ends[0])) > 8;
          from = null;
          band.setAttribute("width", 0);
          if (far) { state.zoom = ends; whole.hidden = false; draw(node.clientWidth); }
        });
        svg.addEventListener("dblclick", () => whole.click());
      }
      svg.addEventListener("blur", () => at(null));
      svg.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        at(x.inverse(clamp(x(cursor === null ? largest : cursor) + step * 8, m.left, width - m.right)));
      });
      place.replaceChildren(svg);
    }
    function at(value) {
      cursor = value;
      if (value === null || !frame) { tip.hide(); frame && frame.line.setAttribute("opacity", 0); return; }
      const p = frame.x(value);
      frame.line.setAttribute("x1", p);
      frame.line.setAttribute("x2", p);
      frame.line.setAttribute("opacity", 0.45);
      const lines = series.map((one) => {
        const i = spec.steps === false ? nearestTo(one.x, value) : lastAtMost(one.x, value);
        return [swatch(one.colour), `${one.name} `, h("b", {}, number(one.y[i]))];
      });
      tip.show(p, tools.offsetHeight + frame.m.top, [[`${spec.x_short || "λ"} = `, h("b", {}, number(value, 3))], ...lines]);
    }
    keepDrawn(node, draw);
    return node;
  }

  // ---- partition ------------------------------------------------------------------------------------------------
  const mixed = (a, b, t) => a.map((v, i) => Math.round(v + (b[i] - v) * t));
  const triple = (name) => css(name).split(",").map(Number);

  /** The cells of the tree at a lifetime: boxes with the points in them. Node: [time, axis, location, below, above]. */
  function cellsAt(spec, lifetime) {
    const cells = [], stack = [[0, spec.x.min, spec.y.min, spec.x.max, spec.y.max, spec.points.map((_, i) => i)]];
    while (stack.length) {
      const [id, x0, y0, x1, y1, rows] = stack.pop();
      const node = id < 0 ? undefined : spec.nodes[id];
      if (!node || node[0] > lifetime) {
        cells.push({ x0, y0, x1, y1, rows, id: `${x0}:${y0}` });
        continue;
      }
      const [, axis, cut, below, above] = node, [low, high] = [[], []];
      for (const row of rows) (spec.points[row][axis] <= cut ? low : high).push(row);
      stack.push(axis === 0 ? [above, cut, y0, x1, y1, high] : [above, x0, cut, x1, y1, high]);
      stack.push(axis === 0 ? [below, x0, y0, cut, y1, low] : [below, x0, y0, x1, cut, low]);
    }
    return cells;
  }
  /** One of five paints by the cell's place: most cells stay white, as on the canvases. */
  function paint(text) {
    let hash = 2166136261;
    for (const c of text) hash = Math.imul(hash ^ c.charCodeAt(0), 16777619);
    hash = Math.imul(hash ^ (hash >>> 15), 2246822519) >>> 0;
    const u = (hash >>> 8) / 16777216;
    return css(u < 0.62 ? "--panel" : u < 0.75 ? "--red" : u < 0.87 ? "--blue" : "--yellow");
  }

  function partition(spec) {
    const node = h("div", { class: "partition chart" });
    const canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": spec.title });
    const steps = 1000, top = spec.max_lifetime;
    // Cuts arrive faster and faster: a square-root slider gives the first ones room.
    const toLifetime = (v) => top * (v / steps) ** 2, toStep = (l) => Math.round(steps * Math.sqrt(clamp(l / top, 0, 1)));
    const range = h("input", { type: "range", min: 0, max: steps, step: 1, value: toStep(spec.lifetime), "aria-label": "lifetime", class: "lifetime" });
    const out = h("output", {}), count = h("span", { class: "cells" });
    const classes = spec.classes;
    let showPoints = spec.points.length > 0, painted = !spec.points.length, cells = [], densest = 1;
    const button = (label, get, set) => {
      const b = h("button", { class: "toggle", type: "button", "aria-pressed": get() }, label);
      b.addEventListener("click", () => { set(); b.setAttribute("aria-pressed", get()); draw(canvas.clientWidth); });
      return b;
    };
    // Points without a value: cells are shaded by how close together points lie in them.
    const density = spec.points.length > 0 && !spec.value && !classes;
    const values = spec.points.map((p) => p[2]), lo = Math.min(...values), hi = Math.max(...values);
    const key = !spec.points.length ? h("span", { class: "legend" }) : classes
      ? h("div", { class: "legend" }, ...classes.slice(0, 6).map((c, i) => h("span", { style: `--c: var(${COLOURS[i % 6]})` }, c)))
      : density ? h("div", { class: "ramp density legend" }, "sparse", h("i"), "dense")
      : h("div", { class: "ramp legend" }, number(lo, 3), h("i"), number(hi, 3), ` ${spec.value || ""}`);
    const tools = h("div", { class: "tools" }, key,
      spec.points.length ? button("points", () => showPoints, () => (showPoints = !showPoints)) : null,
      spec.points.length ? button("paint", () => painted, () => (painted = !painted)) : null);
    const wrap = h("div", { style: "position: relative" }, canvas);
    node.append(spec.points.length ? tools : "", wrap, h("div", { class: "axes" }, h("span", {}, `${spec.x.name} → ${number(spec.x.low ?? spec.x.min, 3)} to ${number(spec.x.high ?? spec.x.max, 3)}`), h("span", {}, `${spec.y.name} ↑ ${number(spec.y.low ?? spec.y.min, 3)} to ${number(spec.y.high ?? spec.y.max, 3)}`)),
      h("div", { class: "slider" }, out, range, count));
    const tip = tipOf(wrap);

    function shade(cell) {
      if (painted) return paint(cell.id);
      if (!cell.rows.length) return css("--cell");
      if (classes) {
        const votes = classes.map(() => 0);
        for (const r of cell.rows) votes[spec.points[r][2]]++;
        return css(COLOURS[votes.indexOf(Math.max(...votes)) % 6]);
      }
      if (density) return `rgb(${mixed(triple("--mid"), triple("--high"), 0.08 + 0.92 * Math.sqrt(cell.density / densest))})`;
      const t = clamp((cell.mean - lo) / (hi - lo || 1), 0, 1);
      const rgb = t < 0.5 ? mixed(triple("--low"), triple("--mid"), t * 2) : mixed(triple("--mid"), triple("--high"), t * 2 - 1);
      return `rgb(${rgb})`;
    }
    function draw(width) {
      const lifetime = toLifetime(Number(range.value)), height = Math.round(isOnPaper ? 1.3 * PAPER_HEIGHT : clamp(width * 0.66, 240, 520)), ratio = devicePixelRatio || 1;
      cells = cellsAt(spec, lifetime);
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      canvas.style.height = `${height}px`;
      const c = canvas.getContext("2d");
      c.setTransform(ratio, 0, 0, ratio, 0, 0);
      const sx = width / (spec.x.max - spec.x.min || 1), sy = height / (spec.y.max - spec.y.min || 1);
      const px = (v) => (v - spec.x.min) * sx, py = (v) => height - (v - spec.y.min) * sy;
      const line = clamp(5 - Math.log2(cells.length) * 0.42, 0.6, 4);
      c.strokeStyle = css("--rule");
      c.lineWidth = line;
      for (const cell of cells) cell.density = cell.rows.length / ((cell.x1 - cell.x0) * (cell.y1 - cell.y0) || 1);
      // Slivers around single points would outshine all others: shades end at the ninth tenth of the points.
      const densities = cells.flatMap((cell) => cell.rows.map(() => cell.density)).sort((a, b) => a - b);
      densest = densities[Math.floor(0.9 * densities.length)] || 1;
      for (const cell of cells) {
        cell.density = Math.min(cell.density, densest);
        cell.mean = cell.rows.reduce((sum, r) => sum + spec.points[r][2], 0) / (cell.rows.length || 1);
        c.globalAlpha = classes && !painted ? 0.55 : 1;
        c.fillStyle = shade(cell);
        c.fillRect(px(cell.x0), py(cell.y1), (cell.x1 - cell.x0) * sx, (cell.y1 - cell.y0) * sy);
        c.globalAlpha = 1;
        c.strokeRect(px(cell.x0), py(cell.y1), (cell.x1 - cell.x0) * sx, (cell.y1 - cell.y0) * sy);
      }
      if (showPoints) {
        c.fillStyle = css("--ink");
        c.globalAlpha = 0.5;
        for (const p of spec.points) { c.beginPath(); c.arc(px(p[0]), py(p[1]), 1.6, 0, 7); c.fill(); }
        c.globalAlpha = 1;
      }
      out.textContent = `λ = ${number(lifetime, 3)}`;
      count.textContent = `${cells.length} ${cells.length === 1 ? "cell" : "cells"}`;
      canvas.dataset.cells = cells.length;
      canvas.dataset.lifetime = lifetime;
    }
    range.addEventListener("input", () => draw(canvas.clientWidth));
    onPoint(canvas, (event) => {
      const box = canvas.getBoundingClientRect();
      const vx = spec.x.min + ((event.clientX - box.left) / box.width) * (spec.x.max - spec.x.min);
      const vy = spec.y.max - ((event.clientY - box.top) / box.height) * (spec.y.max - spec.y.min);
      const cell = cells.find((k) => vx >= k.x0 && vx <= k.x1 && vy >= k.y0 && vy <= k.y1);
      if (!cell) return tip.hide();
      const lines = [[h("b", {}, String(cell.rows.length)), cell.rows.length === 1 ? " point" : " points"]];
      if (cell.rows.length && !classes && !density) lines.push(["mean ", h("b", {}, number(cell.mean))]);
      tip.show(event.clientX - box.left, event.clientY - box.top, spec.points.length ? lines : [["cell ", h("b", {}, `${number(cell.x1 - cell.x0, 3)} × ${number(cell.y1 - cell.y0, 3)}`)]]);
    }, () => tip.hide());
    keepDrawn(canvas, draw);
    return node;
  }

  // ---- predictions with intervals ---------------------------------------------------------------------------------
  function intervals(spec) {
    const node = h("div", { class: "chart" }), place = h("div"), tip = tipOf(node);
    node.prepend(h("div", { class: "tools" }, h("div", { class: "legend" }, h("span", { style: "--c: var(--blue)" }, `${number(100 * spec.coverage, 3)} % interval holds the truth`), h("span", { style: "--c: var(--red)" }, "it does not"))), place);
    keepDrawn(node, (width) => {
      const height = tall(width, 0.62, 280, 460), m = { left: 58, right: 14, top: 30, bottom: 44 };
      const rows = spec.rows, ys = rows.flatMap((r) => [r[2], r[3], r[0]]), pad = 0.03 * (Math.max(...ys) - Math.min(...ys)) || 1, lo = Math.min(...ys) - pad, hi = Math.max(...ys) + pad;
      const xs = rows.map((r) => r[0]);
      const x = scale(Math.min(...xs), Math.max(...xs), m.left + 8, width - m.right - 8, false), y = scale(lo, hi, height - m.bottom, m.top, false);
      const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": spec.title });
      axes(svg, x, y, width, height, m, "truth", "prediction");
      const ends = [Math.max(x.inverse(m.left + 8), lo), Math.min(x.inverse(width - m.right - 8), hi)];
      svg.append(s("line", { x1: x(ends[0]), y1: y(ends[0]), x2: x(ends[1]), y2: y(ends[1]), stroke: css("--faint"), "stroke-dasharray": "4 5" }));
      for (const [truth, mean, lower, upper] of rows) {
        const colour = css(truth >= lower && truth <= upper ? "--blue" : "--red");
        svg.append(s("line", { x1: x(truth), x2: x(truth), y1: y(lower), y2: y(upper), stroke: colour, "stroke-width": 1.2, opacity: 0.5 }), s("circle", { cx: x(truth), cy: y(mean), r: 2.6, fill: colour }));
      }
      onPoint(svg, (event) => {
        const best = nearest(svg, event, rows, x, y);
        if (!best) return tip.hide();
        tip.show(x(best[0]), y(best[1]), [["truth ", h("b", {}, number(best[0]))], ["predicted ", h("b", {}, number(best[1]))], [`${number(best[2])} to ${number(best[3])}`]]);
      }, () => tip.hide());
      place.replaceChildren(svg);
    });
    return node;
  }
  /** The row whose point is nearest to the pointer, within 30 pixels. */
  function nearest(svg, event, rows, x, y) {
    const box = svg.getBoundingClientRect(), ex = event.clientX - box.left, ey = event.clientY - box.top;
    let best = null, near = 900;
    for (const r of rows) { const d = (x(r[0]) - ex) ** 2 + (y(r[1]) - ey) ** 2; if (d < near) { near = d; best = r; } }
    return best;
  }
  function scatter(spec) {
    const node = h("div", { class: "chart" }), place = h("div"), tip = tipOf(node), rows = spec.rows;
    node.prepend(place);
    keepDrawn(node, (width) => {
      const height = tall(width, 0.46, 240, 380), m = { left: 58, right: 14, top: 30, bottom: 44 };
      const [xs, ys] = [0, 1].map((i) => rows.map((r) => r[i])), far = Math.max(...ys.map(Math.abs)) * 1.06 || 1;
      const x = scale(Math.min(...xs), Math.max(...xs), m.left + 8, width - m.right - 8, false);
      const y = spec.zero ? scale(-far, far, height - m.bottom, m.top, false) : scale(Math.min(...ys), Math.max(...ys), height - m.bottom, m.top, false);
      const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": spec.title });
      axes(svg, x, y, width, height, m, spec.x_label, spec.y_label);
      if (spec.zero) svg.append(s("line", { x1: m.left, x2: width - m.right, y1: y(0), y2: y(0), stroke: css("--red"), "stroke-width": 1.5 }));
      for (const r of rows) svg.append(s("circle", { cx: x(r[0]), cy: y(r[1]), r: 2.2, fill: css("--blue"), opacity: 0.5 }));
      onPoint(svg, (event) => {
        const best = nearest(svg, event, rows, x, y);
        if (!best) return tip.hide();
        tip.show(x(best[0]), y(best[1]), [[`${spec.x_label} `, h("b", {}, number(best[0]))], [`${spec.y_label} `, h("b", {}, number(best[1]))]]);
      }, () => tip.hide());
      place.replaceChildren(svg);
    });
    return node;
  }

  // ---- classes ------------------------------------------------------------------------------------------------------
  /** Rows by class: a square per pair, as dark as its share of the truth's rows; counts where they fit. */
  function confusion(spec) {
    const node = h("div", { class: "chart" }), place = h("div"), tip = tipOf(node), n = spec.classes.length;
    const totals = spec.counts.map((row) => row.reduce((a, b) => a + b, 0));
    const wrong = spec.counts.flatMap((row, t) => row.map((count, p) => ({ count, t, p }))).filter((k) => k.t !== k.p && k.count > 0).sort((a, b) => b.count - a.count);
    const list = wrong.length ? `Most often confused: ${wrong.slice(0, 5).map((k) => `${spec.classes[k.t]} taken for ${spec.classes[k.p]} (${k.count})`).join(", ")}.` : "No row was put into a wrong class.";
    node.append(place, h("p", { class: "note" }, list));
    keepDrawn(node, (width) => {
      const longest = Math.min(14, Math.max(...spec.classes.map((c) => c.length))), label = 14 + 8 * longest;
      const size = clamp((width - label - 4) / n, 6, isOnPaper ? Math.min(64, 460 / n) : 64), side = size * n, height = side + label + 26;
      const every = Math.ceil(13 / size);
      const short = (c) => (c.length > 14 ? `${c.slice(0, 13)}…` : c);
      const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": spec.title });
      const g = s("g", { class: "axis" });
      g.append(s("text", { class: "label", x: label, y: 12 }, "predicted →"), s("text", { class: "label", x: label - 8, y: label + 12, "text-anchor": "end", dy: -2 }, "truth ↓"));
      const top = label + 20;
      spec.classes.forEach((name, i) => {
        if (i % every) return;
        const middle = size * (i + 0.5);
        g.append(s("text", { x: label - 8, y: top + middle + 4, "text-anchor": "end" }, short(name)));
        const turned = longest * 7 > size;
        g.append(turned ? s("text", { transform: `translate(${label + middle + 4} ${top - 6}) rotate(-90)` }, short(name)) : s("text", { x: label + middle, y: top - 8, "text-anchor": "middle" }, short(name)));
      });
      svg.append(g);
      const [blue, red] = [css("--blue"), css("--red")];
      spec.counts.forEach((row, t) => row.forEach((count, p) => {
        const share = count / (totals[t] || 1), place = { x: label + size * p, y: top + size * t };
        svg.append(s("rect", { ...place, width: size - 1, height: size - 1, fill: count === 0 ? css("--cell") : t === p ? blue : red, "fill-opacity": count === 0 ? 1 : 0.12 + 0.88 * share }));
        if (count > 0 && size >= 7.5 * String(count).length + 4) svg.append(s("text", { x: place.x + size / 2, y: place.y + size / 2 + 4, "text-anchor": "middle", "font-size": 11.5, fill: share > 0.5 ? css("--paper") : css("--ink") }, String(count)));
      }));
      onPoint(svg, (event) => {
        const box = svg.getBoundingClientRect(), p = Math.floor((event.clientX - box.left - label) / size), t = Math.floor((event.clientY - box.top - top) / size);
        if (!(p >= 0 && p < n && t >= 0 && t < n)) return tip.hide();
        tip.show(label + size * p, top + size * t, [["truth ", h("b", {}, spec.classes[t])], ["predicted ", h("b", {}, spec.classes[p])], [h("b", {}, String(spec.counts[t][p])), ` of ${totals[t]} rows`]]);
      }, () => tip.hide());
      place.replaceChildren(svg);
    });
    return node;
  }

  // ---- the small ones ---------------------------------------------------------------------------------------------
  function bars(spec) {
    const most = Math.max(...spec.values.map(Math.abs), 1e-300);
    return h("div", { class: "bars" }, ...spec.names.flatMap((name, i) => [
      h("span", { class: "name" }, name),
      h("div", { class: spec.values[i] > (spec.threshold ?? 0) ? "bar" : "bar off", style: `width: ${(100 * Math.abs(spec.values[i])) / most}%` }),
      h("span", { class: "v" }, number(spec.values[i], 3))]));
  }
  function spark(counts) {
    const most = Math.max(...counts, 1), w = 96 / counts.length;
    return s("svg", { class: "spark", viewBox: "0 0 96 26", "aria-hidden": "true" }, ...counts.map((c, i) => s("rect", { x: i * w, y: 26 - (25 * c) / most, width: Math.max(w - 1, 0.8), height: Math.max((25 * c) / most, c ? 1 : 0) })));
  }
  function columns(spec) {
    const head = ["column", "kind", "least", "mean", "greatest", "missing", ""];
    return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...head.map((t, i) => h("th", { class: i > 1 && i < 6 ? "n" : null }, t)))),
      h("tbody", {}, ...spec.columns.map((c) => h("tr", {}, h("td", {}, c.name), h("td", {}, c.kind),
        ...(c.levels ? [h("td", { colspan: 3 }, c.levels)] : [c.min, c.mean, c.max].map((v) => h("td", { class: "n" }, number(v)))),
        h("td", { class: "n" }, String(c.missing)), h("td", {}, spark(c.histogram)))))));
  }
  function table(spec) {
    const numeric = (v) => typeof v === "number";
    return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...spec.head.map((t, i) => h("th", { class: spec.rows.length && numeric(spec.rows[0][i]) ? "n" : null }, t)))),
      h("tbody", {}, ...spec.rows.map((row, i) => h("tr", { class: i === spec.best ? "best" : null }, ...row.map((v) => h("td", { class: numeric(v) ? "n" : null }, numeric(v) ? number(v) : v)))))));
  }
  const facts = (spec) => h("dl", { class: "facts" }, ...spec.items.flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, numberOrText(v))]));
  const numberOrText = (v) => (typeof v === "number" ? number(v, 6) : String(v));
  function figures(spec) {
    return h("div", { class: "figures" }, ...spec.figures.map((f) => {
      const figure = h("figure", {});
      // The drawing comes from our own program, as text in our own data: parsed as SVG, never as HTML.
      const parsed = new DOMParser().parseFromString(f.svg, "image/svg+xml").documentElement;
      figure.append(document.importNode(parsed, true), h("figcaption", {}, f.caption));
      return figure;
    }));
  }
  const repeat = (spec) => h("div", {}, ...spec.commands.map((c) => h("pre", {}, c)), facts(spec));
  const makers = { curve, partition, intervals, scatter, confusion, bars, columns, table, facts, figures, repeat };

  // ---- the page -----------------------------------------------------------------------------------------------------
  const page = document.getElementById("sections"), contents = document.querySelector("nav.contents");
  data.sections.forEach((section, i) => {
    const id = `s${i + 1}`;
    const body = h("div", { class: "body" });
    for (const block of section.blocks) {
      if (block.heading) body.append(h("h3", {}, block.heading));
      body.append(makers[block.type]({ title: section.title, ...block }));
    }
    page.append(h("section", { id }, h("header", {}, h("h2", {}, section.title), ...(section.text || []).map((t) => h("p", {}, t))), body));
    contents.append(h("a", { href: `#${id}` }, section.title));
  });
  theme();
})();
