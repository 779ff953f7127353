// Elements, numbers, colours, and requests to the server.

/** An element; `on…` attributes are listeners, `class`, `text` and the rest are what they say. */
export function h(tag, attributes = {}, ...children) {
  const svg = ["svg", "rect", "path"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "text") node.textContent = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return node;
}

export const $ = (id) => document.getElementById(id);
export const clamp = (x, a, b) => Math.min(b, Math.max(a, x));
export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const triple = (name) => css(name).split(",").map(Number);
export const CLASS_COLOURS = ["--blue", "--red", "--yellow", "--soft", "--ink", "--faint"];

/** A number as people read it. */
export function number(x, digits = 4) {
  if (x === null || x === undefined) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (Number.isInteger(x) && size >= 1e4 && size < 1e12) return String(x).replace("-", "−").replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const text = size >= 1e6 || size < 1e-4 ? x.toExponential(2) : String(Number(x.toPrecision(digits)));
  return text.replace("-", "−");
}
export const percent = (x, digits = 1) => (x === null || x === undefined ? "–" : `${(100 * x).toFixed(digits)} %`);

/** What the server refused, with its hint. */
export class Refused extends Error {
  constructor(problem, status) {
    super(problem.hint ? `${problem.message}; ${problem.hint}` : problem.message);
    this.problem = problem;
    this.status = status;
  }
}

async function answered(response) {
  if (response.ok) return response;
  let problem = { message: `the server answered ${response.status}` };
  try { problem = (await response.json()).error || problem; } catch { /* not JSON: the status says enough */ }
  throw new Refused(problem, response.status);
}
async function asked(path, options) {
  try {
    return await answered(await fetch(`api/v1/${path}`, options));
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Refused({ message: "the studio does not answer", hint: "is mondrian studio still running?" }, 0);
  }
}
export const get = async (path) => (await asked(path)).json();
export const post = async (path, body) => (await asked(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body ?? {}) })).json();
export const del = async (path) => (await asked(path, { method: "DELETE" })).json();
export const postForBytes = async (path, body) => (await asked(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })).blob();
export const upload = async (file) => (await asked(`file?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file })).json();

// ---- problems -----------------------------------------------------------------------------------------------------
/** Shows what went wrong until it is closed or the next one comes. */
export function tell(error) {
  const box = $("problem");
  box.replaceChildren(h("p", { text: error.message }), h("button", { type: "button", class: "plain", onclick: () => (box.hidden = true), text: "Close" }));
  box.hidden = false;
}
// The next thing that somebody does takes the last problem away.
addEventListener("click", (event) => { if (event.target.closest("button, .button, input[type=radio]")) $("problem").hidden = true; }, true);

/** Runs something that may be refused. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    tell(error);
    return undefined;
  }
}

// ---- drawing ------------------------------------------------------------------------------------------------------
const redraws = new Set();
export const redrawAll = () => redraws.forEach((draw) => draw());
/** Draws when asked, on a change of width and of theme; at most once per frame. */
export function keepDrawn(node, draw) {
  let pending = false;
  const later = () => {
    if (pending || !node.clientWidth) return;
    pending = true;
    requestAnimationFrame(() => { pending = false; draw(); });
  };
  redraws.add(later);
  new ResizeObserver(later).observe(node);
  return later;
}
/** A canvas of the size it has on the page, in device pixels; its context draws in CSS pixels. */
export function context(canvas) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  const [w, hgt] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== hgt) { canvas.width = w; canvas.height = hgt; }
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { g, width, height };
}
/** Colours from low over mid to high, as many as steps. */
export function ramp(steps = 64) {
  const [low, mid, high] = ["--low", "--mid", "--high"].map(triple);
  const mix = (a, b, t) => `rgb(${a.map((v, i) => Math.round(v + (b[i] - v) * t)).join(",")})`;
  return Array.from({ length: steps }, (_, i) => {
    const t = i / (steps - 1);
    return t < 0.5 ? mix(low, mid, t * 2) : mix(mid, high, t * 2 - 1);
  });
}
export const swatch = (colour) => { const i = h("i"); i.style.background = colour; return i; };
