//! Lists of work: `feature_list.json`, `prd.json`, and the check boxes of a Markdown file, read into one model.
//!
//! The content of a file tells which of them it is, not its name:
//! - JSON with `features` (or a bare list of objects): `id`, `description`, `steps`, `passes`, `model`, `verify`;
//! - JSON with `userStories`: `id`, `title`, `description`, `acceptanceCriteria`, `passes`;
//! - both may say `priority`, `dependsOn` (`depends_on`, `blockedBy`), `optional`, `agent` and `pool`;
//! - anything else is Markdown, where a comment says the same: [`crate::gate::list::checkboxes`] says what counts as a box there.
//!
//! The JSON is plain JSON, because the scripts that people have for these files read nothing else. An item passes where `passes` is the value
//! `true`; anything else is open. An item without an id is called `item-N` by its place; the second item of an id `X` is called `X#2`.
//!
//! Items come in order of priority, 1 first, then of the file. One whose dependencies are open is not worked on, and an optional one is not needed.
//!
//! Marking an item as done changes that one value. Every other byte stays.

mod checkboxes;
mod dependencies;
mod json_tree;

use std::{collections::BTreeMap, ops::Range};

use json_tree::{Kind, Member, Node};

use crate::text::{Problem, clean, opening, utf8, without_bom};

/// A larger file is no list of work.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Item {
    pub id: String,
    pub title: String,
    pub steps: Vec<String>,
    /// For each step whether its box is ticked; `None` for one without a box. Empty where steps have none.
    pub boxes: Vec<Option<bool>>,
    /// The list's own word.
    pub passes: bool,
    /// The model that should work on it.
    pub model: Option<String>,
    /// The agent that should.
    pub agent: Option<String>,
    /// The workers that may.
    pub pool: Option<String>,
    /// The ids of the items that have to be done before.
    pub depends_on: Vec<String>,
    /// The work is complete without it.
    pub optional: bool,
    /// Its rank, as the list says it; 1 comes first.
    pub priority: Option<String>,
    /// Lines for the shell that must all succeed before it counts as done.
    pub verify: Vec<String>,
    /// A mistake in the list because of which it counts as open, whatever the list says.
    pub problem: Option<String>,
}

impl Item {
    /// Whether the list itself says that there is something to do. The item's own commands are not asked.
    pub fn is_open(&self) -> bool {
        !self.passes || self.problem.is_some()
    }

    /// Whether it is called by its place, so that it is another one as soon as something is put before it.
    pub fn is_by_place(&self) -> bool {
        self.id.strip_prefix("item-").is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `feature_list.json`
    Features,
    /// `prd.json`
    Stories,
    /// Check boxes.
    Markdown,
}

/// A list as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    pub format: Format,
    /// In the order in which they are to be worked on. Never empty.
    pub items: Vec<Item>,
    /// Further mistakes, one sentence each.
    pub mistakes: Vec<String>,
    marks: Vec<Mark>,
}

/// The change that marks an item as done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mark {
    /// These bytes become that text.
    Replace(Vec<Range<usize>>, &'static str),
    /// There is no value yet: this text is added.
    Insert(usize, String),
    /// It is no item that could be marked.
    Nowhere,
}

impl List {
    pub fn parse(bytes: &[u8]) -> Result<Self, Problem> {
        if bytes.len() > MAX_BYTES {
            return Err(Problem::new(None, format!("it is larger than {} MB", MAX_BYTES >> 20)));
        }
        let text = utf8(bytes)?;
        let body = without_bom(text).trim();
        if body.is_empty() {
            return Err(Problem::new(None, "the file is empty"));
        }
        let mut list = if looks_like_json(body) { of_json(text)? } else { of_markdown(text)? };
        list.name_apart();
        dependencies::check(&list.items)?;
        Ok(list)
    }

