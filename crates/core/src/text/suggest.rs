//! Suggestions for misspelt words.

/// The candidate that `word` is a misspelling of, if it is one: a third of its letters may be wrong.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, near) = candidates.map(|c| (distance(c, word), c)).min()?;
    (distance * 3 <= near.chars().count()).then_some(near)
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let keys = ["max_iterations", "hours", "active"];
        let near = |word| nearest(word, keys.into_iter());
        assert_eq!(near("max_iteration"), Some("max_iterations"));
        assert_eq!(near("hour"), Some("hours"));
        assert_eq!(near("bogus"), None);
        assert_eq!(nearest("x", std::iter::empty()), None);
    }
}
