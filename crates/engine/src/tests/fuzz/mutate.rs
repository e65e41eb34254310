//! Making new inputs of old ones: reproducible by their seed.

/// Random enough for this: xorshift.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`; 0 for 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() >> 16) as usize % n.max(1)
    }
}

/// Words that mean something to most parsers.
const WORDS: &[&str] = &[
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    "\0",
    "\"",
    "'",
    "\\",
    "\\n",
    "\\u0000",
    "\\ud800",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    ":",
    ",",
    "=",
    "#",
    "-",
    "---\n",
    "```\n",
    "`",
    "~~~",
    "|",
    "&",
    "*",
    "!",
    "%",
    "@",
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1e999",
    "18446744073709551616",
    "9223372036854775807",
    "0.0000001",
    "NaN",
    "\u{feff}",
    "ü",
    "日本語",
    "\u{1f980}",
    "\u{202e}",
    "\u{1b}[31m",
    "\u{7f}",
    "\u{85}",
    "\u{2028}",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "&lt;",
    "&amp;",
    "&#0;",
    "2026-11-15T10:00:00.000Z",
    "../..",
    "//",
    "\\\"",
    "\\\\",
];

/// What is opened and closed, for nesting.
const PAIRS: &[(&str, &str)] = &[
    ("{\"a\":", "}"),
    ("[", "]"),
    ("(", ")"),
    ("<a>", "</a>"),
    ("\"", "\""),
    ("- ", ""),
    ("  ", ""),
    ("> ", ""),
    ("`", "`"),
    ("<testsuite>", "</testsuite>"),
];

/// Makes one input after the other.
pub(crate) struct Mutator<'a> {
    pub(crate) random: &'a mut Random,
    pub(crate) corpus: &'a [Vec<u8>],
    pub(crate) words: &'static [&'static str],
    pub(crate) most: usize,
}

impl Mutator<'_> {
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let mut input = self.sample();
        for _ in 0..=self.random.below(8) {
            self.mutate(&mut input);
        }
        input.truncate(self.most);
        input
    }

    fn sample(&mut self) -> Vec<u8> {
        let at = self.random.below(self.corpus.len());
        self.corpus.get(at).cloned().unwrap_or_default()
    }

    fn word(&mut self) -> Vec<u8> {
        let all = WORDS.len() + 3 * self.words.len();
        let at = self.random.below(all);
        let word = if at < WORDS.len() { WORDS[at] } else { self.words[(at - WORDS.len()) % self.words.len()] };
        word.as_bytes().to_vec()
    }

    /// A part of the input, mostly a short one.
    fn part(&mut self, len: usize) -> std::ops::Range<usize> {
        let from = self.random.below(len + 1);
        let most = if self.random.below(4) == 0 { len - from } else { (len - from).min(40) };
        from..from + self.random.below(most + 1)
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let place = self.random.below(input.len() + 1);
        match self.random.below(12) {
            0 if place < input.len() => input[place] ^= 1 << self.random.below(8),
            1 if place < input.len() => input[place] = self.random.next().to_le_bytes()[0],
            2 => input.truncate(place),
            3 => drop(input.drain(self.part(input.len()))),
            4 => {
                let part = input[self.part(input.len())].to_vec();
                let times = [1, 2, 3, 10, 100, 1_000][self.random.below(6)];
                let times = times.min(self.most / part.len().max(1));
                input.splice(place..place, part.repeat(times));
            }
            5 => {
                let other = self.sample();
                let range = self.part(other.len());
                input.splice(place..place, other[range].to_vec());
            }
            6 => {
                let other = self.sample();
                let from = self.random.below(other.len() + 1);
                input.truncate(place);
                input.extend_from_slice(&other[from..]);
            }
            7 => {
                let (open, close) = PAIRS[self.random.below(PAIRS.len())];
                let depth = [1, 5, 50, 500, 5_000][self.random.below(5)];
                let range = self.part(input.len());
                let nested = [open.repeat(depth).into_bytes(), input[range.clone()].to_vec(), close.repeat(depth).into_bytes()].concat();
                input.splice(range, nested);
            }
            8 => {
                let word = self.word();
                let times = [1, 1, 1, 2, 50, 2_000][self.random.below(6)];
                input.splice(place..place, word.repeat(times.min(self.most / word.len().max(1))));
            }
            9 => {
                // A number becomes another one.
                if let Some(at) = input[place..].iter().position(u8::is_ascii_digit) {
                    let from = place + at;
                    let len = input[from..].iter().take_while(|b| b.is_ascii_digit()).count();
                    let word = self.word();
                    input.splice(from..from + len, word);
                }
            }
            _ => {
                let word = self.word();
                let range = if self.random.below(2) == 0 { place..place } else { self.part(input.len()) };
                input.splice(range, word);
            }
        }
        input.truncate(4 * self.most);
    }
}
