//! YAML as values that know their line and their bytes: for the front matter of loop files and for `worktree.yaml`.
//!
//! All nodes are in one list, and collections and aliases refer to them by index. So a file full of aliases takes no more room than it has bytes, and nothing
//! here or in the readers recurses.

use std::{collections::BTreeMap, ops::Range};

use granit_parser::{Event, Parser, ScalarStyle};

use super::Problem;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document {
    /// The first one is the root.
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) line: usize,
    /// The bytes of a scalar.
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Scalar {
        text: String,
        /// Written without quotes, so that `null`, `true` and numbers mean themselves.
        plain: bool,
    },
    List(Vec<usize>),
    /// Keys and values in turn.
    Map(Vec<usize>),
    Alias(usize),
}

impl Node {
    pub(crate) fn text(&self) -> Option<&str> {
        if let Value::Scalar { text, .. } = &self.value { Some(text) } else { None }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    pub(crate) fn problem(&self, what: impl Into<String>) -> Problem {
        Problem::new(self.line, what)
    }
}

impl Document {
    /// Reads a document whose first line has the number `first_line` in its file.
    pub(crate) fn parse(yaml: &str, first_line: usize) -> Result<Self, Problem> {
        let numbered = |line: usize| first_line + line.saturating_sub(1);
        // Room for the keys and values of a loop file, which is read at every stop.
        let mut nodes: Vec<Node> = Vec::with_capacity(64);
        let mut open: Vec<usize> = Vec::new();
        let mut anchors = BTreeMap::new();
        for item in Parser::new_from_str(yaml) {
            let (event, span) = item.map_err(|e| Problem::new(numbered(e.marker().line()), e.info()))?;
            let line = numbered(span.start.line());
            let (value, anchor) = match event {
                Event::DocumentStart(..) if !nodes.is_empty() => return Err(Problem::new(line, "there is more than one document")),
                Event::SequenceEnd | Event::MappingEnd => {
                    open.pop();
                    continue;
                }
                Event::Scalar(text, style, anchor, _) => {
                    (Value::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain }, anchor)
                }
                Event::SequenceStart(_, anchor, _) => (Value::List(Vec::new()), anchor),
                Event::MappingStart(_, anchor, _) => (Value::Map(Vec::new()), anchor),
                Event::Alias(anchor) => (Value::Alias(anchors.get(&anchor).copied().unwrap_or_default()), 0),
                _ => continue,
            };
            let index = nodes.len();
            if let Some(Value::List(children) | Value::Map(children)) = open.last().map(|parent| &mut nodes[*parent].value) {
                children.push(index);
            }
            if anchor != 0 {
                anchors.insert(anchor, index);
            }
            if matches!(value, Value::List(_) | Value::Map(_)) {
                open.push(index);
            }
            nodes.push(Node { line, span: span.byte_range().unwrap_or_default(), value });
        }
        Ok(Document { nodes })
    }

    pub(crate) fn root(&self) -> Option<&Node> {
        self.nodes.first()
    }

    /// The node that an alias stands for; any other stands for itself.
    pub(crate) fn resolved<'a>(&'a self, node: &'a Node) -> &'a Node {
        if let Value::Alias(target) = node.value { &self.nodes[target] } else { node }
    }

    /// An element of a list, resolved.
    pub(crate) fn child(&self, index: usize) -> &Node {
        self.resolved(&self.nodes[index])
    }

    /// The keys of a mapping with their values, aliases as they are; none for any other node.
    pub(crate) fn pairs<'a>(&'a self, node: Option<&'a Node>) -> impl Iterator<Item = (&'a Node, &'a Node)> {
        let indices = if let Some(Node { value: Value::Map(indices), .. }) = node { indices.as_slice() } else { &[] };
        indices.chunks_exact(2).map(|pair| (&self.nodes[pair[0]], &self.nodes[pair[1]]))
    }

    /// A key of the root with its value. A key that is given twice is a mistake.
    pub(crate) fn get(&self, key: &str) -> Result<Option<(&Node, &Node)>, Problem> {
        let mut found = self.pairs(self.root()).filter(|(name, _)| name.text() == Some(key));
        let first = found.next();
        match found.next() {
            Some((second, _)) => Err(second.problem(format!("`{key}` is given twice"))),
            None => Ok(first),
        }
    }

    /// Gives the scalar with these bytes another text of the same length.
    pub(crate) fn replace(&mut self, at: &Range<usize>, new: &str) -> bool {
        let scalar = self.nodes.iter_mut().filter(|node| node.span == *at).find_map(|node| match &mut node.value {
            Value::Scalar { text, .. } => Some(text),
            _ => None,
        });
        scalar.map(|text| new.clone_into(text)).is_some()
    }
}
