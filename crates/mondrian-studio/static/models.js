// The models: what can be fitted, how far each is, and how they compare.
import { $, attempt, del, h, number, percent, post } from "./dom.js";

const WORDS = {
  laplace: "The Laplace kernel with tuned lifetimes and a learned metric, for numbers and classes. Usually the most accurate.",
  forest: "A Mondrian forest: learns online, gives uncertainties, and has views at every lifetime.",
  kernel: "Ridge regression on Mondrian features, solved at every cut of the path.",
  grid: "Ridge regression on a Mondrian grid, one searched lifetime per input.",
  density: "A density: likelihoods of rows; needs no target.",
};

export function showKinds(state) {
  const kinds = state.data ? state.data.kinds : [];
  $("kinds").hidden = !kinds.length;
  $("models-text").textContent = kinds.length ? "A quarter of the rows is held out; every model is fitted to the rest and evaluated on that quarter."
    : state.table ? "The model of the file, evaluated on all rows of the table." : "The model of the file; open a table to evaluate it.";
  $("kinds").replaceChildren(...kinds.map((kind) => h("article", {},
    h("h3", { text: kind }), h("p", { class: "soft", text: WORDS[kind] }),
    h("button", { type: "button", "data-fit": kind, onclick: () => attempt(() => post("models", { kind })), text: `Fit ${kind}` }))));
}

/** The error that models of a task are ordered by. */
function error(model, task) {
  const s = model.score;
  if (!s) return Infinity;
  return (model.request.kind === "density" ? Infinity : task === "classification" ? s.log_loss : s.rmse) ?? Infinity;
}

/** Progress alone changes no row: a button that is replaced while it is pressed would lose the click. */
function showProgress(table, models) {
  for (const model of models) {
    const row = table.querySelector(`tr[data-model="${model.id}"]`), bar = row.querySelector("progress");
    if (bar) bar.value = model.progress;
    if (bar) row.querySelector(".stage").textContent = ` ${model.stage} `;
    row.querySelector(".seconds").textContent = `${model.seconds.toFixed(1)} s`;
  }
}

export function showBoard(state, active, activate) {
  const { models, data } = state, task = data?.task;
  const table = $("board");
  const shape = JSON.stringify([task, active, models.map((m) => [m.id, m.status, m.file, m.score, m.problem])]);
  if (models.length && table.dataset.shape === shape) { showProgress(table, models); return; }
  table.dataset.shape = shape;
  if (!models.length) { table.replaceChildren(); return; }
  const ordered = [...models].sort((a, b) => error(a, task) - error(b, task) || a.id - b.id);
  const best = ordered.find((m) => Number.isFinite(error(m, task)));
  const classes = task === "classification";
  const head = ["model", "", classes ? "log loss" : "RMSE", classes ? "wrong" : "R²", classes ? "" : "log loss", "coverage of 90 %", "fit", "per row", ""];
  const rows = ordered.map((model) => {
    const s = model.score || {}, name = model.file ?? (model.request.lifetimes ? `${model.request.kind}, moved` : model.request.kind);
    const status = {
      running: () => [h("progress", { max: 1, value: model.progress, "aria-label": `progress of ${name}` }), h("span", { class: "stage", text: ` ${model.stage} ` }), h("button", { class: "link", type: "button", onclick: () => attempt(() => post(`models/${model.id}/cancel`)), text: "cancel", "aria-label": `cancel ${name}` })],
      ready: () => [h("label", {}, h("input", { type: "radio", name: "active", value: model.id, checked: model.id === active, onchange: () => activate(model.id) }), " shown", h("span", { class: "soft", text: "" }))],
      cancelled: () => ["cancelled"],
      failed: () => [h("span", { text: model.problem ? model.problem.message : "failed" })],
    }[model.status]();
    const density = model.request.kind === "density";
    const cell = (text) => h("td", { class: "n", text });
    return h("tr", { class: model === best && models.length > 1 ? "best" : null, "data-model": model.id, "data-status": model.status },
      h("td", { class: "name", text: name }), h("td", {}, status),
      cell(classes ? number(s.log_loss) : number(s.rmse)),
      cell(classes ? percent(s.error_rate) : s.r2 === null || s.r2 === undefined ? "–" : s.r2.toFixed(3)),
      cell(classes ? "" : density ? number(s.log_loss, 3) : number(s.log_loss, 3)),
      cell(percent(s.coverage)),
      h("td", { class: "n seconds", text: `${model.seconds.toFixed(1)} s` }),
      cell(!model.score ? "" : s.predict_micros ? `${number(s.predict_micros, 2)} µs` : "–"),
      h("td", { class: "n" }, h("button", { class: "link", type: "button", "aria-label": `remove ${name}`, onclick: () => attempt(() => del(`models/${model.id}`)), text: "remove" })));
  });
  // The focused control survives the new rows.
  const focused = document.activeElement, label = table.contains(focused) ? focused.getAttribute("aria-label") || focused.value : null;
  table.replaceChildren(h("thead", {}, h("tr", {}, head.map((t, i) => (t ? h("th", { class: i > 1 ? "n" : null, scope: "col", text: t }) : h("td", {}))))), h("tbody", {}, rows));
  if (label !== null) [...table.querySelectorAll("button, input")].find((n) => (n.getAttribute("aria-label") || n.value) === label)?.focus();
}

