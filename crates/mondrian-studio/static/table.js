// The table: how it is understood, which column is the target, what to do with the others.
import { $, attempt, del, h, number, post } from "./dom.js";
import { spark } from "./charts.js";

/** The target that a stranger most likely means: the last column without a problem. */
function likelyTarget(table) {
  const fine = table.columns.filter((c) => !c.problem);
  return fine.length > 1 ? fine[fine.length - 1].name : null;
}

/** A model file: what it says of itself, and what a table besides would add. */
export function showFile({ file, table, models }) {
  if (!file) { $("model-file").replaceChildren(); return; }
  const facts = [["model", file.kind], ["predicts", file.target ?? "how likely rows are"], ["learned", `${number(file.rows)} rows`], ["from", file.fitted_on.split(/[\\/]/).at(-1)], ...file.facts];
  const own = table && table.rows === file.rows && table.name.split(/[\\/]/).at(-1) === file.fitted_on.split(/[\\/]/).at(-1);
  const close = () => { const model = models.find((m) => m.file); if (model) attempt(() => del(`models/${model.id}`)); };
  $("model-file").replaceChildren(
    h("h3", { text: file.name }),
    h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", { text: name }), h("dd", { text: value })))),
    h("p", { class: own ? "warning" : "soft", text: !table ? "Without a table the page shows lifetimes, trees, the surface and predictions of single rows. Drop a table with the same columns and the target to evaluate the model." : own ? "The table has the name and the number of rows of the table that the model was fitted on: these errors are training errors." : `Evaluated on all rows of ${table.name}.` }),
    h("p", { class: "tools" }, h("button", { type: "button", class: "plain", id: "close-file", onclick: close, text: "Close the model" })));
}

export function showTable(state, chosen) {
  const { table, data } = state, choice = state.file ? null : data?.choice;
  const place = $("table");
  if (!table) { place.replaceChildren(); return; }
  const target = choice ? choice.target : state.file?.target ?? likelyTarget(table);
  const missing = table.columns.some((c) => c.missing > 0);
  const rows = table.columns.flatMap((column, i) => {
    const left = choice ? choice.exclude.includes(column.name) : !!column.problem;
    const role = left ? "out" : choice?.categorical.includes(column.name) ? "category" : "input";
    const label = `use of column ${column.name}`;
    const cells = h("tr", { class: column.problem ? "bad" : null },
      h("td", { class: "name", text: column.name }),
      h("td", { text: column.is_category ? `${column.n_levels} categories` : column.few_values ? `${column.few_values} whole numbers` : "numbers" }),
      h("td", { class: "hide-small", text: column.is_category ? column.levels.map(([l]) => l).slice(0, 4).join(", ") + (column.n_levels > 4 ? " …" : "") : column.problem ? "" : `${number(column.min)} … ${number(column.max)}` }),
      h("td", { class: "hide-small" }, column.histogram.length ? spark(column.histogram) : null),
      h("td", { class: "n", text: column.missing ? number(column.missing) : "" }),
      h("td", {}, h("input", { type: "radio", name: "target", value: column.name, checked: column.name === target, "aria-label": `predict ${column.name}`, disabled: !!column.problem && !column.is_category })),
      h("td", {}, h("select", { "aria-label": label, "data-column": i },
        [["input", "input"], ["category", "as categories"], ["out", "leave out"]].map(([value, text]) => h("option", { value, selected: value === role, text })))));
    return column.problem ? [cells, h("tr", { class: "why" }, h("td", { colspan: 7, text: `${column.problem.message}${column.problem.hint ? "; " + column.problem.hint : ""}` }))] : [cells];
  });
  const tasks = h("select", { id: "task", "aria-label": "kind of target" },
    [["", "by its type"], ["regression", "a number"], ["classification", "a class"]].map(([value, text]) => h("option", { value, text, selected: choice && choice.task === value })));
  const gaps = h("select", { id: "missing", "aria-label": "missing cells" },
    [["refuse", "refuse"], ["drop", "drop their rows"], ["mean", "fill in the mean"]].map(([value, text]) => h("option", { value, text, selected: (choice ? choice.missing : missing ? "drop" : "refuse") === value })));
  const go = h("button", { type: "button", id: "choose", text: state.file ? "Fit models to these columns" : data ? "Use this choice" : "Use these columns" });
  go.addEventListener("click", async () => {
    const named = (role) => [...place.querySelectorAll("select[data-column]")].filter((s) => s.value === role).map((s) => table.columns[s.dataset.column].name);
    const target = place.querySelector("input[name=target]:checked")?.value || null;
    go.disabled = true;
    const found = await attempt(() => post("choice", {
      target, task: $("task").value || null, missing: $("missing").value,
      exclude: named("out").filter((n) => n !== target), categorical: named("category"),
    }));
    go.disabled = false;
    if (found) chosen(found);
  });
  place.replaceChildren(
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "columns of the table" }, h("table", {},
      h("thead", {}, h("tr", {}, ["column", "holds", "range", "spread", "missing", "target", "use"].map((t, i) => h("th", { class: i === 4 ? "n" : i === 2 || i === 3 ? "hide-small" : null, scope: "col", text: t })))),
      h("tbody", {}, rows))),
    h("div", { class: "tools after" },
      h("label", {}, h("input", { type: "radio", name: "target", value: "", checked: target === null, "aria-label": "no target: a density only" }), "no target"),
      h("label", {}, "the target is", tasks), h("label", {}, "missing cells", gaps), go),
    h("p", { class: "soft", text: `${table.name}: ${number(table.rows)} rows, ${table.format}${data && !state.file ? `; ${number(data.n_train)} rows to learn from, ${number(data.n_held_out)} held out, ${data.features.length} inputs` : ""}` }));
}
