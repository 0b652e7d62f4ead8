//! What can be wrong with a directory or a disk, and that each case has its own error and loses nothing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use common::*;
use recalld_engine::clock::SystemClock;
use recalld_engine::{Engine, EngineError, verify::verify};
use recalld_store::StoreError;

fn open(options: &recalld_engine::EngineOptions) -> Result<Engine, EngineError> {
    Engine::open(options, Arc::new(SystemClock))
}

#[test]
fn a_second_opener_learns_who_holds_the_directory() {
    let bench = Bench::with(|options| options.address = "unix:/run/recalld.sock".to_owned());
    match open(&bench.options).map(|_| ()) {
        Err(EngineError::Store(StoreError::Locked { pid, address, .. })) => {
            assert_eq!(pid, std::process::id().to_string());
            assert_eq!(address, "unix:/run/recalld.sock");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_missing_parent_and_a_file_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("no/such");
    let error = open(&options(&missing)).map(|_| ()).unwrap_err();
    assert!(
        matches!(&error, EngineError::Store(StoreError::DirectoryMissing { path }) if path.ends_with("no"))
    );
    let file = directory.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = open(&options(&file)).map(|_| ()).unwrap_err();
    assert!(matches!(
        error,
        EngineError::Store(StoreError::NotADirectory { .. })
    ));
}

#[test]
fn a_directory_of_another_embedder_is_refused() {
    let bench = Bench::new();
    let Bench {
        directory,
        mut options,
        engine,
        ..
    } = bench;
    drop(engine);
    let other = tempfile::tempdir().unwrap();
    for file in ["model.safetensors", "vocab.txt", "neighbours.safetensors"] {
        std::fs::copy(model_dir().join(file), other.path().join(file)).unwrap();
    }
    // Another probability is another model.
    let vocabulary = other.path().join("vocab.txt");
    let text = std::fs::read_to_string(&vocabulary).unwrap();
    std::fs::write(&vocabulary, format!("{}1\n", text.trim_end())).unwrap();
    options.model_dir = other.path().to_owned();
    let error = open(&options).map(|_| ()).unwrap_err();
    assert!(
        matches!(error, EngineError::Store(StoreError::Embedder { .. })),
        "{error}"
    );
    options.model_dir = model_dir();
    open(&options).unwrap();
    drop(directory);
}

#[test]
fn a_full_store_refuses_the_write_and_keeps_the_rest() {
    let bench = Bench::with(|options| options.max_store_bytes = 4 << 20);
    let space = ns(&["full"]);
    let body = "A sentence about something else entirely, number ".repeat(400);
    let mut kept = Vec::new();
    let mut refused = None;
    for i in 0..400 {
        let key = format!("k{i}");
        match bench.engine.write(
            write(&space, vec![memory(&key, &format!("{body}{i}"))]),
            None,
        ) {
            Ok(_) => kept.push(key),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let refused = refused.unwrap();
    assert!(
        matches!(refused, EngineError::Store(StoreError::Full { .. })),
        "{refused}"
    );
    assert!(kept.len() > 10);
    let mut bench = bench.reopen();
    for key in &kept {
        assert_eq!(
            bench.contents(&space, &[key]).len(),
            1,
            "{key} was acknowledged"
        );
    }
    bench.options.max_store_bytes = 64 << 20;
    let bench = bench.reopen();
    bench.put(&space, vec![memory("more", "There is room again.")]);
    assert_eq!(bench.contents(&space, &["more"]).len(), 1);
}

/// Overwrites `from` with `to` (of the same length) in the data file.
fn damage(directory: &std::path::Path, from: &[u8], to: &[u8]) -> usize {
    let path = directory.join("data.mdb");
    let mut bytes = std::fs::read(&path).unwrap();
    let mut places = 0;
    let mut at = 0;
    while let Some(found) = bytes[at..]
        .windows(from.len())
        .position(|window| window == from)
    {
        bytes[at + found..at + found + to.len()].copy_from_slice(to);
        at += found + to.len();
        places += 1;
    }
    std::fs::write(&path, bytes).unwrap();
    places
}

#[test]
fn a_damaged_record_is_an_error_of_its_own_and_the_others_are_read() {
    let bench = Bench::new();
    let space = ns(&["damage"]);
    bench.put(
        &space,
        vec![
            memory("bad", "The zanzibar invoice is overdue."),
            memory("good", "All is well here."),
        ],
    );
    let Bench {
        directory,
        clock,
        options,
        engine,
    } = bench;
    drop(engine);
    assert_eq!(verify(&options).unwrap(), []);
    assert!(damage(directory.path(), b"zanzibar invoice", b"zanzibar invoiXe") > 0);
    let problems = verify(&options).unwrap();
    assert!(
        problems
            .iter()
            .any(|problem| problem.location.contains("contents/")),
        "{problems:?}"
    );
    let engine = Engine::open(&options, clock.clone()).unwrap();
    let bench = Bench {
        directory,
        clock,
        options,
        engine,
    };
    let error = bench
        .engine
        .get(&get_keys(&space, &["bad"]), None)
        .unwrap_err();
    assert!(
        matches!(error, EngineError::Store(StoreError::Damaged { .. })),
        "{error}"
    );
    assert_eq!(bench.contents(&space, &["good"]), ["All is well here."]);
    // A write beside the damaged record is not held up by it.
    bench.put(&space, vec![memory("new", "Written afterwards.")]);
    assert_eq!(bench.contents(&space, &["new"]), ["Written afterwards."]);
}

#[test]
fn a_file_that_is_no_store_is_said_to_be_damaged() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("data.mdb"), vec![7u8; 65536]).unwrap();
    let error = open(&options(directory.path())).map(|_| ()).unwrap_err();
    assert!(
        matches!(error, EngineError::Store(StoreError::Corrupted { .. })),
        "{error}"
    );
}
