//! Puts neighbours together, so that ten thousand iterations take no more room than two hundred.

use ralph_core::{
    history::{Phase, Span, Took, Used},
    report::{Changed, Report},
    text::time::Millis,
};

/// Neighbours in groups of equal size (the last may be smaller), as few as are needed for no more than `most` groups.
pub(super) fn groups<T>(all: &[T], most: usize) -> Vec<&[T]> {
    all.chunks(size(all.len(), most)).collect()
}

/// How many are in a group: a number that people count in.
pub(super) fn size(len: usize, most: usize) -> usize {
    let least = len.div_ceil(most.max(1)).max(1);
    let mut power = 1;
    loop {
        match [1, 2, 5].into_iter().map(|digit| digit * power).find(|size| *size >= least) {
            Some(size) => return size,
            None => power *= 10,
        }
    }
}

/// An iteration as a chart shows it.
pub(super) struct Charted {
    iteration: u64,
    pub(super) item: Option<String>,
    pub(super) took: Took,
    pub(super) used: Used,
    pub(super) changed: Option<Changed>,
    /// How one stands that is not over: most of a loop may have been spent in it.
    note: &'static str,
}

/// All iterations, the one that was cut off or goes on at the end.
pub(super) fn charted(r: &Report) -> Vec<Charted> {
    let over = r.rounds.iter().map(|row| Charted {
        iteration: row.round.iteration,
        item: row.round.item.clone(),
        took: row.round.took,
        used: row.round.used,
        changed: row.changed,
        note: "",
    });
    let note = if r.ended.is_some() { " cut off" } else { " so far" };
    let open = r.unfinished.map(|u| Charted { iteration: u.iteration, item: None, took: u.took, used: u.used, changed: None, note });
    over.chain(open).collect()
}

/// `7`, or `7–9` for a group of iterations.
pub(super) fn label(rows: &[Charted]) -> String {
    match rows {
        [] => String::new(),
        [one] => format!("{}{}", one.iteration, one.note),
        [first, .., last] => format!("{}–{}{}", first.iteration, last.iteration, last.note),
    }
}

/// How long iterations took together.
pub(super) fn took(rows: &[Charted]) -> Took {
    rows.iter().fold(Took::default(), |sum, row| sum.plus(row.took))
}

/// A piece of the clock's time, and how much of it was spent on what.
pub(super) struct Slice {
    pub(super) from: Millis,
    pub(super) to: Millis,
    /// Milliseconds, in the order of [`Phase::ALL`].
    pub(super) spent: [u64; 5],
}

/// Spans as they are where they are few, else cut into `most` slices of equal length.
pub(super) fn slices(spans: &[Span], most: usize) -> Vec<Slice> {
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else { return Vec::new() };
    let place = |phase: Phase| Phase::ALL.iter().position(|one| *one == phase).unwrap_or(0);
    let long = |from: Millis, to: Millis| u64::try_from(to - from).unwrap_or(0);
    if spans.len() <= most {
        let whole = |span: &Span| {
            let mut spent = [0; 5];
            spent[place(span.phase)] = long(span.from, span.to);
            Slice { from: span.from, to: span.to, spent }
        };
        return spans.iter().map(whole).collect();
    }
    let (begin, length) = (first.from, (last.to - first.from).max(1));
    let count = Millis::try_from(most).unwrap_or(1).max(1);
    let border = |n: Millis| begin + Millis::try_from(i128::from(length) * i128::from(n) / i128::from(count)).unwrap_or(0);
    let mut slices: Vec<Slice> = (0..count).map(|n| Slice { from: border(n), to: border(n + 1), spent: [0; 5] }).collect();
    let mut at = 0;
    for span in spans {
        while at + 1 < slices.len() && slices[at].to <= span.from {
            at += 1;
        }
        for slice in slices[at..].iter_mut().take_while(|slice| slice.from < span.to) {
            slice.spent[place(span.phase)] += long(span.from.max(slice.from), span.to.min(slice.to));
        }
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eyes_2_few_stand_alone_and_many_together() {
        let ten: Vec<u32> = (0..10).collect();
        assert_eq!(groups(&ten, 10).len(), 10);
        assert_eq!(groups(&ten, 4).iter().map(|group| group.len()).collect::<Vec<_>>(), [5, 5]);
        assert!(groups::<u32>(&[], 4).is_empty());
        assert_eq!(groups(&ten, 0).len(), 1);
        assert_eq!([(60, 60), (61, 60), (10_000, 60), (10_000, 200)].map(|(len, most)| size(len, most)), [1, 2, 200, 50]);
    }

    #[test]
    fn eyes_2_slices_lose_no_time() {
        let span = |n: i64| Span { from: n * 10, to: n * 10 + 10, phase: Phase::ALL[usize::try_from(n).unwrap() % 5] };
        let spans: Vec<Span> = (0..1_000).map(span).collect();
        for most in [1, 7, 240, 5_000] {
            let slices = slices(&spans, most);
            assert!(slices.len() <= most);
            let sum: [u64; 5] = slices.iter().fold([0; 5], |sum, slice| std::array::from_fn(|n| sum[n] + slice.spent[n]));
            assert_eq!(sum, [2_000; 5], "{most}");
        }
        assert!(slices(&[], 5).is_empty());
    }
}
