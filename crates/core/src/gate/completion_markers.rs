//! Completion markers (S3-6): the words that a check agent writes when it has done what a task's `check.jsonl` asks for.

use serde::Deserialize;

/// A longer `reason` is no word that an agent could be asked to write.
const MAX_CHARS: usize = 100;

/// More markers than this are a mistake.
const MAX_MARKERS: usize = 100;

/// One line of the file. Every other field is for people and other programs.
#[derive(Deserialize)]
struct Line {
    reason: Option<String>,
}

/// The marker of every reason, each once, in the order of the file. A line that is no JSON object asks for nothing.
pub fn completion_markers(bytes: &[u8]) -> Vec<String> {
    let mut markers = Vec::new();
    for line in bytes.split(|b| *b == b'\n') {
        let reason = serde_json::from_slice::<Line>(line.trim_ascii()).ok().and_then(|line| line.reason);
        let marker = reason.as_deref().and_then(of_reason).filter(|marker| !markers.contains(marker));
        markers.extend(marker);
        if markers.len() == MAX_MARKERS {
            break;
        }
    }
    markers
}

/// `type check` asks for `TYPE_CHECK_FINISH`.
fn of_reason(reason: &str) -> Option<String> {
    let word: String =
        reason.trim().chars().flat_map(char::to_uppercase).map(|c| if c.is_alphanumeric() { c } else { '_' }).take(MAX_CHARS).collect();
    word.contains(char::is_alphanumeric).then(|| format!("{word}_FINISH"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn s3_6_a_marker_for_every_reason() {
        let file = b"{\"file\": \"a.md\", \"reason\": \"Lint\"}\r\n\n{\"reason\": \"type-check (strict)\"}\nnot json\n{\"file\": \"b\"}\n{\"reason\": \"lint\"}\n\
            {\"reason\": \"\"}\n{\"reason\": \" -- \"}\n{\"reason\": 7}\n[]\n{\"reason\": \"\xc3\xbcber\"}";
        assert_eq!(completion_markers(file), ["LINT_FINISH", "TYPE_CHECK__STRICT__FINISH", "ÜBER_FINISH"]);
        assert_eq!(completion_markers(b""), Vec::<String>::new());
        let many = (0..500).map(|n| format!("{{\"reason\": \"r{n}\"}}")).collect::<Vec<_>>().join("\n");
        assert_eq!(completion_markers(many.as_bytes()).len(), MAX_MARKERS);
    }

    proptest! {
        #[test]
        fn s3_6_any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), reason in ".{0,200}") {
            let _ = completion_markers(&bytes);
            if let Some(marker) = of_reason(&reason) {
                prop_assert!(marker.ends_with("_FINISH") && marker.chars().all(|c| c.is_alphanumeric() || c == '_'));
            }
        }
    }
}