/** Relevance of the inputs, and their lifetimes with what moving one would do. */
export function showInputs(model, inputs) {
  const section = $("inputs"), place = $("bars");
  section.hidden = !inputs || !(inputs.relevance.length || inputs.lifetimes.length);
  if (section.hidden) return;
  const tuned = inputs.lifetimes.length > 0;
  $("inputs-text").textContent = tuned
    ? "One lifetime per input: its roughness, how fast the target changes along it. Next to its name is its relevance, and next to the bar the held-out error if the lifetime were halved or doubled and nothing else changed, computed with lifetimes only on a sample of the rows. Move a bar and fit: the model with those lifetimes is added to the comparison."
    : model.request.kind === "laplace" ? "The increase of the error when an input is permuted."
    : "The share of error that the cuts of each input remove, over all trees.";
  const order = inputs.names.map((_, i) => i).sort((a, b) => inputs.relevance[b] - inputs.relevance[a]).slice(0, 24);
  const top = Math.max(...inputs.relevance, 1e-12), longest = Math.max(...inputs.lifetimes, 1e-6);
  const moved = [...inputs.lifetimes], total = inputs.relevance.reduce((sum, r) => sum + Math.max(r, 0), 0) || 1;
  const change = (value) => {
    if (value === null || value === undefined) return "–";
    const share = value / inputs.error - 1;
    return h("span", { class: share < -0.001 ? "better" : null, text: `${share > 0 ? "+" : share < 0 ? "−" : ""}${(100 * Math.abs(share)).toFixed(1)} %` });
  };
  const cells = order.flatMap((d) => {
    const name = h("span", { class: "name" }, inputs.names[d], ...(tuned ? [h("span", { class: "soft", text: ` ${percent(inputs.relevance[d] / total)}` })] : []));
    const bar = h("div", { class: "bar" }, h("b"));
    bar.firstChild.style.width = `${(100 * inputs.relevance[d]) / top}%`;
    if (!tuned) return [name, bar, h("span", { class: "n", text: percent(inputs.relevance[d]) }), h("span")];
    const out = h("output", { text: number(inputs.lifetimes[d], 3) });
    const to = (v) => (v <= 0 ? 0 : longest * 4 * 10 ** (4 * (v / 400 - 1)));
    const from = (l) => (l <= 0 ? 0 : Math.max(0, 400 * (1 + Math.log10(l / (longest * 4)) / 4)));
    const slide = h("input", { class: "slide", type: "range", min: 0, max: 400, step: 1, value: from(inputs.lifetimes[d]), "aria-label": `lifetime of ${inputs.names[d]}`, "aria-valuetext": number(inputs.lifetimes[d], 3) });
    slide.addEventListener("input", () => { moved[d] = to(Number(slide.value)); out.textContent = number(moved[d], 3); slide.setAttribute("aria-valuetext", number(moved[d], 3)); refit.disabled = false; });
    return [name, slide, out, h("span", { class: "what" }, "½ ", change(inputs.halved[d]), " · 2× ", change(inputs.doubled[d]))];
  });
  const refit = h("button", { type: "button", id: "refit", disabled: true, onclick: () => attempt(() => post("models", { kind: model.request.kind, lifetimes: moved })), text: "Fit with these lifetimes" });
  place.replaceChildren(h("div", { class: "bars" }, ["input", tuned ? "lifetime" : "relevance", "", tuned ? "error if moved" : ""].map((t) => h("span", { class: "head", text: t })), cells),
    ...(tuned ? [h("p", { class: "tools" }, refit, h("span", { class: "soft", text: `held-out error now, on the sample: ${number(inputs.error)}` }))] : []));
}
