//! `report.html`: one self-contained page, light and dark, without network.
//!
//! A report is data: sections of blocks, each a chart or table that `report.js` draws. The page's own style and script
//! are inlined; the data are embedded as JSON, so a report is also machine-readable.

mod blocks;
pub(crate) mod partition;
pub(crate) mod parts;

pub(crate) use blocks::{Axis, Block, Column, Figure, Mark, Series};

use minijinja::{Environment, Value, context};
use serde::Serialize;

use crate::failure::{Failure, Outcome};

const TEMPLATE: &str = include_str!("report.html");
const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// The content of a report.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    pub(crate) title: String,
    /// The small line above the title.
    pub(crate) kicker: String,
    /// The sentence below it.
    pub(crate) lead: String,
    pub(crate) headline: Vec<Headline>,
    pub(crate) sections: Vec<Section>,
}

/// One figure at the top.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Headline {
    pub(crate) label: String,
    pub(crate) value: String,
    pub(crate) note: String,
}

impl Headline {
    fn to_value(&self) -> Value {
        context! { label => self.label.as_str(), value => self.value.as_str(), note => self.note.as_str() }
    }
}

/// A section of the page: text on the left, blocks on the right.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) text: Vec<String>,
    pub(crate) blocks: Vec<Block>,
}

impl Section {
    pub(crate) fn new(title: &str, text: &[&str], blocks: Vec<Block>) -> Self {
        Self { title: title.to_owned(), text: text.iter().map(|&t| t.to_owned()).collect(), blocks }
    }
}

impl Report {
    /// A figure at the top.
    pub(crate) fn headline(&mut self, label: &str, value: impl Into<String>, note: impl Into<String>) {
        self.headline.push(Headline { label: label.to_owned(), value: value.into(), note: note.into() });
    }

    /// The page.
    pub(crate) fn to_html(&self) -> Outcome<String> {
        let fail = |e: &dyn std::fmt::Display| Failure::Other(format!("the report cannot be made: {e}"));
        // Inside a script element only "<" could end it or start a comment.
        let data = serde_json::to_string(self).map_err(|e| fail(&e))?.replace('<', "\\u003c");
        let mut environment = Environment::new();
        environment.add_template("report.html", TEMPLATE).map_err(|e| fail(&e))?;
        let template = environment.get_template("report.html").map_err(|e| fail(&e))?;
        template
            .render(context! {
                version => env!("CARGO_PKG_VERSION"),
                title => self.title.as_str(),
                kicker => self.kicker.as_str(),
                lead => self.lead.as_str(),
                headline => self.headline.iter().map(Headline::to_value).collect::<Vec<_>>(),
                css => Value::from_safe_string(STYLE.to_owned()),
                script => Value::from_safe_string(SCRIPT.to_owned()),
                data => Value::from_safe_string(data),
            })
            .map_err(|e| fail(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_whole_and_cannot_be_broken_by_names() {
        let evil = "</script><script>alert(1)</script><!--";
        let report = Report {
            title: evil.into(),
            kicker: "a & b".into(),
            lead: String::new(),
            headline: Vec::new(),
            sections: vec![Section::new(evil, &[evil], Vec::new())],
        };
        let page = report.to_html().unwrap();
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!(page.matches("</script>").count(), 2);
        assert!(!page.contains("<!--") && page.contains("a &amp; b"));
        // Nothing is fetched: no address but the namespaces of SVG.
        for (at, _) in page.match_indices("http") {
            assert!(page[at..].starts_with("http://www.w3.org/2000/svg"), "{}", &page[at..at + 40]);
        }
    }
}
