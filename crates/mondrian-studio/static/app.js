// The studio: one state shared with the server, one lifetime for everything on the page.
import { $, attempt, clamp, get, h, number, percent, post, postForBytes, redrawAll, upload } from "./dom.js";
import { chart, scatter } from "./charts.js";
import { showFile, showTable } from "./table.js";
import { showBoard, showInputs, showKinds } from "./models.js";
import { labelAxes, partition, surface, valueRange } from "./plane.js";
import { classLegend, rowEditor } from "./row.js";
import { streamView } from "./stream.js";

const root = document.documentElement;
const app = { state: null, generation: -1, active: null, model: null, curve: null, plane: null, axes: [0, 1], tree: 0, lifetime: null, view: null };
window.studio = { app, timings: { views: [], frames: [] } };

// ---- theme --------------------------------------------------------------------------------------------------------
const dark = matchMedia("(prefers-color-scheme: dark)");
let chosenTheme = null;
function theme() {
  root.dataset.theme = chosenTheme || (dark.matches ? "dark" : "light");
  redrawAll();
}
dark.addEventListener("change", theme);
$("theme").addEventListener("click", () => { chosenTheme = root.dataset.theme === "dark" ? "light" : "dark"; theme(); });
theme();

// ---- panels -------------------------------------------------------------------------------------------------------
const curve = chart($("curve"), (width) => clamp(width * 0.3, 220, 340), (spec) => `${spec.yLabel} against lifetime, from ${number(spec.x[0])} to ${number(spec.x.at(-1))}; least held out at ${number(app.curve.best)}`);
const residuals = chart($("residuals"), 250, () => "histogram of held-out residuals");
const calibration = chart($("calibration"), 250, () => "nominal against observed");
const tree = partition($("partition"), $("points")), mean = surface($("surface")), dots = scatter($("scatter"));
const editor = rowEditor(), stream = streamView();
window.studio.tree = tree;

// ---- the lifetime -------------------------------------------------------------------------------------------------
const STEPS = 1000, slider = $("lifetime");
const toLifetime = (v) => app.curve.from * (app.curve.to / app.curve.from) ** (v / STEPS);
const toStep = (l) => (l <= app.curve.from ? 0 : clamp(Math.round((STEPS * Math.log(l / app.curve.from)) / Math.log(app.curve.to / app.curve.from)), 0, STEPS));

function setLifetime(value, settled, move = true) {
  app.lifetime = value;
  $("lifetime-out").textContent = number(value, 3);
  slider.setAttribute("aria-valuetext", `lifetime ${number(value, 3)}`);
  if (move) slider.value = toStep(value);
  curve.mark(value);
  tree.at(value);
  note();
  ask(settled);
}
slider.addEventListener("input", () => setLifetime(toLifetime(Number(slider.value)), false, false));
slider.addEventListener("change", () => { ask(true); editor.at(app.lifetime); showTake(); });
slider.addEventListener("keydown", (event) => {
  const step = { PageUp: 50, PageDown: -50 }[event.key];
  if (!step) return;
  event.preventDefault();
  slider.value = Number(slider.value) + step;
  setLifetime(toLifetime(Number(slider.value)), true, false);
});
$("to-best").addEventListener("click", () => { setLifetime(app.curve.best, true); editor.at(app.lifetime); showTake(); });
$("to-1se").addEventListener("click", () => { setLifetime(app.curve.best_1se, true); editor.at(app.lifetime); showTake(); });
let dragging = false;
$("curve").addEventListener("pointerdown", (event) => { if (app.curve && event.target.closest(".u-over")) { dragging = true; drag(event); } });
addEventListener("pointermove", (event) => { if (dragging) drag(event); });
addEventListener("pointerup", () => { if (dragging) { dragging = false; slider.dispatchEvent(new Event("change")); } });
function drag(event) {
  const value = curve.valueAt(event.clientX);
  if (value !== null) setLifetime(clamp(value, app.curve.from, app.curve.to), false);
}

