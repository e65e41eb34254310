//! `JUnit` files: what most test programs can write, each in its own dialect.
//!
//! A failure is named `classname::name`, or `name` alone where there is no class. A `failure` or `error` outside of a test case is one of its
//! suite. Nothing of a DTD is read: a file that has one is refused, and only the entities that XML itself knows are resolved.

use quick_xml::{
    XmlVersion,
    events::{BytesStart, Event},
    reader::Reader,
};

use super::TestResults;

/// Deeper files are not written by test programs.
const DEEPEST: usize = 100;

impl TestResults {
    /// Reads the results out of a whole `JUnit` file.
    pub fn of_junit(xml: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(xml).map_err(|_| "not UTF-8".to_owned())?;
        let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
        let mut file = File::default();
        loop {
            match reader.read_event().map_err(|e| format!("not XML: {e}"))? {
                Event::Start(tag) => file.begin(&tag)?,
                Event::Empty(tag) => {
                    file.begin(&tag)?;
                    file.end()?;
                }
                Event::End(_) => file.end()?,
                Event::DocType(_) => return Err("it has a DTD, which is not read".to_owned()),
                Event::Eof => return file.results(),
                _ => {}
            }
        }
    }
}

#[derive(Default)]
struct File {
    results: TestResults,
    open: Vec<Element>,
    has_root: bool,
}

enum Element {
    Suite { name: String, has_failed: bool },
    Case { name: String, outcome: Outcome },
    Other,
}

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Outcome {
    Passed,
    Skipped,
    Failed,
}

impl File {
    fn begin(&mut self, tag: &BytesStart<'_>) -> Result<(), String> {
        let local = tag.local_name();
        let kind: &str = local.as_ref();
        if self.open.len() >= DEEPEST {
            return Err("its elements are nested too deeply".to_owned());
        }
        if self.open.is_empty() {
            if self.has_root || !matches!(kind, "testsuites" | "testsuite") {
                return Err(format!("no JUnit file: <{}> is not a suite of tests", crate::text::opening(kind, 40)));
            }
            self.has_root = true;
        }
        let element = match kind {
            "testsuites" | "testsuite" => Element::Suite { name: attribute(tag, "name")?.unwrap_or_default(), has_failed: false },
            "testcase" => Element::Case { name: case_name(tag)?, outcome: Outcome::Passed },
            "failure" | "error" => self.mark(Outcome::Failed),
            "skipped" => self.mark(Outcome::Skipped),
            _ => Element::Other,
        };
        self.open.push(element);
        Ok(())
    }

    /// A child that says something about the element around it.
    fn mark(&mut self, said: Outcome) -> Element {
        match self.open.last_mut() {
            Some(Element::Case { outcome, .. }) if *outcome < said => *outcome = said,
            Some(Element::Suite { has_failed, .. }) => *has_failed |= said == Outcome::Failed,
            _ => {}
        }
        Element::Other
    }

    fn end(&mut self) -> Result<(), String> {
        let failed = match self.open.pop() {
            Some(Element::Case { outcome: Outcome::Passed, .. }) => {
                self.results.passed += 1;
                None
            }
            Some(Element::Case { outcome: Outcome::Skipped, .. }) => {
                self.results.ignored += 1;
                None
            }
            Some(Element::Case { name, outcome: Outcome::Failed } | Element::Suite { name, has_failed: true }) => Some(name),
            _ => None,
        };
        failed.map_or(Some(()), |name| self.results.fail(&name)).ok_or_else(|| "too many failures to tell them apart".to_owned())
    }

    fn results(self) -> Result<TestResults, String> {
        if !self.has_root {
            Err("no JUnit file: it is empty".to_owned())
        } else if self.open.is_empty() {
            Ok(self.results)
        } else {
            Err("it ends in the middle".to_owned())
        }
    }
}

fn case_name(tag: &BytesStart<'_>) -> Result<String, String> {
    let name = attribute(tag, "name")?.ok_or("a test case has no name")?;
    Ok(match attribute(tag, "classname")?.filter(|class| !class.is_empty()) {
        Some(class) => format!("{class}::{name}"),
        None => name,
    })
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Result<Option<String>, String> {
    let Some(attribute) = tag.try_get_attribute(name).map_err(|e| format!("not XML: {e}"))? else { return Ok(None) };
    let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|e| format!("not XML: {e}"))?;
    Ok(Some(value.into_owned()))
}
