// Curves by uPlot, and the scatter of predicted against observed.
import { clamp, context, css, h, keepDrawn, number } from "./dom.js";

const FONT = '12px ui-sans-serif, system-ui, "Segoe UI", Arial, sans-serif';
const axis = (label, log) => ({
  label, labelFont: FONT, font: FONT, labelSize: 22, size: label ? 46 : 34,
  stroke: () => css("--soft"), grid: { stroke: () => css("--grid"), width: 1 }, ticks: { stroke: () => css("--grid") },
  values: (_, ticks) => ticks.map((t) => (t === null || (log && Math.abs(Math.log10(t) % 1) > 1e-6) ? "" : number(t, 3))),
});

/**
 * A curve chart that is made anew when its data change and keeps its size. `spec()` gives
 * { x, series: [{ label, colour, y, dash, steps, bars, points }], xLabel, yLabel, logX, yRange, mark }; with `keep`, other values under
 * the same labels are drawn into the chart that is there.
 */
export function chart(node, height, describe) {
  let plot = null, spec = null, mark = null;
  node.setAttribute("role", "img");
  node.setAttribute("aria-label", "a chart without values yet");
  const draw = () => {
    if (!spec) return;
    plot?.destroy();
    const width = node.clientWidth;
    const options = {
      width, height: typeof height === "function" ? height(width) : height,
      cursor: { drag: { x: false, y: false }, points: { size: 7 }, y: false },
      legend: { show: spec.series.length > 1 || !!spec.legend, live: true },
      scales: { x: { time: false, distr: spec.logX ? 3 : 1, range: spec.xRange ? () => spec.xRange : undefined }, y: spec.yRange ? { range: () => spec.yRange } : {} },
      axes: [axis(spec.xLabel, spec.logX), { ...axis(spec.yLabel), size: 58 }],
      series: [{ label: spec.xShort || spec.xLabel, value: (_, v) => number(v, 3) }, ...spec.series.map((one) => ({
        label: one.label, stroke: () => css(one.colour), width: one.width ?? 2, dash: one.dash,
        fill: one.bars ? () => css(one.colour) : undefined,
        paths: one.bars ? uPlot.paths.bars({ size: [0.9, 60] }) : one.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
        points: { show: !!one.points, size: 7, fill: () => css(one.colour) },
        value: (_, v) => number(v, 4),
      }))],
      hooks: { draw: [drawMark] },
    };
    plot = new uPlot(options, [spec.x, ...spec.series.map((one) => one.y)], node);
  };
  function drawMark(u) {
    if (mark === null) return;
    const p = Math.round(u.valToPos(clamp(mark, u.scales.x.min, u.scales.x.max), "x", true));
    const { ctx, bbox } = u;
    ctx.save();
    ctx.setLineDash([]);
    ctx.strokeStyle = css("--red");
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(p, bbox.top);
    ctx.lineTo(p, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  }
  const redraw = keepDrawn(node, draw);
  return {
    set(next) {
      const same = spec && plot && next.keep && spec.series.length === next.series.length && spec.xLabel === next.xLabel && spec.yLabel === next.yLabel && plot.width === node.clientWidth;
      spec = next;
      node.setAttribute("aria-label", describe(next));
      if (same) plot.setData([spec.x, ...spec.series.map((one) => one.y)]);
      else redraw();
    },
    /** A vertical line at x, without making the chart anew. */
    mark(x) {
      mark = x;
      plot?.redraw(false, false);
    },
    /** Where on the x scale a pointer is. */
    valueAt(clientX) {
      if (!plot) return null;
      const box = plot.over.getBoundingClientRect();
      return plot.posToVal(clamp(clientX - box.left, 0, box.width), "x");
    },
    clear() { spec = null; plot?.destroy(); plot = null; },
  };
}

/** Held-out rows: the prediction across, what was observed up, the interval as a faint line. */
export function scatter(canvas) {
  let data = null;
  const draw = () => {
    const { g, width, height } = context(canvas);
    g.clearRect(0, 0, width, height);
    if (!data || !data.predicted.length) return;
    const { predicted, observed, std, interval, highlight } = data;
    let lo = Infinity, hi = -Infinity;
    for (const v of [...observed, ...predicted]) { if (v < lo) lo = v; if (v > hi) hi = v; }
    const pad = (hi - lo) * 0.05 || 1;
    lo -= pad; hi += pad;
    const m = { left: 52, right: 8, top: 8, bottom: 40 };
    const x = (v) => m.left + ((v - lo) / (hi - lo)) * (width - m.left - m.right);
    const y = (v) => height - m.bottom - ((v - lo) / (hi - lo)) * (height - m.top - m.bottom);
    g.font = FONT;
    g.fillStyle = css("--soft");
    g.strokeStyle = css("--grid");
    g.lineWidth = 1;
    const rough = (hi - lo) / 5, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough);
    for (let t = Math.ceil(lo / step) * step; t <= hi; t += step) {
      g.beginPath(); g.moveTo(m.left, y(t)); g.lineTo(width - m.right, y(t)); g.moveTo(x(t), m.top); g.lineTo(x(t), height - m.bottom); g.stroke();
      g.textAlign = "right"; g.fillText(number(t, 3), m.left - 6, y(t) + 4);
      g.textAlign = "center"; g.fillText(number(t, 3), x(t), height - m.bottom + 16);
    }
    g.textAlign = "right"; g.fillText("predicted", width - m.right, height - 6);
    g.textAlign = "left"; g.fillText("observed", m.left + 6, m.top + 12);
    const ends = interval.length ? interval : predicted.slice(0, std.length).map((p, i) => [p - 1.645 * std[i], p + 1.645 * std[i]]);
    if (ends.length) {
      g.strokeStyle = css("--hair");
      g.beginPath();
      ends.forEach(([lower, upper], i) => { const at = x(predicted[i]); g.moveTo(at, y(clamp(lower, lo, hi))); g.lineTo(at, y(clamp(upper, lo, hi))); });
      g.stroke();
    }
    g.strokeStyle = css("--ink");
    g.beginPath(); g.moveTo(x(lo), y(lo)); g.lineTo(x(hi), y(hi)); g.stroke();
    g.fillStyle = css("--blue");
    g.globalAlpha = 0.65;
    const size = predicted.length > 400 ? 3 : 4;
    predicted.forEach((p, i) => g.fillRect(x(p) - size / 2, y(observed[i]) - size / 2, size, size));
    g.globalAlpha = 1;
    if (highlight != null) { g.fillStyle = css("--red"); g.fillRect(x(predicted[highlight]) - 4, y(observed[highlight]) - 4, 8, 8); }
  };
  const redraw = keepDrawn(canvas, draw);
  return { set(next, words) { data = next; canvas.setAttribute("aria-label", words); redraw(); } };
}

/** A histogram as a small picture. */
export function spark(counts) {
  const top = Math.max(1, ...counts);
  return h("svg", { class: "spark", viewBox: `0 0 ${counts.length * 4} 26`, preserveAspectRatio: "none", "aria-hidden": "true" },
    counts.map((n, i) => h("rect", { x: i * 4, width: 3.4, y: 26 - (25 * n) / top - (n ? 1 : 0), height: (25 * n) / top + (n ? 1 : 0) })));
}