/** Asks for the view at the lifetime in force; while one answer is on its way, only the last wish is kept. */
let asking = false, wish = null;
async function ask(settled) {
  if (!app.model) return;
  wish = { model: app.model.id, lifetime: app.lifetime, settled: settled || (wish?.settled ?? false) };
  if (asking) return;
  asking = true;
  try {
    while (wish) {
      const now = wish;
      wish = null;
      const query = new URLSearchParams({ settled: now.settled });
      if (now.lifetime !== null) query.set("lifetime", now.lifetime);
      if (app.plane) { query.set("x", app.axes[0]); query.set("y", app.axes[1]); }
      const started = performance.now();
      const view = await attempt(() => get(`models/${now.model}/view?${query}`));
      if (view && app.model && now.model === app.model.id) {
        window.studio.timings.views.push({ trip: performance.now() - started, library: view.millis });
        showView(view, now.settled);
      }
    }
  } finally {
    // A view that cannot be drawn must not be the last one that is asked for.
    asking = false;
  }
}

// ---- one view -----------------------------------------------------------------------------------------------------
function figure(label, value) {
  return h("div", {}, h("dt", { text: label }), h("dd", { text: value }));
}
function showView(view, settled) {
  app.view = view;
  const { data } = app.state, s = view.score, judged = data.n_held_out > 0, kind = app.model.request.kind, density = kind === "density", classes = !density && data.task === "classification" ? data.classes : null;
  const figures = [];
  if (app.curve) figures.push(figure("lifetime", number(view.lifetime, 3)));
  const where = data.kinds.length ? "held out" : "on the table";
  if (density) figures.push(...(judged ? [figure(`mean −log density, ${where}`, number(s.log_loss))] : []), figure("on training rows", number(view.train_loss)));
  else if (classes) figures.push(...(judged ? [figure(`wrong, ${where}`, percent(s.error_rate)), figure("log loss", number(s.log_loss, 3))] : [figure("log loss, training", number(view.train_loss))]));
  else if (judged) figures.push(figure(`RMSE, ${where}`, number(s.rmse)), figure("R²", s.r2 === null ? "–" : s.r2.toFixed(4)), figure("coverage of 90 %", percent(s.coverage)));
  if (!density && !classes && view.train_loss !== null) figures.push(figure("RMSE, training", number(view.train_loss)));
  figures.push(figure("answered in", `${view.millis.toFixed(0)} ms`));
  $("figures").replaceChildren(...figures);

  $("p-scatter").hidden = density || !!classes || !judged;
  $("p-residuals").hidden = density || !!classes || !judged;
  // A view while the slider moves may have no deviations: the panel stays as it is until the slider rests.
  if (settled || view.calibration.length || density) $("p-calibration").hidden = density || !view.calibration.length;
  if (!density && !classes && judged) {
    const observed = data.observed.filter((_, i) => i % view.every === 0);
    dots.set({ predicted: view.predicted, observed, std: view.std, interval: view.interval }, `predicted against observed for ${view.predicted.length} held-out rows, RMSE ${number(s.rmse)}`);
    $("scatter-note").textContent = `${number(view.predicted.length)} held-out rows${view.std.length ? ", each with its 90 % interval" : ""}`;
    showResiduals(view.predicted.map((p, i) => observed[i] - p));
  }
  if (view.calibration.length) {
    $("calibration-h").textContent = classes ? "Reliability" : "Calibration of intervals";
    const x = view.calibration.map((c) => c[0]), y = view.calibration.map((c) => c[1]);
    calibration.set({
      x, xLabel: classes ? "probability of the predicted class" : "interval meant to hold", yLabel: classes ? "share right" : "share held", xRange: [0, 1], yRange: [0, 1], keep: true,
      series: [{ label: "observed", colour: "--blue", y, points: true }, { label: "ideal", colour: "--soft", y: x, dash: [4, 5], width: 1.2 }],
    });
  }
  if (view.surface && app.plane) {
    const range = density ? valueRange(view.surface.values) : tree.range();
    mean.set(view.surface, { classes, density, range }, density ? "log density with contours in the plane" : classes ? "most probable class in the plane" : "predicted mean in the plane");
  }
}
function showResiduals(all) {
  if (!all.length) return;
  const spread = Math.max(...all.map(Math.abs)) || 1, bins = 31, counts = new Array(bins).fill(0);
  for (const r of all) counts[clamp(Math.floor(((r / spread + 1) / 2) * bins), 0, bins - 1)] += 1;
  residuals.set({
    x: counts.map((_, i) => ((2 * (i + 0.5)) / bins - 1) * spread), xLabel: "observed − predicted", yLabel: "rows", legend: false, keep: true,
    series: [{ label: "rows", colour: "--blue", y: counts, bars: true, width: 0 }],
  });
}
function note() {
  if (!app.plane) return;
  const beyond = app.lifetime > app.plane.complete_to;
  requestAnimationFrame(() => { $("tree-note").textContent = beyond ? `The picture ends at lifetime ${number(app.plane.complete_to, 3)}, about 5000 cells; the forest has larger lifetimes.` : `${number(tree.stats.cells)} cells. A longer lifetime only refines the cells.`; });
  $("partition").setAttribute("aria-label", `partition of tree ${app.tree + 1} in the plane of ${app.plane.x.name} and ${app.plane.y.name}`);
}

