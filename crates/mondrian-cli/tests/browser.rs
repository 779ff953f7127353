//! The report in a real browser: headless Chromium opens it, moves the slider, hovers and toggles, and reads the result.
//!
//! Skips with a message where there is no Chromium. `MONDRIAN_CHROMIUM` names another program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// What a visitor does, as a script appended to the page: nothing in the report knows about the test.
const VISIT: &str = r#"
<script>
addEventListener("load", () => setTimeout(() => {
  const result = { errors: window.__errors || [] };
  const partition = document.querySelector(".partition"), canvas = partition.querySelector("canvas");
  const slider = partition.querySelector("input[type=range]"), output = partition.querySelector("output");
  const look = () => ({ cells: Number(canvas.dataset.cells), lifetime: Number(canvas.dataset.lifetime),
                        said: output.textContent, picture: canvas.toDataURL().length + canvas.toDataURL().slice(-200) });
  const move = (value) => { slider.value = value; slider.dispatchEvent(new Event("input", { bubbles: true })); return look(); };
  result.first = look();
  result.start = move(0);
  result.half = move(500);
  result.end = move(1000);
  result.back = move(500);
  const curve = [...document.querySelectorAll(".chart svg[tabindex]")][0], box = curve.getBoundingClientRect();
  const tip = curve.closest(".chart").querySelector(".tip");
  curve.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width * 0.6, clientY: box.top + 80 }));
  result.tip = tip.textContent;
  result.tipShown = tip.style.opacity;
  // A finger taps: the value stays until it taps elsewhere.
  curve.dispatchEvent(new PointerEvent("pointerleave", { pointerType: "mouse" }));
  result.tipHidden = tip.style.opacity;
  curve.dispatchEvent(new PointerEvent("pointerdown", { pointerType: "touch", bubbles: true, clientX: box.left + box.width * 0.5, clientY: box.top + 80 }));
  curve.dispatchEvent(new PointerEvent("pointerleave", { pointerType: "touch" }));
  result.tapShown = tip.style.opacity;
  document.body.dispatchEvent(new PointerEvent("pointerdown", { pointerType: "touch", bubbles: true }));
  result.tapHidden = tip.style.opacity;
  // A mouse drags across the first curve that can be zoomed.
  const zoomed = [...document.querySelectorAll(".chart")].find((c) => [...c.querySelectorAll(".toggle")].some((b) => b.textContent === "whole curve"));
  const drawnPath = () => zoomed.querySelector("svg path").getAttribute("d");
  const wide = drawnPath(), svgOf = () => zoomed.querySelector("svg[tabindex]"), area = svgOf().getBoundingClientRect();
  const drag = (name, share) => svgOf().dispatchEvent(new PointerEvent(name, { pointerType: "mouse", pointerId: 1, bubbles: true, clientX: area.left + area.width * share, clientY: area.top + 90 }));
  drag("pointerdown", 0.4); drag("pointermove", 0.5); drag("pointerup", 0.7);
  result.zoomChanges = drawnPath() !== wide;
  [...zoomed.querySelectorAll(".toggle")].find((b) => b.textContent === "whole curve").click();
  result.zoomUndone = drawnPath() === wide;
  const buttons = [...document.querySelectorAll(".toggle")].filter((b) => b.textContent.startsWith("log"));
  const path = () => document.querySelector(".chart svg[tabindex] path").getAttribute("d");
  const before = path();
  if (buttons.length) buttons[0].click();
  result.logChanges = !buttons.length || path() !== before;
  result.theme = document.documentElement.dataset.theme;
  document.querySelector(".theme").click();
  result.otherTheme = document.documentElement.dataset.theme;
  result.background = getComputedStyle(document.body).backgroundColor;
  result.sections = [...document.querySelectorAll("section h2")].map((h) => h.textContent);
  // A curve goes to the right: an infinite last lifetime once drew a line back to the left.
  result.backwards = [...document.querySelectorAll(".chart svg[tabindex] path")].some((p) => {
    const steps = [...(p.getAttribute("d") || "").matchAll(/H([-\d.]+)/g)].map((m) => Number(m[1]));
    return steps.some((x, i) => i > 0 && x < steps[i - 1]);
  });
  result.marks = document.querySelectorAll("line.mark").length;
  // Words of marks stand above the plot, whatever its width, and beside no other.
  const words = [...document.querySelectorAll("line.mark + text")].map((t) => [t, t.getBoundingClientRect()]);
  result.wordsOnCurves = words.some(([t, box]) => [...t.closest("svg").querySelectorAll("path")].some((p) => p.getBoundingClientRect().top < box.bottom - 2));
  // On paper charts are lower, and as high as before afterwards.
  const height = () => document.querySelector(".chart svg[tabindex]").getBoundingClientRect().height;
  const onScreen = height();
  dispatchEvent(new Event("beforeprint"));
  result.lowerOnPaper = height() < onScreen && height() > 150;
  dispatchEvent(new Event("afterprint"));
  result.asBefore = height() === onScreen;
  result.overflow = document.documentElement.scrollWidth > innerWidth;
  result.requests = performance.getEntriesByType("resource").map((r) => r.name).filter((n) => !n.startsWith("data:"));
  const report = document.createElement("pre");
  report.id = "visit";
  report.textContent = JSON.stringify(result);
  document.body.append(report);
}, 300));
</script>
"#;

