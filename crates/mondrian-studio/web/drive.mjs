// Drives the real program in a real browser. Usage: node drive.mjs PROGRAM CHROMIUM FOLDER [bench]
// FOLDER gets the screenshots. Every step is an assertion; the first that fails ends the run.
import assert from "node:assert/strict";
import { spawn, execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";

const [program, browserPath, shots, mode] = process.argv.slice(2);
const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "studio-test-"));
fs.mkdirSync(shots, { recursive: true });
const say = (text) => console.log(`  ${text}`);
let failed = 0;
/** With STUDIO_ONLY, the steps whose names fit this pattern; some need others before them. */
const only = process.env.STUDIO_ONLY ? new RegExp(process.env.STUDIO_ONLY) : null;

/** Starts a studio; its address is the first line that it prints. */
async function start(...args) {
  const child = spawn(program, ["studio", "--no-open", ...args], { stdio: ["ignore", "pipe", "inherit"], cwd: scratch });
  const address = await new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (chunk) => { text += chunk; if (text.includes("\n")) resolve(text.split("\n")[0].trim()); });
    child.on("exit", (code) => reject(new Error(`the studio ended with ${code}`)));
    setTimeout(() => reject(new Error("the studio did not start")), 20000);
  });
  return { child, address };
}
const ended = (child) => new Promise((resolve) => (child.exitCode === null ? child.on("exit", resolve) : resolve(child.exitCode)));

/** A plain request with headers of our choosing; browsers would not let us. */
function request(address, { method = "GET", headers = {}, body, pathname } = {}) {
  const url = new URL(address);
  return new Promise((resolve, reject) => {
    const asked = http.request({ host: url.hostname, port: url.port, path: pathname ?? url.pathname, method, headers }, (answer) => {
      let text = "";
      answer.on("data", (chunk) => (text += chunk));
      answer.on("end", () => resolve({ status: answer.statusCode, headers: answer.headers, text }));
    });
    asked.on("error", reject);
    if (body !== undefined) asked.write(body);
    asked.end();
  });
}
const api = (address, name) => new URL(`api/v1/${name}`, address).pathname;

/** A table of two inputs and a target, the same every time. */
function table(rows, extra = () => "") {
  let seed = 1;
  const uniform = () => { seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0; return seed / 4294967296; };
  const lines = ["east,north,height"];
  for (let i = 0; i < rows; i++) {
    const [x, y] = [uniform() * 10, uniform() * 6];
    lines.push(`${x.toFixed(4)},${y.toFixed(4)},${(Math.sin(x) * 3 + y * y * 0.2 + uniform()).toFixed(4)}${extra(i)}`);
  }
  return lines.join("\n") + "\n";
}