// ---- a model ------------------------------------------------------------------------------------------------------
async function activate(id) {
  const model = app.state.models.find((m) => m.id === id);
  if (!model || model.status !== "ready") return;
  const { data } = app.state, { generation } = app;
  const found = await attempt(() => get(`models/${id}/curve`));
  // Another table or model file may have been opened while the answer was on its way.
  if (found === undefined || generation !== app.generation) return;
  const replaced = () => generation !== app.generation || app.active !== id;
  app.active = id;
  app.model = model;
  app.curve = found;
  showBoard(app.state, app.active, activate);
  $("life").hidden = false;
  $("p-curve").hidden = !found;
  $("slider").hidden = !found;
  $("life-h").textContent = found ? "The lifetime" : "The model";
  $("life-text").textContent = found
    ? `One ${model.file ? "file" : "fit"} of the ${model.request.kind} has every lifetime. Drag the slider or the curve: everything below is computed from that one fit, without refitting.`
    : `The ${model.request.kind} model has one lifetime per input, shown below, and no common lifetime to drag.`;
  app.lifetime = found ? found.best : null;
  if (found) {
    curve.set({
      x: found.lifetimes.map((l) => Math.max(l, found.from)), logX: true, xLabel: "lifetime λ", xShort: "λ", yLabel: { rmse: "RMSE", log_loss: "log loss", neg_log_density: "−log density" }[found.loss] || found.loss,
      series: [...(found.held_out.length ? [{ label: data.kinds.length ? "held out" : "table", colour: "--blue", y: found.held_out, steps: true }] : []), { label: "training", colour: "--soft", y: found.train, steps: true, width: 1.4, dash: [4, 4] }],
    });
  }
  await preparePlane();
  if (replaced()) return;
  if (found) setLifetime(found.best, true);
  else ask(true);
  editor.set(data, model);
  editor.at(app.lifetime);
  showTake();
  contents();
  showInputs(model, null);
  const relevance = await attempt(() => get(`models/${id}/inputs`));
  if (!replaced() && relevance) {
    showInputs(model, relevance);
    contents();
    // A categorical column is several dimensions of a plane, or none.
    const order = relevance.relevance.map((r, i) => [r, data.features.indexOf(relevance.names[i])]).filter(([, i]) => data.axes.includes(i)).sort((a, b) => b[0] - a[0]).map(([, i]) => i);
    if (app.fresh && order.length > 1) {
      app.fresh = false;
      app.axes = [order[0], order[1]];
      await preparePlane();
      if (replaced()) return;
      if (app.curve) setLifetime(app.lifetime, true);
      else ask(true);
    }
  }
}