const CATCH: &str =
    r"<script>window.__errors = []; addEventListener('error', (e) => window.__errors.push(e.message));</script>";

fn chromium() -> Option<PathBuf> {
    let named = std::env::var_os("MONDRIAN_CHROMIUM").map(PathBuf::from);
    let usual = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].map(PathBuf::from);
    named.into_iter().chain(usual).find(|path| path.exists())
}

/// Opens a page in a window of this width and returns what the visit saw.
///
/// A headless browser now and then dies as it starts, or dumps a page before its scripts have run: that says nothing
/// about the page, so there are three attempts. A page that is broken is broken each time.
fn visit(browser: &Path, page: &Path, width: u32) -> Value {
    // One browser at a time: they take all the processors there are.
    static ONE: Mutex<()> = Mutex::new(());
    let _alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let html = std::fs::read_to_string(page).unwrap();
    let with_visitor = html.replace("<head>", &format!("<head>{CATCH}")).replace("</body>", &format!("{VISIT}</body>"));
    for attempt in 1..=3 {
        let output = open(browser, &with_visitor, width);
        if let Some(seen) = left_on(&String::from_utf8_lossy(&output.stdout)) {
            return seen;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        eprintln!("attempt {attempt}: {}, a page of {} bytes; {said}", output.status, output.stdout.len());
    }
    panic!("the visit left nothing on the page")
}

fn open(browser: &Path, html: &str, width: u32) -> Output {
    let profile = tempfile::tempdir().unwrap();
    let page = profile.path().join("visited.html");
    std::fs::write(&page, html).unwrap();
    Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-dev-shm-usage"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--window-size={width},900"))
        .args(["--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts")
}

/// What the visit wrote on the page.
fn left_on(dom: &str) -> Option<Value> {
    let (_, rest) = dom.split_once("<pre id=\"visit\">")?;
    let (json, _) = rest.split_once("</pre>")?;
    let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    Some(serde_json::from_str(&json).expect("JSON"))
}

#[test]
fn the_report_works_in_a_browser() {
    let Some(browser) = chromium() else {
        eprintln!("skipped: no Chromium here (apt-get install chromium, or set MONDRIAN_CHROMIUM)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_mondrian"))
        .args(["tour", "--json", "--quiet", "--out"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success());
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    for width in [1280, 500] {
        let seen = visit(&browser, &folder.path().join("report.html"), width);
        assert_sound(&seen, width);
        // The script's walk down the tree finds as many cells as the library counted.
        assert_eq!(seen["first"]["cells"], told["figures"]["cells"]);
        assert_eq!((&seen["start"]["cells"], &seen["start"]["said"]), (&1.into(), &"λ = 0".into()));
        let cells = |at: &str| seen[at]["cells"].as_u64().unwrap();
        assert!(cells("start") < cells("half") && cells("half") < cells("end"), "a longer lifetime refines");
        assert_eq!(seen["half"], seen["back"], "back at the same lifetime, the same picture");
        assert_ne!(seen["half"]["picture"], seen["end"]["picture"], "the slider redraws");
    }
}

/// A path of a classification forest, whose last lifetime is infinite.
#[test]
fn a_path_without_end_works_in_a_browser() {
    let Some(browser) = chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    let rows = (0..90).map(|i| format!("{},{},{}\n", i % 11, i % 7, ["sun", "rain", "snow"][(i % 11) / 4]));
    std::fs::write(folder.path().join("t.csv"), "a,b,weather\n".to_owned() + &rows.collect::<String>()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_mondrian"))
        .args(["path", "t.csv", "--target", "weather", "--trees", "10", "--quiet"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_sound(&visit(&browser, &folder.path().join("report.html"), 1280), 1280);
}

/// What holds for every report.
fn assert_sound(seen: &Value, width: u32) {
    assert_eq!(seen["errors"], serde_json::json!([]), "no script error");
    assert_eq!(seen["requests"], serde_json::json!([]), "nothing is fetched");
    assert_eq!(seen["tipShown"], "1");
    assert!(seen["tip"].as_str().unwrap().contains(" = "), "hovering tells values");
    assert_eq!(seen["logChanges"], true);
    assert_eq!([&seen["tipHidden"], &seen["tapShown"], &seen["tapHidden"]], ["0", "1", "0"], "a tap shows a value");
    assert_eq!([&seen["zoomChanges"], &seen["zoomUndone"]], [true, true], "dragging zooms");
    assert_eq!(seen["backwards"], false, "curves go to the right");
    assert_eq!(seen["wordsOnCurves"], false, "the words of marks stand above the curves");
    assert_eq!([&seen["lowerOnPaper"], &seen["asBefore"]], [true, true], "charts are drawn for paper");
    assert_ne!(seen["theme"], seen["otherTheme"]);
    assert_eq!(seen["overflow"], false, "nothing sticks out at {width} pixels");
    assert!(seen["sections"].as_array().unwrap().len() >= 5);
}