    /// The item called `id`, as the list spells it or as it is shown.
    pub fn find(&self, id: &str) -> Option<usize> {
        let spelled = self.items.iter().position(|item| item.id == id);
        spelled.or_else(|| self.items.iter().position(|item| clean(&item.id) == id))
    }

    pub fn open(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.is_open())
    }

    /// The open items without which the work is not complete.
    pub fn needed(&self) -> impl Iterator<Item = &Item> {
        self.open().filter(|item| !item.optional)
    }

    /// The item to work on next: the first that is open and waits for no other. An optional one comes only where nothing else can be done.
    pub fn next(&self) -> Option<&Item> {
        let is_ready = |item: &&Item| item.depends_on.iter().all(|id| self.find(id).is_none_or(|at| !self.items[at].is_open()));
        self.needed().find(is_ready).or_else(|| self.open().find(is_ready))
    }

    /// The words by which a loop is held to this item, whatever is put before it: its id, or its title where the id is only its place. `None`: nothing
    /// tells it from another item.
    pub fn lasting_name(&self, index: usize) -> Option<&str> {
        let item = self.items.get(index)?;
        let name = if item.is_by_place() { &item.title } else { &item.id };
        (self.held(name) == Some(index)).then_some(name)
    }

    /// The item of a lasting name.
    pub fn held(&self, name: &str) -> Option<usize> {
        let is_called = |item: &Item| if item.is_by_place() { item.title == name } else { item.id == name };
        let mut found = self.items.iter().enumerate().filter(|(_, item)| is_called(item)).map(|(at, _)| at);
        found.next().filter(|_| found.next().is_none())
    }

    /// The list as a loop sees it that is about one item alone: nothing else is open, and the item is needed.
    pub(super) fn only(self, name: &str) -> Option<List> {
        let at = self.held(name)?;
        let List { format, mut items, mistakes, mut marks } = self;
        let item = Item { optional: false, ..items.swap_remove(at) };
        Some(List { format, items: vec![item], mistakes, marks: vec![marks.swap_remove(at)] })
    }

    /// The file with one item marked as done; `bytes` are those that this list was read from.
    pub fn with_done(&self, bytes: &[u8], index: usize) -> Result<Vec<u8>, Problem> {
        let (spans, new) = match self.marks.get(index) {
            Some(Mark::Replace(spans, new)) => (spans.clone(), (*new).to_owned()),
            Some(Mark::Insert(at, new)) => (std::iter::once(*at..*at).collect(), new.clone()),
            Some(Mark::Nowhere) | None => return Err(Problem::new(None, "it is not an item that could be marked as done")),
        };
        let mut out = bytes.to_vec();
        for span in spans.into_iter().rev() {
            out.splice(span, new.bytes());
        }
        // The new file must say that it is done.
        let again = List::parse(&out)?;
        match again.items.get(index).and_then(|item| item.problem.clone()) {
            Some(problem) => Err(Problem::new(None, problem)),
            None => Ok(out),
        }
    }

    /// Gives every item an id of its own.
    fn name_apart(&mut self) {
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        for item in &mut self.items {
            let count = seen.entry(item.id.clone()).or_default();
            *count += 1;
            if *count > 1 {
                self.mistakes
                    .push(format!("the id {} is given more than once; the next item of that id is called {}#{count}", item.id, item.id));
                item.id = format!("{}#{count}", item.id);
            }
        }
    }
}

/// Markdown may begin with a bracket, too: `[ ] …`, `[![badge]…`.
fn looks_like_json(body: &str) -> bool {
    body.starts_with('{')
        || body.strip_prefix('[').is_some_and(|rest| matches!(rest.trim_start(), "]") || rest.trim_start().starts_with('{'))
}

