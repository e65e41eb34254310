//! All that was ever written to the jobs of a fleet, and what must be true of it.

use std::collections::BTreeMap;

use ralph_fleet::records::{Job, State};

pub(crate) type Histories = BTreeMap<String, Vec<Job>>;

/// What a bucket has kept of each key, the oldest first. It is read from the stream itself.
pub(crate) fn of_keys(url: &str, fleet: &str) -> BTreeMap<String, Vec<Vec<u8>>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let context = async_nats::jetstream::new(async_nats::connect(url).await.unwrap());
        let mut stream = context.get_stream(format!("KV_ralph-{fleet}")).await.unwrap();
        let (last, mut all) = (stream.info().await.unwrap().state.last_sequence, BTreeMap::<String, Vec<Vec<u8>>>::new());
        for sequence in 1..=last {
            // What is written often is not kept whole.
            let Ok(message) = stream.get_raw_message(sequence).await else { continue };
            let key = message.subject.strip_prefix(&format!("$KV.ralph-{fleet}.")).unwrap();
            all.entry(key.to_owned()).or_default().push(message.payload.to_vec());
        }
        all
    })
}

/// The jobs among them.
#[allow(dead_code, reason = "not all tests have jobs")]
pub(crate) fn of_jobs(url: &str, fleet: &str) -> Histories {
    let jobs = |(key, values): (String, Vec<Vec<u8>>)| {
        let id = key.strip_prefix("job.")?.to_owned();
        Some((id, values.iter().map(|value| serde_json::from_slice(value).unwrap()).collect()))
    };
    of_keys(url, fleet).into_iter().filter_map(jobs).collect()
}

/// Every write was its holder's, and each job landed once. `writer`: who wrote a value, where that is known; otherwise the value has to fit to its holder.
#[allow(dead_code, reason = "not all tests have jobs")]
pub(crate) fn check(histories: &Histories, jobs: usize, writer: impl Fn(&Job) -> Option<&str>) {
    assert_eq!(histories.len(), jobs);
    for (id, values) in histories {
        let landed = values.iter().filter(|job| job.state == State::Landed).count();
        assert_eq!(landed, 1, "{id} landed {landed} times");
        assert_eq!(values[0].token, 1, "the beginning of {id} was not kept");
        for pair in values.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            assert!(!before.is_over(), "{id} was over and written again: {after:?}");
            if after.token != before.token {
                assert_eq!(after.token, before.token + 1, "a stale write of {id} was accepted: {before:?} → {after:?}");
                continue;
            }
            let holder = before.worker.as_deref();
            let is_its_own = before.is_held() && writer(after).or(after.worker.as_deref()).is_none_or(|name| Some(name) == holder);
            // Without a holder: a person lets it go on, or it is found on the target.
            let has_none = !before.is_held() && (before.state == State::NeedsPerson || after.state == State::Landed);
            assert!(is_its_own || has_none && !after.is_held(), "a stale write of {id} was accepted: {before:?} → {after:?}");
        }
    }
}