async function step(name, work, always = false) {
  if ((failed && !always) || (only && !only.test(name))) return;
  const started = Date.now();
  try {
    await work();
    say(`ok   ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    say(`FAIL ${name}: ${error.stack}`);
  }
}

/** No violations of accessibility rules in either theme. */
async function accessible(page, where) {
  for (const theme of ["light", "dark"]) {
    await page.evaluate((t) => { if (document.documentElement.dataset.theme !== t) document.getElementById("theme").click(); }, theme);
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ") + " " + n.failureSummary).slice(0, 3).join("; ")}`), [], `${where}, ${theme}`);
  }
  await page.evaluate(() => { if (document.documentElement.dataset.theme !== "light") document.getElementById("theme").click(); });
}
/** Pictures of a view at three widths, in both themes. */
async function pictures(page, name) {
  for (const [width, height] of [[390, 844], [1280, 900], [1920, 1080]]) {
    await page.setViewportSize({ width, height });
    for (const suffix of ["", "-dark"]) {
      await page.waitForTimeout(250);
      await page.screenshot({ path: path.join(shots, `${name}${suffix}-${width}.png`), fullPage: true });
      await page.evaluate(() => document.getElementById("theme").click());
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}
const ready = (page, kind) => page.waitForSelector(`#board tr[data-status=ready]:has(td.name:text-is("${kind}"))`, { timeout: 240000 });
const noSideways = (page) => page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1);

async function openBrowser() {
  return chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/** With STUDIO_STATIC, the page's files come from that folder: for changes that are not built in yet. */
async function overlay(context, address) {
  const folder = process.env.STUDIO_STATIC, base = new URL(address).pathname;
  if (!folder) return;
  await context.route((url) => url.pathname.startsWith(base) && !url.pathname.includes("/api/"), async (route) => {
    const file = path.join(folder, new URL(route.request().url()).pathname.slice(base.length) || "index.html");
    const response = await route.fetch();
    await route.fulfill(fs.existsSync(file) ? { response, body: fs.readFileSync(file) } : { response });
  });
}

async function tests() {
  const { child, address } = await start();
  const browser = await openBrowser();
  const context = await browser.newContext({ acceptDownloads: true, reducedMotion: "reduce" });
  await overlay(context, address);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (m) => { if (m.type() === "error" && !/status of (400|413|403)/.test(m.text())) complaints.push(m.text()); });
  page.on("pageerror", (e) => complaints.push(String(e)));

  await step("strangers are refused", async () => {
    const url = new URL(address), host = url.host;
    assert.equal((await request(address)).status, 200);
    for (const [what, options] of [
      ["without a token", { pathname: "/" }],
      ["a wrong token", { pathname: "/0123456789abcdef0123456789abcdef/" }],
      ["the interface without a token", { pathname: "/api/v1/state" }],
      ["a foreign host", { headers: { host: "evil.example" } }],
      ["a foreign host with our port", { headers: { host: `evil.example:${url.port}` } }],
      ["a foreign origin", { headers: { host, origin: "http://evil.example" }, pathname: api(address, "tour"), method: "POST" }],
      ["an origin without a name", { headers: { host, origin: "null" }, pathname: api(address, "tour"), method: "POST" }],
      ["another site", { headers: { host, "sec-fetch-site": "cross-site" } }],
    ]) {
      assert.equal((await request(address, options)).status, 403, what);
    }
    const { headers } = await request(address);
    assert.match(headers["content-security-policy"], /default-src 'none'/);
    assert.equal(headers["x-content-type-options"], "nosniff");
    const traversal = await request(address, { pathname: `${url.pathname}../../etc/passwd` });
    assert.notEqual(traversal.status, 200);
  });

  await page.goto(address);
  await step("the start is accessible", async () => {
    await page.waitForSelector("#tour");
    await accessible(page, "start");
    await pictures(page, "start");
    assert.ok(await noSideways(page));
  });

  await step("bad tables are messages", async () => {
    const bad = {
      "empty.csv": "", "blank.csv": "\n\n\n", "names.csv": "a,b,c\n", "nul.csv": "a,b\n1,\u00002\n", "binary.csv": Buffer.from(Array.from({ length: 4000 }, (_, i) => (i * 7919) % 256)),
      "ragged.csv": "a,b\n1,2\n3\n4,5\n", "long.csv": "a,b\n1,2\n3,4,5\n", "twice.csv": "a,a\n1,2\n3,4\n", "broken.gz": Buffer.concat([Buffer.from([0x1f, 0x8b, 8, 0]), Buffer.alloc(50, 7)]),
      "cut.parquet": "PAR1 this is not one", "one-column.csv": "a\n1\n2\n3\n", "infinite.csv": "a,b\n1,inf\n2,3\n4,5\n",
    };
    for (const [name, text] of Object.entries(bad)) {
      const answer = await request(address, { method: "POST", pathname: `${api(address, "table")}?name=${name}`, body: text });
      const chosen = answer.status === 200 ? await request(address, { method: "POST", pathname: api(address, "choice"), headers: { "content-type": "application/json" }, body: JSON.stringify({ target: JSON.parse(answer.text).columns.at(-1).name }) }) : answer;
      assert.equal(chosen.status, 400, `${name}: ${chosen.status} ${chosen.text.slice(0, 200)}`);
      const { error } = JSON.parse(chosen.text);
      assert.ok(error.message.length > 5 && !error.message.includes(os.tmpdir()), `${name}: ${error.message}`);
    }
    for (const [what, target, text] of [
      ["few rows", "b", "a,b\n1,2\n"], ["all missing", "b", "a,b\nNA,1\nNA,2\nNA,3\n"], ["target missing", "b", "a,b\n1,NA\n2,NA\n3,NA\n"], ["no such column", "z", "a,b\n1,2\n3,4\n5,6\n"],
      ["gaps refused", "b", "a,b\n1,2\n,4\n5,6\n"], ["no inputs", "a", "a\n1\n2\n3\n4\n"], ["texts as numbers", "b", `a,b\n${Array.from({ length: 40 }, (_, i) => `${i},${i}`).join("\n")}\nx,3\n`],
      ["too many categories", "b", `a,b\n${Array.from({ length: 12000 }, (_, i) => `t${i},${i}`).join("\n")}\n`],
    ]) {
      const opened = await request(address, { method: "POST", pathname: `${api(address, "table")}?name=t.csv`, body: text });
      const chosen = opened.status !== 200 ? opened : await request(address, { method: "POST", pathname: api(address, "choice"), headers: { "content-type": "application/json" }, body: JSON.stringify({ target }) });
      assert.equal(chosen.status, 400, `${what}: ${chosen.text.slice(0, 300)}`);
    }
    const marked = await request(address, { method: "POST", pathname: `${api(address, "table")}?name=t.csv`, body: "a,b,c\n1,2,3\n2,oops,4\n3,4,5\n" });
    const columns = JSON.parse(marked.text).columns;
    assert.equal(columns.find((c) => c.problem)?.name, "b", "the mistake is on its column");
    for (const name of ["../../escape.csv", "/etc/passwd", "-", "..", "a\nb.csv"]) {
      const opened = await request(address, { method: "POST", pathname: `${api(address, "table")}?name=${encodeURIComponent(name)}`, body: table(30) });
      assert.equal(opened.status, 200, name);
      assert.ok(!/[\\/\n]/.test(JSON.parse(opened.text).name), name);
    }
    for (const [what, options] of [["not JSON", { method: "POST", pathname: api(address, "choice"), headers: { "content-type": "application/json" }, body: "{" }], ["no such request", { pathname: api(address, "nothing") }], ["no such model", { pathname: api(address, "models/999/curve") }]]) {
      const { status } = await request(address, options);
      assert.ok(status >= 400 && status < 500, `${what}: ${status}`);
    }
  });

  await step("a dropped table is understood", async () => {
    const file = path.join(scratch, "heights.csv");
    fs.writeFileSync(file, table(1200));
    await page.setInputFiles("#file", file);
    await page.waitForFunction(() => document.getElementById("title").textContent === "heights.csv");
    assert.equal(await page.inputValue("input[name=target]:checked"), "height");
    await accessible(page, "table");
    await pictures(page, "table");
    await page.click("#choose");
    await page.waitForSelector("#models:not([hidden])");
  });

  await step("models fit side by side and are compared", async () => {
    for (const kind of ["forest", "laplace", "kernel", "grid", "density"]) await page.click(`[data-fit=${kind}]`);
    for (const kind of ["forest", "laplace", "kernel", "grid", "density"]) await ready(page, kind);
    const rows = await page.$$eval("#board tbody tr", (all) => all.map((r) => [...r.cells].map((c) => c.textContent)));
    assert.equal(rows.length, 5);
    assert.ok(Number(rows[0][2]) < 1.2, `the best model's error ${rows[0][2]}`);
  });

  await step("the lifetime is dragged: everything follows", async () => {
    await page.click('#board tr:has(td.name:text-is("forest")) input[type=radio]');
    await page.waitForSelector("#slider:not([hidden])");
    await page.waitForFunction(() => Number(document.getElementById("partition").dataset.cells) > 1);
    const before = await page.evaluate(() => ({ cells: Number(document.getElementById("partition").dataset.cells), rmse: document.getElementById("figures").textContent, lifetime: window.studio.app.lifetime }));
    const box = await page.locator("#lifetime").boundingBox();
    await page.mouse.move(box.x + box.width * 0.5, box.y + box.height / 2);
    await page.mouse.down();
    for (let i = 0; i <= 20; i++) await page.mouse.move(box.x + box.width * (0.5 - 0.02 * i), box.y + box.height / 2);
    await page.mouse.up();
    await page.waitForFunction((l) => window.studio.app.view.lifetime !== l && Math.abs(window.studio.app.view.lifetime - window.studio.app.lifetime) < 1e-12, before.lifetime);
    const after = await page.evaluate(() => ({ cells: Number(document.getElementById("partition").dataset.cells), rmse: document.getElementById("figures").textContent }));
    assert.ok(after.cells < before.cells, `${after.cells} cells after ${before.cells}`);
    assert.notEqual(after.rmse, before.rmse);
    // By keyboard too.
    await page.focus("#lifetime");
    const low = await page.evaluate(() => window.studio.app.lifetime);
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("PageUp");
    assert.ok((await page.evaluate(() => window.studio.app.lifetime)) > low);
    await page.keyboard.press("End");
    await page.click("#to-best");
    // Views come from the one fit: the path's own value at this lifetime.
    const same = await page.evaluate(async () => {
      const { app } = window.studio;
      const c = app.curve, at = c.held_out[c.lifetimes.findLastIndex((l) => l <= c.best)];
      const v = await (await fetch(`api/v1/models/${app.model.id}/view?lifetime=${c.best}`)).json();
      return [at, v.score.rmse];
    });
    assert.equal(same[0], same[1]);
  });

  await step("every view is accessible and fits its screen", async () => {
    await page.waitForSelector("#inputs:not([hidden])");
    await page.waitForTimeout(600);
    await accessible(page, "forest");
    await pictures(page, "forest");
    await page.setViewportSize({ width: 390, height: 844 });
    await page.waitForTimeout(400);
    assert.ok(await noSideways(page), "no sideways scrolling on a phone");
    await page.setViewportSize({ width: 1280, height: 900 });
    for (const kind of ["laplace", "kernel", "grid", "density"]) {
      await page.click(`#board tr:has(td.name:text-is("${kind}")) input[type=radio]`);
      await page.waitForFunction((k) => window.studio.app.model.request.kind === k && !document.getElementById("life").hidden, kind);
      if (kind === "laplace") await page.waitForSelector("#refit");
      await page.waitForTimeout(800);
      await accessible(page, kind);
      await pictures(page, kind);
    }
  });

  await step("a bar is moved and the model joins the comparison", async () => {
    await page.click('#board tr:has(td.name:text-is("laplace")) input[type=radio]');
    await page.waitForSelector("#refit");
    await page.focus("#bars input[type=range]");
    for (let i = 0; i < 12; i++) await page.keyboard.press("ArrowRight");
    await page.click("#refit");
    await ready(page, "laplace, moved");
  });

  await step("a row is edited: prediction, interval, rows with the largest weights", async () => {
    await page.click('#board tr:has(td.name:text-is("forest")) input[type=radio]');
    await page.waitForSelector("#answer table");
    const before = await page.textContent("#answer .big");
    await page.fill("#cell-0", "9.5");
    await page.press("#cell-0", "Tab");
    await page.waitForFunction((b) => document.querySelector("#answer .big").textContent !== b, before);
    await page.fill("#cell-0", "500");
    await page.press("#cell-0", "Tab");
    await page.waitForFunction(() => document.getElementById("answer").textContent.includes("outside the box"));
  });

  await step("two tabs share the session; a fit is cancelled", async () => {
    const other = await context.newPage();
    await other.goto(address);
    await other.waitForSelector("#board tr[data-model]");
    assert.equal((await other.$$("#board tbody tr")).length, (await page.$$("#board tbody tr")).length);
    const before = (await page.$$("#board tbody tr")).length;
    await other.evaluate(() => fetch("api/v1/models", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ kind: "forest", trees: 10000 }) }));
    await page.waitForSelector("#board tr[data-status=running] button:text-is('cancel')");
    assert.equal((await page.$$("#board tbody tr")).length, before + 1);
    await page.click("#board tr[data-status=running] button:text-is('cancel')");
    await other.waitForSelector("#board tr[data-status=cancelled]", { timeout: 60000 });
    await other.close();
  });

  await step("rows stream into a forest, and one is forgotten", async () => {
    await page.click("#play");
    await page.waitForFunction(() => /[1-9]\d\d of/.test(document.getElementById("stream-note").textContent), null, { timeout: 60000 });
    await page.fill("#forget-row", "3");
    await page.click("#forget");
    await page.waitForFunction(() => document.getElementById("stream-note").textContent.includes("1 forgotten"));
    // A click on the picture forgets the row that is nearest: another each time.
    const box = await (await page.$("#growing")).boundingBox();
    for (const n of [2, 3]) {
      await page.mouse.click(box.x + box.width * 0.4, box.y + box.height * 0.5);
      await page.waitForFunction((n) => document.getElementById("stream-note").textContent.includes(`${n} forgotten`), n);
    }
    if ((await page.textContent("#play")) === "Pause") await page.click("#play");
    await accessible(page, "stream");
    await pictures(page, "stream");
  });

  await step("what is taken away is what the command writes, byte for byte", async () => {
    await page.click("#to-best");
    await page.waitForTimeout(300);
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#take-model")]);
    const taken = path.join(scratch, "taken.mondrian");
    await download.saveAs(taken);
    const command = await page.textContent("#command");
    assert.match(command, /^mondrian fit heights\.csv /);
    execFileSync("sh", ["-c", command.replace(/^mondrian/, JSON.stringify(program))], { cwd: scratch, stdio: "pipe" });
    assert.ok(fs.readFileSync(taken).equals(fs.readFileSync(path.join(scratch, "model.mondrian"))), "the same bytes");
    const predictions = execFileSync(program, ["predict", taken, "heights.csv"], { cwd: scratch }).toString();
    assert.equal(predictions.trim().split("\n").length, 1201);
    const python = process.env.STUDIO_PYTHON;
    if (python) {
      const script = `import mondrian,csv\nm=mondrian.load(${JSON.stringify(taken)})\nrows=[[float(r['east']),float(r['north'])] for r in csv.DictReader(open('heights.csv'))]\nprint('\\n'.join(float(p).hex() for p in m.predict(rows)))`;
      const theirs = execFileSync(python, ["-c", script], { cwd: scratch }).toString().trim().split("\n");
      const ours = predictions.trim().split("\n").slice(1).map((line) => Number(line.split(",")[0]));
      const hex = (text) => { const [, sign, digits, exponent] = /^(-?)0x1?(?:\.)?([0-9a-f.]*)p([+-]\d+)$/.exec(text); return (sign ? -1 : 1) * (1 + parseInt(digits.replace(".", "") || "0", 16) / 2 ** 52) * 2 ** Number(exponent); };
      theirs.forEach((t, i) => assert.equal(hex(t), ours[i], `row ${i + 1}`));
      say("     Python predicts the same, by bits");
    } else say("     skipped: Python (set STUDIO_PYTHON to one that has the package)");
    const [report] = await Promise.all([page.waitForEvent("download"), page.click("#take-report")]);
    const saved = path.join(scratch, "report.html");
    await report.saveAs(saved);
    assert.match(fs.readFileSync(saved, "utf8"), /mondrian path heights\.csv/);
  });

  await step("moved lifetimes are taken away, and the Python lines give the same model", async () => {
    const active = async (name) => {
      await page.click(`#board tr:has(td.name:text-is("${name}")) input[type=radio]`);
      await page.waitForFunction((n) => window.studio.app.model.request.kind === "laplace" && !!window.studio.app.model.request.lifetimes === n.includes("moved"), name);
    };
    const taken = async (name) => {
      const [download] = await Promise.all([page.waitForEvent("download", { timeout: 120000 }), page.click("#take-model")]);
      const file = path.join(scratch, name);
      await download.saveAs(file);
      return file;
    };
    await active("laplace, moved");
    await page.waitForFunction(() => document.getElementById("command").textContent.includes("--lifetimes="));
    const moved = await taken("moved.mondrian");
    execFileSync("sh", ["-c", (await page.textContent("#command")).replace(/^mondrian/, JSON.stringify(program))], { cwd: scratch, stdio: "pipe" });
    assert.ok(fs.readFileSync(moved).equals(fs.readFileSync(path.join(scratch, "model.mondrian"))), "the same bytes");
    await active("laplace");
    await page.waitForFunction(() => document.getElementById("python").textContent.includes("LaplaceKernelRidge"));
    assert.ok(await page.isVisible("#take-report"), "the tuned kernel has a report");
    const python = process.env.STUDIO_PYTHON;
    if (!python) return say("     skipped: the Python lines (set STUDIO_PYTHON)");
    const tuned = await taken("tuned.mondrian");
    const lines = await page.textContent("#python");
    const same = `${lines}\nother = mondrian.load(${JSON.stringify(tuned)})\nX = table[["east", "north"]]\nassert (model.predict(X) == other.predict(X)).all()`;
    execFileSync(python, ["-c", same], { cwd: scratch, stdio: "pipe" });
    say("     the Python lines give the same model, by bits");
  });

  await step("model files of every kind, alone and judged by a table", async () => {
    const kept = path.resolve(import.meta.dirname, "../../../testdata/models/0.1.0/program");
    const queries = path.join(scratch, "queries.csv");
    fs.writeFileSync(queries, "x,y,noise,colour,target\n0.1,0.9,0.5,red,0.2\n0.55,0.2,0.1,blue,0.1\n0.8,0.4,0.9,yellow,-1\n0.3,0.3,0.3,red,1\n");
    const state = async () => JSON.parse((await request(address, { pathname: api(address, "state") })).text);
    const whenReady = async () => {
      for (;;) {
        const model = (await state()).models[0];
        if (model?.status === "ready") return model;
        assert.equal(model?.status, "running", JSON.stringify(model?.problem));
        await new Promise((r) => setTimeout(r, 50));
      }
    };
    const send = async (file) => request(address, { method: "POST", pathname: `${api(address, "file")}?name=${path.basename(file)}`, body: fs.readFileSync(file) });
    for (const name of ["tuned", "tuned-classes", "laplace", "forest", "classes", "kernel", "grid", "density"]) {
      const alone = await send(path.join(kept, `${name}.mondrian`));
      assert.equal(alone.status, 200, `${name}: ${alone.text}`);
      assert.equal(JSON.parse(alone.text).table, null, name);
      const model = await whenReady();
      const view = JSON.parse((await request(address, { pathname: `${api(address, `models/${model.id}/view`)}?settled=true` })).text);
      assert.deepEqual(view.predicted, [], `${name} without a table`);
      const { data } = await state();
      const cells = Object.fromEntries(data.inputs.map((i) => [i.name, i.levels ? i.levels[0] : i.median]));
      const row = await request(address, { method: "POST", pathname: api(address, `models/${model.id}/row`), headers: { "content-type": "application/json" }, body: JSON.stringify({ cells }) });
      assert.equal(row.status, 200, `${name}: ${row.text}`);
      if (data.axes.length > 1) assert.equal((await request(address, { pathname: `${api(address, `models/${model.id}/plane`)}?x=${data.axes[0]}&y=${data.axes[1]}` })).status, 200, name);
      const judged = await send(queries);
      assert.equal(judged.status, 200, `${name}: ${judged.text}`);
      const again = await whenReady(), lifetime = JSON.parse((await request(address, { pathname: api(address, `models/${again.id}/curve`) })).text)?.to;
      const asked = `${api(address, `models/${again.id}/view`)}?settled=true${lifetime ? `&lifetime=${1e9}` : ""}`;
      const found = JSON.parse((await request(address, { pathname: asked })).text);
      // What the program predicts at the model's own lifetime, by bits; the shown rows are all of the table's.
      const said = execFileSync(program, ["predict", path.join(kept, `${name}.mondrian`), queries, "--quiet"]).toString().trim().split("\n").slice(1).map((l) => l.split(","));
      const column = name === "classes" || name === "tuned-classes" ? null : 0;
      said.forEach((line, i) => assert.equal(found.predicted[i], column === 0 ? Number(line[0]) : Math.max(...line.slice(1).map(Number)), `${name}, row ${i + 1}`));
      const wrong = await send(path.join(scratch, "heights.csv"));
      assert.equal(wrong.status, 400, name);
      assert.match(JSON.parse(wrong.text).error.message, /does not fit the model/);
      assert.equal((await request(address, { method: "DELETE", pathname: api(address, `models/${again.id}`) })).status, 200);
      assert.equal((await state()).file, null);
      // The table that judged it is open still; the next model begins alone.
      await request(address, { method: "POST", pathname: `${api(address, "file")}?name=heights.csv`, body: table(30) });
    }
    await send(queries);
    const broken = fs.readFileSync(path.join(kept, "forest.mondrian")).subarray(0, 900);
    for (const [name, body] of [["cut.mondrian", broken], ["changed.mondrian", Buffer.concat([fs.readFileSync(path.join(kept, "forest.mondrian")).subarray(0, -9), Buffer.alloc(9, 1)])]]) {
      const refused = await request(address, { method: "POST", pathname: `${api(address, "file")}?name=${name}`, body });
      assert.equal(refused.status, 400, name);
      assert.ok(!refused.text.includes(os.tmpdir()), refused.text);
    }
  });

  await step("a model file is looked into on the page", async () => {
    execFileSync(program, ["fit", "heights.csv", "--target", "height", "--model", "forest", "--trees", "20", "--lifetime", "3", "--out", "heights.mondrian", "--quiet"], { cwd: scratch });
    await page.setInputFiles("#file", path.join(scratch, "heights.mondrian"));
    await page.waitForFunction(() => document.getElementById("title").textContent === "heights.mondrian");
    await page.waitForFunction(() => Number(document.getElementById("partition").dataset.cells) > 10 && !document.getElementById("slider").hidden);
    await page.waitForSelector("#answer table");
    assert.ok(await page.isHidden("#p-scatter"), "nothing judges it yet");
    assert.ok(Math.abs((await page.evaluate(() => window.studio.app.lifetime)) - 3) < 1e-9, "its own lifetime");
    await page.waitForTimeout(500);
    await accessible(page, "model file");
    await pictures(page, "model");
    fs.writeFileSync(path.join(scratch, "new.csv"), table(400));
    await page.setInputFiles("#file", path.join(scratch, "new.csv"));
    await page.waitForFunction(() => window.studio.app.state?.table?.name === "new.csv" && window.studio.app.view?.predicted.length === 400);
    const { rmse, coverage } = JSON.parse(execFileSync(program, ["evaluate", "heights.mondrian", "new.csv", "--json", "--quiet"], { cwd: scratch }));
    const shown = await page.evaluate(async () => (await (await fetch(`api/v1/models/${window.studio.app.model.id}/view?lifetime=3&settled=true`)).json()).score);
    assert.ok(Math.abs(shown.rmse / rmse - 1) < 1e-9, `${shown.rmse} on the page, ${rmse} by evaluate`);
    // The intervals of the page are those that the program writes.
    assert.equal(shown.coverage, coverage, "held by intervals of 90 %");
    const written = execFileSync(program, ["predict", "heights.mondrian", "new.csv", "--quiet"], { cwd: scratch }).toString().trim().split("\n");
    const lower = written[0].split(",").indexOf("lower");
    assert.ok(lower > 0, written[0]);
    const { interval } = await page.evaluate(async () => (await fetch(`api/v1/models/${window.studio.app.model.id}/view?lifetime=3&settled=true`)).json());
    written.slice(1).forEach((line, i) => assert.deepEqual(interval[i], line.split(",").slice(lower, lower + 2).map(Number), `interval of row ${i + 1}`));
    await page.waitForTimeout(500);
    await accessible(page, "model file with a table");
    await pictures(page, "model-judged");
    // Answers that were written before the model was ready, and arrive after the event that says so.
    await page.route("**/api/v1/state", async (route) => {
      const response = await route.fetch();
      await page.waitForTimeout(1500);
      await route.fulfill({ response });
    });
    fs.writeFileSync(path.join(scratch, "late.csv"), table(300));
    await page.setInputFiles("#file", path.join(scratch, "late.csv"));
    await page.waitForFunction(() => window.studio.app.state?.table?.name === "late.csv" && window.studio.app.view?.predicted.length === 300);
    await page.unroute("**/api/v1/state");
    await page.click("#close-file");
    await page.waitForFunction(() => window.studio.app.state.file === null);
  });

  await step("classes: boundaries and reliability", async () => {
    const file = path.join(scratch, "classes.csv");
    const lines = table(900).trim().split("\n").slice(1).map((l) => { const [x, y, t] = l.split(","); return `${x},${y},${t > 4 ? "high" : t > 0 ? "middle" : "low"}`; });
    fs.writeFileSync(file, ["east,north,band", ...lines].join("\n") + "\n");
    await page.setInputFiles("#file", file);
    await page.waitForFunction(() => document.getElementById("title").textContent === "classes.csv");
    await page.click("#choose");
    await page.click("[data-fit=forest]");
    await ready(page, "forest");
    await page.waitForSelector("#answer .bars");
    await page.waitForTimeout(600);
    await accessible(page, "classes");
    await pictures(page, "classes");
  });

  await step("the tour's data by one click", async () => {
    await page.click("#tour");
    await page.waitForFunction(() => document.getElementById("title").textContent === "tour.csv");
    await page.waitForSelector("#choose");
  });

  await step("a table of 200 MB is taken", async () => {
    const file = path.join(scratch, "large.csv"), out = fs.openSync(file, "w");
    const block = table(20000).split("\n").slice(1).join("\n");
    fs.writeSync(out, "east,north,height\n");
    let bytes = 0;
    while (bytes < 200e6) bytes += fs.writeSync(out, block);
    fs.closeSync(out);
    await page.setInputFiles("#file", file);
    await page.waitForFunction(() => document.getElementById("title").textContent === "large.csv", null, { timeout: 240000 });
    fs.rmSync(file);
  });

  await step("nothing went wrong in the page", async () => assert.deepEqual(complaints, []));
  await browser.close();
  await step("Ctrl-C ends it and leaves nothing behind", async () => {
    const folders = () => fs.readdirSync(os.tmpdir()).filter((n) => n.startsWith("mondrian-studio-")).length;
    const before = folders();
    child.kill("SIGINT");
    assert.equal(await ended(child), 0);
    assert.equal(folders(), before - 1);
  }, true);
}

