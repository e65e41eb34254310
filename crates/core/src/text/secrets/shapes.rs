//! Tokens whose shape says whose they are: one row for each.

use super::{LONGEST, Step, is_word};

/// A kind of token: how it begins, what follows, and how much of that at least.
struct Shape {
    starts: &'static str,
    body: fn(u8) -> bool,
    least: usize,
    /// Whether a digit has to be in it. Words that people write have none.
    digit: bool,
    /// A longer run is something else; 0: any length will do.
    most: usize,
}

const fn shape(starts: &'static str, body: fn(u8) -> bool, least: usize) -> Shape {
    Shape { starts, body, least, digit: false, most: 0 }
}

const fn with_digit(starts: &'static str, body: fn(u8) -> bool, least: usize) -> Shape {
    Shape { digit: true, ..shape(starts, body, least) }
}

const fn exactly(starts: &'static str, body: fn(u8) -> bool, n: usize) -> Shape {
    Shape { most: n, ..shape(starts, body, n) }
}

fn alnum(b: u8) -> bool {
    b.is_ascii_alphanumeric()
}

fn alnum_(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

fn upper(b: u8) -> bool {
    b.is_ascii_uppercase() || b.is_ascii_digit()
}

fn hex(b: u8) -> bool {
    matches!(b, b'0'..=b'9' | b'a'..=b'f')
}

/// Letters and digits in parts: of an address, or between dots.
fn path(b: u8) -> bool {
    is_word(b) || b == b'/'
}

fn dotted(b: u8) -> bool {
    is_word(b) || b == b'.'
}

/// A header's value behind the scheme.
pub(super) fn header(b: u8) -> bool {
    is_word(b) || matches!(b, b'.' | b'~' | b'+' | b'/' | b'=')
}

/// Sorted by their first byte.
static SHAPES: &[Shape] = &[
    // Amazon: access keys, long and short-lived.
    exactly("ABIA", upper, 16),
    exactly("ACCA", upper, 16),
    shape("AGE-SECRET-KEY-1", upper, 30),
    // Google: keys, later client secrets and tokens.
    shape("AIza", is_word, 30),
    exactly("AKIA", upper, 16),
    exactly("ASIA", upper, 16),
    // Atlassian.
    with_digit("ATATT3", header, 30),
    with_digit("ATCTT3", header, 30),
    with_digit("EAAA", is_word, 50),
    shape("GOCSPX-", is_word, 20),
    with_digit("HRKU-", is_word, 20),
    with_digit("NRAK-", alnum, 20),
    with_digit("PMAK-", is_word, 30),
    with_digit("SG.", dotted, 40),
    // Twilio.
    exactly("SK", hex, 32),
    with_digit("dapi", hex, 32),
    with_digit("dckr_oat_", is_word, 20),
    with_digit("dckr_pat_", is_word, 20),
    shape("discord.com/api/webhooks/", path, 40),
    shape("discordapp.com/api/webhooks/", path, 40),
    with_digit("doo_v1_", hex, 40),
    with_digit("dop_v1_", hex, 40),
    with_digit("dor_v1_", hex, 40),
    with_digit("dp.ct.", alnum, 30),
    with_digit("dp.pt.", alnum, 30),
    with_digit("dp.st.", dotted, 30),
    // GitHub.
    shape("gho_", alnum, 30),
    shape("ghp_", alnum, 30),
    shape("ghr_", alnum, 30),
    shape("ghs_", alnum, 30),
    shape("ghu_", alnum, 30),
    shape("github_pat_", alnum_, 30),
    // GitLab, and Grafana in between.
    shape("glagent-", dotted, 20),
    shape("glc_", header, 32),
    shape("glcbt-", dotted, 20),
    shape("gldt-", dotted, 20),
    shape("glffct-", dotted, 20),
    shape("glft-", dotted, 20),
    shape("glimt-", dotted, 20),
    shape("gloas-", dotted, 20),
    shape("glpat-", dotted, 20),
    shape("glptt-", dotted, 20),
    shape("glrt-", dotted, 20),
    shape("glsa_", alnum_, 32),
    shape("glsoat-", dotted, 20),
    with_digit("gsk_", alnum, 40),
    shape("hf_", alnum, 30),
    shape("hooks.slack.com/services/", path, 20),
    shape("hooks.slack.com/workflows/", path, 20),
    with_digit("hvb.", is_word, 20),
    with_digit("hvs.", is_word, 20),
    with_digit("key-", hex, 32),
    shape("lin_api_", alnum, 30),
    shape("npm_", alnum, 36),
    with_digit("ntn_", alnum, 40),
    with_digit("pplx-", alnum, 40),
    with_digit("pscale_oauth_", header, 30),
    with_digit("pscale_pw_", header, 30),
    with_digit("pscale_tkn_", header, 30),
    with_digit("pul-", hex, 40),
    shape("pypi-", is_word, 50),
    with_digit("r8_", alnum, 30),
    // Stripe, and others that use its form.
    shape("rk_live_", alnum, 16),
    shape("rk_test_", alnum, 16),
    with_digit("rubygems_", hex, 40),
    shape("sb_secret_", is_word, 20),
    with_digit("sbp_", hex, 40),
    with_digit("secret_", alnum, 40),
    with_digit("shpat_", alnum, 30),
    with_digit("shpca_", alnum, 30),
    with_digit("shppa_", alnum, 30),
    with_digit("shpss_", alnum, 30),
    // Anthropic, OpenAI and others that use their form: the longer ones first.
    shape("sk-admin-", is_word, 20),
    shape("sk-ant-", is_word, 20),
    with_digit("sk-lf-", is_word, 30),
    with_digit("sk-or-v1-", alnum, 30),
    shape("sk-proj-", is_word, 20),
    shape("sk-svcacct-", is_word, 20),
    with_digit("sk-", alnum, 32),
    shape("sk_live_", alnum, 16),
    shape("sk_test_", alnum, 16),
    with_digit("sntrys_", header, 40),
    with_digit("sntryu_", hex, 40),
    with_digit("sq0atp-", is_word, 20),
    with_digit("sq0csp-", is_word, 30),
    shape("whsec_", header, 24),
    with_digit("xai-", alnum, 40),
    // Slack.
    with_digit("xapp-", is_word, 20),
    with_digit("xoxa-", is_word, 16),
    with_digit("xoxb-", is_word, 16),
    with_digit("xoxc-", is_word, 16),
    with_digit("xoxd-", header, 16),
    with_digit("xoxe-", is_word, 16),
    with_digit("xoxe.", dotted, 16),
    with_digit("xoxo-", is_word, 16),
    with_digit("xoxp-", is_word, 16),
    with_digit("xoxr-", is_word, 16),
    with_digit("xoxs-", is_word, 16),
    with_digit("ya29.", dotted, 20),
];

/// Where the rows with this first byte begin and end.
static ROWS: [(u8, u8); 128] = {
    let mut rows = [(0, 0); 128];
    let mut at = 0;
    while at < SHAPES.len() {
        let first = SHAPES[at].starts.as_bytes()[0] as usize;
        #[expect(clippy::cast_possible_truncation, reason = "there are fewer than 255 rows; a test says so")]
        let n = at as u8;
        if rows[first].1 == 0 {
            rows[first].0 = n;
        }
        rows[first].1 = n + 1;
        at += 1;
    }
    rows
};

/// For each first byte the second ones with which something begins: a token of the table or one of those below it, or a private key.
static BEGINS: [u128; 128] = {
    let mut begins = [0; 128];
    let mut at = 0;
    while at < SHAPES.len() {
        let starts = SHAPES[at].starts.as_bytes();
        begins[starts[0] as usize] |= 1 << starts[1];
        at += 1;
    }
    begins[b'e' as usize] |= 1 << b'y';
    begins[b'B' as usize] |= 1 << b'e' | 1 << b'E';
    begins[b'b' as usize] |= 1 << b'e' | 1 << b'E';
    begins[b'-' as usize] |= 1 << b'-';
    begins
};

/// Whether something may begin with these two bytes. A secret of Azure's is known by the byte behind its first word.
pub(super) fn may_begin(first: u8, second: u8) -> bool {
    second < 128 && BEGINS.get(usize::from(first)).is_some_and(|seconds| seconds >> second & 1 == 1)
}

/// A token that begins with the word at `at`, which ends at `end`.
pub(super) fn at(buf: &[u8], at: usize, end: usize, is_end: bool) -> Option<Step> {
    let (first, last) = ROWS.get(usize::from(buf[at])).copied().unwrap_or_default();
    let rest = &buf[at..];
    for shape in &SHAPES[usize::from(first)..usize::from(last)] {
        let starts = shape.starts.as_bytes();
        // The second letter tells most words from it.
        if rest.len() > 1 && rest[1] != starts[1] {
            continue;
        }
        let step =
            if rest.starts_with(starts) { shape.at(buf, at, is_end) } else { (!is_end && starts.starts_with(rest)).then_some(Step::Wait) };
        if step.is_some() {
            return step;
        }
    }
    match buf[at] {
        b'e' => json_web_token(buf, at, is_end),
        b'B' | b'b' => bearer(buf, at, end, is_end),
        _ => None,
    }
    .or_else(|| azure(buf, at, end, is_end))
}

impl Shape {
    fn at(&self, buf: &[u8], at: usize, is_end: bool) -> Option<Step> {
        let from = at + self.starts.len();
        let mut to = from + run(&buf[from..], self.body);
        // A line that was broken within a token: only where the token is not whole without the next one.
        if to - from > 0 && to - from < self.least {
            let gap = buf[to..].iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
            if to + gap == buf.len() && !is_end {
                return Some(Step::Wait);
            }
            if gap > 0 && gap <= 2 {
                let more = run(&buf[to + gap..], self.body);
                if to + gap + more == buf.len() && !is_end {
                    return Some(Step::Wait);
                }
                if to - from + more >= self.least && buf[to + gap..to + gap + more].iter().any(u8::is_ascii_digit) {
                    to += gap + more;
                }
            }
        }
        let body = &buf[from..to];
        let is_cut = to == buf.len() && !is_end;
        if body.len() < self.least || (self.digit && !body.iter().any(u8::is_ascii_digit)) {
            return is_cut.then_some(Step::Wait);
        }
        if self.most > 0 {
            let is_longer = body.len() > self.most || buf.get(to).is_some_and(|b| is_word(*b));
            return if is_longer {
                None
            } else if is_cut {
                Some(Step::Wait)
            } else {
                Some(Step::Mask { from, to, alike: self.body })
            };
        }
        Some(Step::Mask { from, to, alike: self.body })
    }
}

/// How many bytes are alike.
pub(super) fn run(bytes: &[u8], is: fn(u8) -> bool) -> usize {
    bytes.iter().position(|b| !is(*b)).unwrap_or(bytes.len())
}

/// `eyJ….eyJ….signature`: three parts, the first two of which are JSON.
fn json_web_token(buf: &[u8], at: usize, is_end: bool) -> Option<Step> {
    let rest = &buf[at..];
    if !rest.starts_with(b"eyJ") {
        return None;
    }
    let first = run(rest, is_word);
    if first > LONGEST / 2 {
        return None;
    }
    let dots = rest.get(first) == Some(&b'.');
    let second = first + 1 + rest.get(first + 1..).map_or(0, |rest| run(rest, is_word));
    if second > LONGEST - 10 {
        return None;
    }
    if dots && first >= 10 && second - first > 8 && rest.get(second) == Some(&b'.') {
        let to = second + 1 + run(&rest[second + 1..], is_word);
        return Some(Step::Mask { from: at + 3, to: at + to, alike: is_word });
    }
    let is_cut = !is_end && (first == rest.len() || (dots && second >= rest.len()));
    is_cut.then_some(Step::Wait)
}

/// `Bearer …`
fn bearer(buf: &[u8], at: usize, end: usize, is_end: bool) -> Option<Step> {
    if !buf[at..end].eq_ignore_ascii_case(b"bearer") {
        return None;
    }
    if buf.get(end).is_some_and(|b| *b != b' ') {
        return None;
    }
    let from = (end + 1).min(buf.len());
    let to = from + run(&buf[from..], header);
    let body = &buf[from..to];
    if to == buf.len() && !is_end && body.len() < 16 {
        return Some(Step::Wait);
    }
    let is_token = body.len() >= 16 && body.iter().any(u8::is_ascii_digit);
    if is_token { Some(Step::Mask { from, to, alike: header }) } else { (to == buf.len() && !is_end).then_some(Step::Wait) }
}

/// `abc8Q~…`: the secret of a program that is registered with Azure.
fn azure(buf: &[u8], at: usize, end: usize, is_end: bool) -> Option<Step> {
    let word = &buf[at..end];
    if !(word.len() == 5 && word[3].is_ascii_digit() && word[4] == b'Q' && buf.get(end) == Some(&b'~')) {
        return None;
    }
    let is = |b: u8| is_word(b) || matches!(b, b'.' | b'~');
    let to = end + run(&buf[end..], is);
    if to - end > 30 {
        return Some(Step::Mask { from: at, to, alike: is });
    }
    (to == buf.len() && !is_end).then_some(Step::Wait)
}

#[cfg(test)]
pub(super) fn starts() -> Vec<&'static str> {
    SHAPES.iter().map(|shape| shape.starts).collect()
}