async function preparePlane() {
  const { data } = app.state, flat = data.axes.length > 1;
  $("p-tree").hidden = !flat || !app.curve;
  $("p-surface").hidden = !flat;
  if (!flat) { app.plane = null; return; }
  const { model, generation } = app;
  const plane = await attempt(() => get(`models/${model.id}/plane?x=${app.axes[0]}&y=${app.axes[1]}&tree=${app.tree}`));
  if (!plane || generation !== app.generation || model !== app.model) return;
  app.plane = plane;
  const density = app.model.request.kind === "density", classes = !density && data.task === "classification" ? data.classes : null;
  tree.set(plane, { classes, density });
  labelAxes("x", plane);
  labelAxes("sx", plane);
  const select = (label, which) => h("label", {}, label, h("select", { "aria-label": `${label} input`, onchange: (e) => pick(which, Number(e.target.value)) }, data.axes.map((i) => h("option", { value: i, text: data.features[i], selected: app.axes[which] === i, disabled: app.axes[1 - which] === i }))));
  const points = h("button", { type: "button", class: "plain", "aria-pressed": "true", text: "rows" });
  points.addEventListener("click", () => { const on = points.getAttribute("aria-pressed") !== "true"; points.setAttribute("aria-pressed", on); tree.points(on); });
  const number_ = h("input", { type: "number", min: 1, max: 10000, value: app.tree + 1, "aria-label": "tree", onchange: (e) => { app.tree = Math.max(0, Number(e.target.value) - 1); preparePlane().then(() => setLifetime(app.lifetime, true)); } });
  $("plane-tools").replaceChildren(select("across", 0), select("up", 1), h("label", {}, "tree", number_), points);
  const [lo, hi] = tree.range();
  $("surface-tools").replaceChildren(classes ? classLegend(classes) : density ? h("span", { class: "soft", text: "seven contours of the log density" }) : h("span", { class: "ramp" }, number(lo, 3), h("i"), `${number(hi, 3)} ${data.choice.target}`), ...(app.curve ? [] : [select("across", 0), select("up", 1)]));
  $("surface-h").textContent = density ? "All trees: the density" : classes ? "All trees: the classes" : app.curve ? "All trees: the mean" : "The mean";
  $("surface-note").textContent = data.features.length > 2 ? "All other inputs at their medians." : "";
  prepareStream();
}
/** The stream's tree, in the plane that is looked at; it needs no model. */
let streamed = "";
async function prepareStream() {
  const { data } = app.state, able = !!(data && data.task && data.kinds.length);
  $("stream").hidden = !able;
  const now = able ? `${app.generation} ${app.axes}` : "";
  if (now === streamed) return;
  streamed = now;
  $("growing").parentElement.hidden = !able || data.axes.length < 2;
  if (!able || data.axes.length < 2) return;
  const plane = await attempt(() => get(`stream/plane?x=${app.axes[0]}&y=${app.axes[1]}`));
  if (plane && now === streamed) stream.plane(plane, data);
}
async function pick(which, feature) {
  app.axes[which] = feature;
  await preparePlane();
  if (app.curve) setLifetime(app.lifetime, true);
  else ask(true);
}

