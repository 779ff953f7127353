// The stream: rows into a forest, the error as it falls, the tree as it grows.
import { $, attempt, number, percent, post } from "./dom.js";
import { chart } from "./charts.js";
import { partition } from "./plane.js";

export function streamView() {
  const errors = chart($("stream-curve"), 280, (spec) => `test-then-train error over ${spec.x.length} steps, now ${number(spec.series[0].y.at(-1) ?? null)}`);
  const tree = partition($("growing"), null);
  let info = null, data = null, stride = 1, forgotten = 0;

  function show(next) {
    info = next;
    const classes = data?.task === "classification";
    $("play").textContent = info.playing ? "Pause" : info.seen && info.seen < info.of ? "Continue" : "Play";
    $("play").setAttribute("aria-pressed", info.playing);
    $("stream-panels").hidden = !info.seen;
    const error = info.error.at(-1);
    $("stream-note").textContent = info.problem ? info.problem.message : info.seen ? `${number(info.seen)} of ${number(info.of)} rows; ${classes ? `wrong ${percent(error)}` : `RMSE ${number(error)}`}${info.forgotten.length ? `; ${info.forgotten.length} forgotten` : ""}` : "";
    if (info.at.length > 1) {
      // The first rows are judged by no model at all.
      const from = Math.min(5, info.at.length - 2);
      errors.set({
        keep: true, x: info.at.slice(from), xLabel: "rows learned", yLabel: classes ? "share wrong" : "RMSE",
        series: [{ label: "forest", colour: "--red", y: info.error.slice(from) }, { label: classes ? "most frequent class" : "mean so far", colour: "--soft", y: info.baseline.slice(from), dash: [4, 5], width: 1.4 }],
      });
    }
    if (info.forgotten.length !== forgotten) {
      forgotten = info.forgotten.length;
      tree.forget(info.forgotten.filter((position) => position % stride === 0).map((position) => position / stride));
    }
    tree.seen(Math.ceil(info.seen / stride));
  }
  const act = async (path, body) => {
    const next = await attempt(() => post(path, body));
    if (next) show(next);
  };
  $("play").addEventListener("click", () => act(info?.playing ? "stream/pause" : "stream/play", { restart: info ? info.seen >= info.of : false }));
  $("restart").addEventListener("click", () => act("stream/play", { restart: true }));
  $("forget").addEventListener("click", () => act("stream/forget", { position: Number($("forget-row").value) - 1 }));
  $("growing").addEventListener("click", (event) => {
    const row = tree.nearest(event);
    if (row !== null) act("stream/forget", { position: row * stride });
  });
  return {
    show,
    /** The plane that the tree is drawn in. */
    plane(next, nextData) {
      data = nextData;
      stride = Math.max(1, Math.ceil(data.n_train / 2000));
      tree.set(next, { classes: data.task === "classification" ? data.classes : null });
      tree.at(Infinity);
      tree.seen(info ? Math.ceil(info.seen / stride) : 0);
    },
    reset(nextData) {
      data = nextData;
      info = null;
      errors.clear();
      $("stream-panels").hidden = true;
      $("stream-note").textContent = "";
      $("play").textContent = "Play";
    },
  };
}