fn of_markdown(text: &str) -> Result<List, Problem> {
    let mut read = checkboxes::read(text);
    read.sort_by(|(a, _), (b, _)| rank_of(a.priority.as_deref()).total_cmp(&rank_of(b.priority.as_deref())));
    let (items, marks): (Vec<_>, Vec<_>) = read.into_iter().unzip();
    if items.is_empty() {
        return Err(Problem::new(
            None,
            "there is no item in it: neither JSON with `features` or `userStories`, nor a Markdown check box (`- [ ] text`)",
        ));
    }
    Ok(List { format: Format::Markdown, items, mistakes: Vec::new(), marks })
}

/// A place in the queue; what has no priority comes after what has one.
fn rank_of(priority: Option<&str>) -> f64 {
    priority.and_then(|rank| rank.parse().ok()).unwrap_or(f64::INFINITY)
}

fn of_json(text: &str) -> Result<List, Problem> {
    let root = json_tree::parse(text)?;
    let members = root.members();
    let (format, node) = match (root.kind(), json_tree::get(&members, "features"), json_tree::get(&members, "userStories")) {
        (Kind::List, ..) => (Format::Features, &root),
        (_, Some(features), _) => (Format::Features, features),
        (_, None, Some(stories)) => (Format::Stories, stories),
        (_, None, None) => return Err(Problem::new(None, "there is no `features` list and no `userStories` list in it")),
    };
    if node.kind() != Kind::List {
        let key = if format == Format::Features { "features" } else { "userStories" };
        return Err(Problem::new(node.line(), format!("`{key}` must be a list, and is {}", node.kind())));
    }
    let elements = node.elements();
    if elements.is_empty() {
        return Err(Problem::new(node.line(), "the list is empty, and an empty list proves nothing"));
    }
    let mut mistakes = Vec::new();
    let mut read: Vec<(f64, Item, Mark)> = Vec::new();
    for (n, element) in elements.iter().enumerate() {
        let reader = Reader { text, element, members: element.members(), place: n + 1 };
        let (item, mark) = reader.item(&mut mistakes);
        read.push((reader.priority(), item, mark));
    }
    read.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (items, marks) = read.into_iter().map(|(_, item, mark)| (item, mark)).unzip();
    Ok(List { format, items, mistakes, marks })
}

/// Reads one element of a JSON list.
struct Reader<'a> {
    text: &'a str,
    element: &'a Node<'a>,
    members: Vec<Member<'a>>,
    /// From 1.
    place: usize,
}