/** Frame times of the partition under a scripted drag, and round trips of views at 10 000 rows. */
async function bench() {
  const file = path.join(scratch, "bench.csv");
  fs.writeFileSync(file, table(10000));
  const { child, address } = await start(file);
  const browser = await openBrowser();
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  await overlay(context, address);
  const page = await context.newPage();
  await page.goto(address);
  await page.click("#choose");
  await page.click("[data-fit=forest]");
  await ready(page, "forest");
  await page.waitForSelector("#slider:not([hidden])");
  await page.waitForTimeout(1500);
  const found = await page.evaluate(async () => {
    const { app, timings, tree } = window.studio, slider = document.getElementById("lifetime");
    // From one cell to all and back; densely where there are thousands.
    const steps = [];
    for (let v = 0; v <= 1000; v += 4) steps.push(v);
    timings.views.length = 0;
    const frames = [], draws = [];
    let last = performance.now(), most = 0;
    for (const v of [...steps, ...steps.reverse()]) {
      slider.value = v;
      slider.dispatchEvent(new Event("input"));
      await new Promise((next) => requestAnimationFrame(next));
      const now = performance.now();
      frames.push([tree.stats.cells, now - last]);
      draws.push([tree.stats.cells, tree.stats.millis]);
      most = Math.max(most, tree.stats.cells);
      last = now;
    }
    await new Promise((r) => setTimeout(r, 800));
    const sequential = [];
    for (let i = 0; i < 40; i++) {
      const l = app.curve.from * (app.curve.to / app.curve.from) ** (i / 39), started = performance.now();
      const view = await (await fetch(`api/v1/models/${app.model.id}/view?lifetime=${l}&x=${app.axes[0]}&y=${app.axes[1]}`)).json();
      sequential.push([performance.now() - started, view.millis]);
    }
    return { frames: frames.slice(5), draws, most, views: timings.views, sequential };
  });
  const quantile = (list, p) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(p * list.length))];
  const line = (name, list) => say(`${name}: median ${quantile(list, 0.5).toFixed(1)} ms, 90 % ${quantile(list, 0.9).toFixed(1)} ms, worst ${Math.max(...list).toFixed(1)} ms (${list.length})`);
  say(`10 000 rows, 100 trees, up to ${found.most} cells`);
  const many = (list) => list.filter((d) => d[0] > 4000).map((d) => d[1]);
  line("time from frame to frame of a scripted drag", found.frames.map((f) => f[1]));
  line("of those with more than 4000 cells", many(found.frames));
  line("drawing alone, more than 4000 cells", many(found.draws));
  line("round trips of views during the drag", found.views.map((v) => v.trip));
  line("round trips one after the other", found.sequential.map((v) => v[0]));
  line("of that in the library", found.sequential.map((v) => v[1]));
  await browser.close();
  child.kill("SIGINT");
  await ended(child);
}

try {
  await (mode === "bench" ? bench() : tests());
} finally {
  fs.rmSync(scratch, { recursive: true, force: true });
}
if (failed) { console.error(`${failed} steps failed`); process.exit(1); }