// ---- take it away -------------------------------------------------------------------------------------------------
const recipe = () => ({ kind: app.model.request.kind, lifetime: app.lifetime, lifetimes: app.model.request.lifetimes, trees: app.model.request.trees, seed: app.model.request.seed });
async function showTake() {
  $("take").hidden = !app.model;
  $("take-note").textContent = "";
  if (!app.model) return;
  const { file } = app.model;
  for (const id of ["take-model", "take-report"]) $(id).hidden = !!file;
  if (file) {
    $("take-text").textContent = "This code predicts with the file.";
    $("command").textContent = `mondrian predict ${/^[\w.-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`} new.csv`;
    $("python").textContent = `import mondrian\nimport pandas\n\nmodel = mondrian.load(${JSON.stringify(file)})\ntable = pandas.read_csv("new.csv")\nprint(model.predict(table[list(model.feature_names_in_)]))`;
    return;
  }
  const found = await attempt(() => post("take/lines", recipe()));
  if (!found) return;
  $("take-text").textContent = app.curve ? `The ${app.model.request.kind} at lifetime ${number(app.lifetime, 3)}, fitted on all rows: identical, byte for byte, to the file written by the command below.` : `The ${app.model.request.kind} model, ${app.model.request.lifetimes ? "with changed lifetimes" : "tuned"} and fitted on all rows: identical, byte for byte, to the file written by the command below.`;
  $("command").textContent = found.command;
  $("python").textContent = found.python;
  $("take-report").hidden = app.model.request.kind === "grid";
}
async function take(path, name, button) {
  button.disabled = true;
  $("take-note").textContent = "fitting on all rows …";
  const blob = await attempt(() => postForBytes(path, recipe()));
  button.disabled = false;
  $("take-note").textContent = blob ? `${name}: ${number(Math.round(blob.size / 1000))} kB` : "";
  if (!blob) return;
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
$("take-model").addEventListener("click", (e) => take("take/model", "model.mondrian", e.target));
$("take-report").addEventListener("click", (e) => take("take/report", "report.html", e.target));

// ---- the table ----------------------------------------------------------------------------------------------------
async function send(file) {
  if (app.state && file.size > app.state.max_upload) { $("upload").textContent = `larger than ${app.state.max_upload / 1e6} MB: open it from the command line`; return; }
  $("upload").textContent = `reading ${file.name} …`;
  await attempt(() => upload(file));
  $("upload").textContent = "";
}
$("file").addEventListener("change", (event) => { if (event.target.files[0]) send(event.target.files[0]); event.target.value = ""; });
$("tour").addEventListener("click", () => attempt(() => post("tour")));
const drop = $("drop");
for (const kind of ["dragenter", "dragover"]) addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
for (const kind of ["dragleave", "drop"]) addEventListener(kind, (event) => { event.preventDefault(); drop.classList.remove("over"); });
addEventListener("drop", (event) => { const file = event.dataTransfer?.files[0]; if (file) send(file); });

// ---- state --------------------------------------------------------------------------------------------------------
function contents() {
  const sections = [...document.querySelectorAll("main > section")].filter((s) => !s.hidden);
  $("contents").replaceChildren(...(sections.length > 1 ? sections.map((s) => h("a", { href: `#${s.id}`, text: s.querySelector("h2").textContent })) : []));
}
/** The first two inputs that a plane can be cut along. */
const firstAxes = (data) => (data && data.axes.length > 1 ? data.axes.slice(0, 2) : [0, 1]);
let turn = 0;
/** Models as events told of them since the last question for the state: its answer may have been written before. */
const told = new Map();
async function refresh() {
  const mine = ++turn;
  told.clear();
  const state = await attempt(() => get("state"));
  // A later question will have the newer answer.
  if (!state || mine !== turn) return;
  state.models = state.models.map((model) => told.get(model.id) ?? model);
  const fresh = state.generation !== app.generation;
  app.state = state;
  app.generation = state.generation;
  $("title").textContent = state.file ? state.file.name : state.table ? state.table.name.split(/[\\/]/).at(-1) : "One fit, every lifetime";
  drop.classList.toggle("small", !!(state.table || state.file));
  if (fresh) {
    $("problem").hidden = true;
    Object.assign(app, { active: null, model: null, curve: null, plane: null, axes: [0, 1], tree: 0, fresh: true, lifetime: null });
    for (const id of ["life", "inputs", "row", "take", "slider"]) $(id).hidden = true;
    app.axes = firstAxes(state.data);
    showFile(state);
    showTable(state, () => {});
    showKinds(state);
    stream.reset(state.data);
    prepareStream();
  }
  $("models").hidden = !state.data;
  if (app.active !== null && !state.models.some((m) => m.id === app.active)) { app.active = null; app.model = null; for (const id of ["life", "inputs", "row", "take", "slider"]) $(id).hidden = true; }
  showBoard(state, app.active, activate);
  contents();
  const ready = state.models.find((m) => m.status === "ready");
  if (app.active === null && ready) { await activate(ready.id); contents(); }
}
function listen() {
  const source = new EventSource("api/v1/events");
  source.addEventListener("state", refresh);
  source.addEventListener("model", (event) => {
    const info = JSON.parse(event.data), at = app.state?.models.findIndex((m) => m.id === info.id);
    told.set(info.id, info);
    if (at === undefined || at < 0) return;
    app.state.models[at] = info;
    showBoard(app.state, app.active, activate);
    if (info.status === "ready" && app.active === null) refresh();
  });
  source.addEventListener("stream", (event) => stream.show(JSON.parse(event.data)));
  source.addEventListener("open", refresh);
}
listen();
refresh();
