//! Every relative link of every page of the repository leads somewhere, and comments that refer to a section of
//! `docs/design.md` name one of its headings.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository; none for the packaged crate, which has no pages.
fn root() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if root.join("docs").is_dir() {
        return root.canonicalize().ok();
    }
    eprintln!("skipped: the pages lie beside the source, not in the packaged crate");
    None
}

/// All files below a folder with one of these endings, but for what is built or hidden.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if path.is_dir() {
                if !name.starts_with('.') && !["target", "node_modules", "tour"].contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A page without its blocks of code, whose brackets are no links.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What stands between `](` and `)`.
fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.split_whitespace().next().unwrap_or_default().to_owned()).collect()
}

/// The anchor that GitHub and mdBook give a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn headings(page: &Path) -> Vec<String> {
    let text = prose(&fs::read_to_string(page).expect("a page"));
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| line.trim_start_matches('#').trim().to_owned()).collect()
}

/// Why a link of a page leads nowhere.
fn flaw(page: &Path, link: &str) -> Option<String> {
    if ["http://", "https://", "mailto:"].iter().any(|scheme| link.starts_with(scheme)) {
        return None;
    }
    let (file, section) = link.split_once('#').map_or((link, None), |(file, section)| (file, Some(section)));
    let target =
        if file.is_empty() { page.to_path_buf() } else { page.parent().expect("a page lies in a folder").join(file) };
    if !target.exists() {
        return Some("is not there".to_owned());
    }
    let section = section?;
    let has_it = headings(&target).iter().any(|heading| anchor(heading) == section);
    (!has_it).then(|| format!("has no section #{section}"))
}

#[test]
fn every_relative_link_leads_somewhere() {
    let Some(root) = root() else { return };
    let mut wrong = Vec::new();
    let mut n_links = 0;
    for page in files(&root, &[".md"]) {
        for link in links(&prose(&fs::read_to_string(&page).expect("a page"))) {
            n_links += 1;
            if let Some(flaw) = flaw(&page, &link) {
                let page = page.strip_prefix(&root).unwrap_or(&page).display();
                wrong.push(format!("{page}: {link} {flaw}"));
            }
        }
    }
    assert!(n_links > 100, "only {n_links} links found: the search is broken");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_dead_link_or_section_is_found() {
    let Some(root) = root() else { return };
    let page = root.join("docs/design.md");
    assert_eq!(flaw(&page, "grid.md"), None);
    assert_eq!(flaw(&page, "#freezing"), None);
    assert!(flaw(&page, "no-such-page.md").is_some());
    assert!(flaw(&page, "design.md#no-such-section").is_some());
    assert_eq!(links("a [b](c.md) and ![d](e.svg \"f\")"), ["c.md", "e.svg"]);
}

#[test]
fn comments_name_sections_of_the_design_that_exist() {
    let Some(root) = root() else { return };
    let known: BTreeSet<String> = headings(&root.join("docs/design.md")).into_iter().collect();
    let mut n_named = 0;
    for file in files(&root, &[".rs", ".py"]) {
        // Comments may break anywhere: their lines are joined first.
        let text = fs::read_to_string(&file).expect("a source file");
        let lines = text.lines().map(|line| line.trim_start().trim_start_matches(['/', '!', '#']).trim());
        let text = lines.collect::<Vec<_>>().join(" ");
        for rest in text.split("docs/design.md, \"").skip(1) {
            let Some((name, _)) = rest.split_once('"') else { continue };
            if file.ends_with("tests/pages.rs") {
                continue;
            }
            n_named += 1;
            assert!(known.contains(name), "{}: docs/design.md has no section {name:?}", file.display());
        }
    }
    assert!(n_named > 30, "only {n_named} references found: the search is broken");
}