impl Reader<'_> {
    fn get(&self, key: &str) -> Option<&Node<'_>> {
        json_tree::get(&self.members, key)
    }

    fn item(&self, mistakes: &mut Vec<String>) -> (Item, Mark) {
        let given = self.get("id");
        let id = match given.map(Node::kind) {
            Some(Kind::Number) => given.map(|id| id.raw().to_owned()),
            _ => given.and_then(Node::string).map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()),
        };
        let id = id.unwrap_or_else(|| format!("item-{}", self.place));
        if self.element.kind() != Kind::Object {
            let problem = self.at(self.element, &format!("is {}, and must be an object", self.element.kind()));
            return (Item { id, title: self.element.raw().to_owned(), problem: Some(problem), ..Item::default() }, Mark::Nowhere);
        }
        if let Some(strange) = given.filter(|id| matches!(id.kind(), Kind::Bool | Kind::List | Kind::Object)) {
            mistakes.push(self.at(strange, &format!("has an `id` that is {}; it is called {id} here", strange.kind())));
        }
        let mut problem = None;
        let passes = self.passes(&mut problem);
        let verify = self.lines("verify", &mut problem);
        // A mistake in the steps does not make them any less to do.
        let steps = ["steps", "acceptanceCriteria"].iter().flat_map(|key| self.lines(key, &mut None)).collect();
        let item = Item {
            title: self.title(),
            steps,
            passes,
            model: self.words("model"),
            agent: self.words("agent"),
            pool: self.words("pool"),
            depends_on: ["dependsOn", "depends_on", "blockedBy"].iter().flat_map(|key| self.ids(key, &mut problem)).collect(),
            optional: self.get("optional").is_some_and(|node| node.raw() == "true"),
            priority: self.rank(),
            verify,
            problem,
            id,
            ..Item::default()
        };
        (item, self.mark())
    }

    fn title(&self) -> String {
        match (self.words("title").or_else(|| self.words("name")), self.words("description")) {
            (Some(title), Some(about)) => format!("{title}: {about}"),
            (Some(text), None) | (None, Some(text)) => text,
            (None, None) => String::new(),
        }
    }

    fn passes(&self, problem: &mut Option<String>) -> bool {
        let Some(node) = self.get("passes") else { return false };
        if !matches!(node.kind(), Kind::Bool | Kind::Null) {
            let shown = opening(node.raw(), 40);
            let what = format!("has `passes: {shown}`, which is {}: it must be true or false, so it counts as open", node.kind());
            *problem = Some(self.at(node, &what));
        }
        node.raw() == "true"
    }

    /// One text, or a list of them.
    fn lines(&self, key: &str, problem: &mut Option<String>) -> Vec<String> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let elements = match node.kind() {
            Kind::Null => Vec::new(),
            Kind::List => node.elements(),
            _ => vec![node.clone()],
        };
        let mut out = Vec::new();
        for element in elements {
            match element.string() {
                Some(text) if text.trim().is_empty() => {}
                Some(text) => out.push(text),
                None => {
                    let what =
                        format!("has a `{key}` that is {}: it must be a text or a list of texts, so it counts as open", element.kind());
                    problem.get_or_insert_with(|| self.at(&element, &what));
                    out.push(element.raw().to_owned());
                }
            }
        }
        out
    }

    /// Ids of other items: one, or a list of them.
    fn ids(&self, key: &str, problem: &mut Option<String>) -> Vec<String> {
        let Some(node) = self.get(key).filter(|node| node.kind() != Kind::Null) else { return Vec::new() };
        let elements = if node.kind() == Kind::List { node.elements() } else { vec![node.clone()] };
        let mut out = Vec::new();
        for element in elements {
            match element.kind() {
                Kind::Number => out.push(element.raw().to_owned()),
                Kind::Text => out.extend(element.string().map(|id| id.trim().to_owned()).filter(|id| !id.is_empty())),
                kind => {
                    let what =
                        format!("has a `{key}` that is {kind}: it must be the id of an item or a list of them, so it counts as open");
                    problem.get_or_insert_with(|| self.at(&element, &what));
                }
            }
        }
        out
    }

    fn words(&self, key: &str) -> Option<String> {
        self.get(key)?.string().filter(|text| !text.trim().is_empty())
    }

    /// Its place in the queue; an item without a priority comes after those that have one.
    fn priority(&self) -> f64 {
        rank_of(self.rank().as_deref())
    }

    fn rank(&self) -> Option<String> {
        let node = self.get("priority").filter(|node| matches!(node.kind(), Kind::Number | Kind::Text))?;
        Some(node.string().unwrap_or_else(|| node.raw().to_owned()).trim().to_owned())
    }

    fn mark(&self) -> Mark {
        match (self.get("passes"), self.members.last()) {
            (Some(node), _) => Mark::Replace(vec![node.span.clone()], "true"),
            (None, Some(last)) => self.after(last),
            (None, None) => Mark::Insert(self.element.span.start + 1, "\"passes\": true".to_owned()),
        }
    }

    /// A new member behind the last one, set apart as that one is.
    fn after(&self, last: &Member<'_>) -> Mark {
        let before = &self.text[..last.key.span.start];
        let gap = &before[before.trim_end().len()..];
        let colon = &self.text[last.key.span.end..last.value.span.start];
        Mark::Insert(last.value.span.end, format!(",{gap}\"passes\"{colon}true"))
    }

    /// A sentence about this item, with its line.
    fn at(&self, node: &Node<'_>, what: &str) -> String {
        format!("line {}: item {} {what}", node.line(), self.place)
    }
}

#[cfg(test)]
mod tests;
