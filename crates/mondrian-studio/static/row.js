// One row: its inputs to edit, the answer, and the training rows with the largest weights.
import { $, CLASS_COLOURS, attempt, css, h, number, percent, post, swatch } from "./dom.js";

export function rowEditor() {
  let data = null, model = null, lifetime = null, busy = false, again = false, cells = {};

  async function ask() {
    if (!model || !data) return;
    if (busy) { again = true; return; }
    busy = true;
    const answer = await attempt(() => post(`models/${model.id}/row`, { lifetime, cells }));
    busy = false;
    if (answer) show(answer);
    if (again) { again = false; ask(); }
  }

  function show(answer) {
    const kind = model.request.kind, lines = [];
    if (answer.probabilities.length) {
      const order = answer.probabilities.map((p, k) => [p, k]).sort((a, b) => b[0] - a[0]).slice(0, 8);
      lines.push(h("p", { class: "big", text: data.classes[order[0][1]] }));
      lines.push(h("div", { class: "bars" }, order.flatMap(([p, k]) => {
        const bar = h("div", { class: "bar" }, h("b"));
        bar.firstChild.style.width = `${100 * p}%`;
        return [h("span", { class: "name" }, data.classes[k]), bar, h("span", { text: percent(p) }), h("span")];
      })));
    } else if (kind === "density") {
      lines.push(h("p", { class: "big", text: answer.mean === null ? "outside the box" : `log density ${number(answer.mean)}` }));
    } else {
      lines.push(h("p", { class: "big", text: `${number(answer.mean, 5)}` }));
      lines.push(h("p", { class: "soft", text: answer.interval ? `90 % interval from ${number(answer.interval[0])} to ${number(answer.interval[1])}` : "this model has no intervals" }));
    }
    if (answer.outside) lines.push(h("p", { text: "The row is outside the box of the training rows: with increasing distance the prediction approaches the prior." }));
    if (answer.neighbours.length) {
      lines.push(h("h3", { text: "Training rows with the largest weights" }), h("p", { class: "soft", text: `${number(answer.n_neighbours)} rows have weights above a thousandth; all weights sum to ${number(answer.total_weight, 3)}, the rest is the weight of the prior.` }));
      lines.push(h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "training rows by weight" }, h("table", {},
        h("thead", {}, h("tr", {}, ["row", "weight", "target", ...data.features.slice(0, 4)].map((t) => h("th", { class: "n", scope: "col", text: t })))),
        h("tbody", {}, answer.neighbours.map((n) => h("tr", {}, [number(n.row), `${n.weight < 0 ? "−" : ""}${(Math.abs(n.weight) * 100).toFixed(2)} %`, number(n.target), ...n.inputs.slice(0, 4).map((v) => number(v))].map((t) => h("td", { class: "n", text: t })))))))); 
    }
    $("answer").replaceChildren(...lines);
  }

  function build() {
    cells = {};
    $("cells").replaceChildren(...data.inputs.flatMap((input, i) => {
      const id = `cell-${i}`;
      if (input.levels) {
        cells[input.name] = input.levels[0] ?? null;
        return [h("label", { for: id, text: input.name }), h("select", { id, onchange: (e) => { cells[input.name] = e.target.value; ask(); } }, input.levels.map((l) => h("option", { value: l, text: l })))];
      }
      cells[input.name] = input.median;
      const span = input.max - input.min || 1, low = input.min - 0.5 * span, high = input.max + 0.5 * span;
      const box = h("input", { type: "number", id, step: "any", value: Number(input.median.toPrecision(6)) });
      const slide = h("input", { type: "range", min: low, max: high, step: span / 200, value: input.median, "aria-label": `${input.name}, slider` });
      const set = (value) => { if (Number.isFinite(value)) { cells[input.name] = value; ask(); } };
      slide.addEventListener("input", () => { box.value = Number(Number(slide.value).toPrecision(6)); set(Number(slide.value)); });
      box.addEventListener("change", () => { slide.value = box.value; set(Number(box.value)); });
      return [h("label", { for: id, text: input.name }), h("div", { class: "cell" }, slide, box)];
    }));
  }
  $("cells").addEventListener("submit", (event) => event.preventDefault());

  return {
    set(nextData, nextModel) {
      const fresh = nextData !== data;
      data = nextData;
      model = nextModel;
      $("row").hidden = !data || !model;
      if (fresh && data) build();
      ask();
    },
    at(value) { lifetime = value; ask(); },
  };
}

export const classLegend = (classes) => h("span", { class: "legend" }, classes.slice(0, 6).map((c, i) => h("span", {}, swatch(css(CLASS_COLOURS[i % 6])), c)));
