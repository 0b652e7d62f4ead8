//! The journal is the truth: applied again in an empty directory it gives the same tables, byte for byte.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::*;
use proptest::prelude::*;
use recalld_engine::replay::replay;
use recalld_engine::types::{Idempotency, NewMemory, Write};
use recalld_store::{OpenOptions, Store};

#[derive(Debug, Clone)]
enum Step {
    Put {
        space: u8,
        key: u8,
        text: String,
        ttl: Option<u8>,
        repeat: bool,
    },
    Delete {
        space: u8,
        key: u8,
    },
    Wait(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3u8, 0..6u8, "[a-e ]{1,40}|[日月山 ]{1,9}", proptest::option::of(1..5u8), any::<bool>())
            .prop_map(|(space, key, text, ttl, repeat)| Step::Put { space, key, text: format!("x{text}"), ttl, repeat }),
        2 => (0..3u8, 0..6u8).prop_map(|(space, key)| Step::Delete { space, key }),
        1 => (1..4u8).prop_map(Step::Wait),
    ]
}

fn tables(
    directory: &std::path::Path,
    identity: &recalld_proto::storage::v1::StoreIdentity,
) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let open = OpenOptions {
        max_bytes: 1 << 34,
        address: String::new(),
        identity: identity.clone(),
    };
    let store = Store::open(directory, &open).unwrap();
    let txn = store.read().unwrap();
    let mut all = Vec::new();
    for table in store.schema().tables() {
        for entry in table.all(&txn).unwrap() {
            let (key, value) = entry.unwrap();
            if key != recalld_store::keys::META_IDENTITY {
                all.push((table.name().to_owned(), key.to_vec(), value.to_vec()));
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn replaying_the_journal_gives_the_same_bytes(steps in proptest::collection::vec(step(), 1..40)) {
        let bench = Bench::new();
        for (i, step) in steps.into_iter().enumerate() {
            match step {
                Step::Put { space, key, text, ttl, repeat } => {
                    let key = if key == 0 { String::new() } else { format!("k{key}") };
                    let item = match ttl {
                        Some(ttl) => expiring(&key, &text, Duration::from_secs(u64::from(ttl))),
                        None => NewMemory { digest: Some([text.len() as u8; 16]), ..memory(&key, &text) },
                    };
                    let idempotency = Some(Idempotency { key: format!("i{i}"), digest: [i as u8; 32] });
                    let write = Write { idempotency, ..write(&ns(&[&format!("s{space}")]), vec![item]) };
                    let first = bench.engine.write(write.clone(), None).unwrap();
                    if repeat {
                        prop_assert_eq!(bench.engine.write(write, None).unwrap(), first);
                    }
                }
                Step::Delete { space, key } => {
                    bench.delete_keys(&ns(&[&format!("s{space}")]), &[&format!("k{key}")]).unwrap();
                }
                Step::Wait(seconds) => bench.clock.advance(i64::from(seconds) * SECOND),
            }
        }
        let Bench { directory, options, engine, .. } = bench;
        drop(engine);
        prop_assert_eq!(recalld_engine::verify::verify(&options).unwrap(), []);
        let empty = tempfile::tempdir().unwrap();
        let identity = replay(&options, empty.path()).unwrap();
        let (original, replayed) = (tables(directory.path(), &identity), tables(empty.path(), &identity));
        prop_assert_eq!(original.len(), replayed.len());
        for (a, b) in original.iter().zip(&replayed) {
            prop_assert_eq!(a, b);
        }
    }
}
