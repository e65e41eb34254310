//! Source text as words, strings and signs, without its comments: as much of a language as it takes to tell a marker from a remark about one.

/// A piece of source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    /// What stands between quotes.
    Text(&'a str),
    Sign(char),
}

/// How a language writes what is not code.
#[derive(Debug)]
pub(super) struct Syntax {
    /// What begins a comment that ends with the line.
    pub(super) line_comments: &'static [&'static str],
    pub(super) block_comment: Option<(&'static str, &'static str)>,
    /// Longer ones first.
    pub(super) quotes: &'static [Quote],
    pub(super) oddity: Oddity,
}

#[derive(Debug)]
pub(super) struct Quote {
    pub(super) mark: &'static str,
    /// Whether it goes on in the next line. Where it may not, a quote that was misread costs one line and no more.
    pub(super) spans_lines: bool,
    /// Whether a backslash takes the next character's meaning away.
    pub(super) escapes: bool,
}

/// What one language has and others have not.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    None,
    /// Raw strings with any number of `#`, lifetimes that look like open quotes, comments in comments.
    Rust,
    /// Regular expressions between slashes, code within strings.
    Script,
}

/// Reads the tokens, each with whether it is the first one in its line.
pub(super) fn read<'a>(source: &'a str, syntax: &Syntax) -> Vec<(Token<'a>, bool)> {
    let mut reader = Reader { rest: source, syntax, tokens: Vec::new(), first_in_line: true };
    while !reader.rest.is_empty() {
        reader.step();
    }
    reader.tokens
}

struct Reader<'a, 's> {
    rest: &'a str,
    syntax: &'s Syntax,
    tokens: Vec<(Token<'a>, bool)>,
    first_in_line: bool,
}

impl<'a> Reader<'a, '_> {
    fn step(&mut self) {
        let Some(c) = self.rest.chars().next() else { return };
        if c.is_whitespace() {
            self.first_in_line |= c == '\n';
            self.take(c.len_utf8());
        } else if !(self.comment() || self.odd() || self.quote()) {
            if is_of_word(c) {
                let end = self.rest.find(|c| !is_of_word(c)).unwrap_or(self.rest.len());
                let word = self.take(end);
                self.push(Token::Word(word));
            } else {
                self.take(c.len_utf8());
                self.push(Token::Sign(c));
            }
        }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    fn push(&mut self, token: Token<'a>) {
        self.tokens.push((token, self.first_in_line));
        self.first_in_line = false;
    }

    fn comment(&mut self) -> bool {
        if self.syntax.line_comments.iter().any(|mark| self.rest.starts_with(mark)) {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.take(end);
            return true;
        }
        let Some((open, close)) = self.syntax.block_comment.filter(|(open, _)| self.rest.starts_with(open)) else { return false };
        let end = if self.syntax.oddity == Oddity::Rust {
            end_of_nested(self.rest, open, close)
        } else {
            self.rest[open.len()..].find(close).map(|at| open.len() + at + close.len())
        };
        self.take(end.unwrap_or(self.rest.len()));
        true
    }

    fn quote(&mut self) -> bool {
        let Some(quote) = self.syntax.quotes.iter().find(|quote| self.rest.starts_with(quote.mark)) else { return false };
        let open = quote.mark.len();
        let Some(length) = end_of_text(&self.rest[open..], quote) else { return false };
        self.text(open, length, open);
        true
    }

    /// Takes a text of `length` bytes between two marks.
    fn text(&mut self, open: usize, length: usize, close: usize) {
        self.take(open);
        let text = self.take(length);
        self.take(close);
        self.push(Token::Text(text));
    }

    fn odd(&mut self) -> bool {
        match self.syntax.oddity {
            Oddity::None => false,
            Oddity::Rust => self.raw_string() || self.character_or_lifetime(),
            Oddity::Script => self.template() || self.expression(),
        }
    }

    /// `r#"…"#` and its kin.
    fn raw_string(&mut self) -> bool {
        let Some(after) = ["br", "cr", "r"].iter().find_map(|prefix| self.rest.strip_prefix(prefix)) else { return false };
        let hashes = after.len() - after.trim_start_matches('#').len();
        let Some(body) = after[hashes..].strip_prefix('"') else { return false };
        let close = format!("\"{}", &after[..hashes]);
        let Some(length) = body.find(&close) else { return false };
        self.text(self.rest.len() - body.len(), length, close.len());
        true
    }

    fn character_or_lifetime(&mut self) -> bool {
        let Some(after) = self.rest.strip_prefix('\'') else { return false };
        let mut characters = after.char_indices();
        let first = characters.next().map(|(_, c)| c);
        let length = match first {
            // The escaped character itself may be a quote.
            Some('\\') => characters.nth(1).and_then(|(at, _)| Some(at + after[at..].find('\'')?)),
            _ => characters.next().and_then(|(at, c)| (c == '\'').then_some(at)),
        };
        match length.filter(|length| *length <= 12) {
            Some(length) => self.text(1, length, 1),
            None => {
                self.take(1);
            }
        }
        true
    }

    fn template(&mut self) -> bool {
        let Some(body) = self.rest.strip_prefix('`') else { return false };
        let Some(length) = end_of_template(body, 0) else { return false };
        self.text(1, length, 1);
        true
    }

    /// A slash begins an expression where a value may stand, and divides after one.
    fn expression(&mut self) -> bool {
        let Some(body) = self.rest.strip_prefix('/') else { return false };
        let after_value = match self.tokens.last() {
            None => false,
            Some((Token::Word(word), _)) => !matches!(*word, "return" | "typeof" | "case" | "in" | "of" | "await" | "yield"),
            Some((Token::Text(_), _)) => true,
            Some((Token::Sign(sign), _)) => matches!(sign, ')' | ']' | '}'),
        };
        let Some(length) = (!after_value).then(|| end_of_expression(body)).flatten() else { return false };
        self.text(1, length, 1);
        true
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn end_of_text(body: &str, quote: &Quote) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote.escapes => escaped = true,
            '\n' if !quote.spans_lines => return None,
            _ if body[at..].starts_with(quote.mark) => return Some(at),
            _ => {}
        }
    }
    None
}

fn end_of_nested(text: &str, open: &str, close: &str) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(open) {
            depth += 1;
            at += open.len();
        } else if rest.starts_with(close) {
            depth -= 1;
            at += close.len();
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    None
}

/// More templates within templates than this are nobody's.
const DEEPEST: usize = 16;

/// The length of a template, which may hold code, which may hold templates.
fn end_of_template(body: &str, depth: usize) -> Option<usize> {
    let (mut at, mut braces) = (0, 0_usize);
    while depth < DEEPEST && at < body.len() {
        let rest = &body[at..];
        let c = rest.chars().next()?;
        match c {
            '\\' => at += 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '`' if braces == 0 => return Some(at),
            '`' => at += end_of_template(&rest[1..], depth + 1)? + 2,
            '$' if rest.starts_with("${") => {
                braces += 1;
                at += 2;
            }
            '{' if braces > 0 => {
                braces += 1;
                at += 1;
            }
            '}' if braces > 0 => {
                braces -= 1;
                at += 1;
            }
            _ => at += c.len_utf8(),
        }
    }
    None
}

fn end_of_expression(body: &str) -> Option<usize> {
    let (mut escaped, mut in_class) = (false, false);
    for (at, c) in body.char_indices() {
        match c {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => return Some(at),
            _ => {}
        }
    }
    None
}
