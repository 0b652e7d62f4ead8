//! The generator against real servers that misbehave on purpose. Nothing here depends on how fast the machine is:
//! counts are exact, and of times only bounds are looked at that a slow machine keeps too.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "tests"
)]

mod support;

use std::collections::BTreeMap;
use std::future::{pending, ready};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use recalld_load::{Address, Arrival, Call, LoadError, Plan, Report, Stats, run, spawn};
use support::{End, Server, at_once, stalling};

fn report(plan: &Plan) -> Report {
    run(plan, pending()).unwrap()
}

fn only(report: Report) -> Stats {
    let [(_, stats)]: [_; 1] = report.methods.try_into().unwrap();
    stats
}

/// Share of all calls that took at least so long.
fn waited(stats: &Stats, least: Duration) -> f64 {
    1.0 - stats.share_within(least)
}

#[test]
fn a_stall_shows_in_the_open_loop_and_hides_in_the_closed_one() {
    const STALL: Duration = Duration::from_millis(300);
    let plan = |server: &Server, arrival| Plan {
        duration: Duration::from_secs(1),
        ..server.plan(arrival)
    };

    let server = Server::unix(stalling(100, STALL));
    let open = only(report(&plan(&server, Arrival::Rate(500.0))));
    let server = Server::unix(stalling(100, STALL));
    let closed = only(report(&plan(&server, Arrival::Callers(1))));

    // The calls of the 300 ms are 150 of 500; those of its first half waited at least the other half.
    let (open_share, closed_share) = (waited(&open, STALL / 2), waited(&closed, STALL / 2));
    assert!(open_share >= 0.14, "{open_share}");
    assert!(open.quantile(0.99) >= STALL * 9 / 10);
    // One caller was there to wait, once, and it made no other call meanwhile.
    assert!(closed.max() >= STALL * 9 / 10);
    assert!(closed_share < open_share / 5.0, "{closed_share}");
    assert_eq!(open.ok(), 500);
}

#[test]
fn every_planned_call_is_made_and_counted_and_none_sooner() {
    let server = Server::unix(|_| at_once(End::Answer(0)));
    let plan = Plan {
        warmup: Duration::from_millis(100),
        ..server.plan(Arrival::Rate(1_000.0))
    };
    let report = report(&plan);
    assert!(report.elapsed >= plan.duration);
    assert!(report.cpu > 0.0);
    assert_eq!((report.lag.calls, report.lag.ok()), (500, 500));
    let stats = only(report);
    assert_eq!(
        (stats.calls, stats.ok(), stats.unsent),
        (500, 500, 0),
        "the warm-up is left out"
    );
    assert_eq!(server.calls(), 600, "and was made");
    assert!((stats.share_within(plan.timeout) - 1.0).abs() < 1e-9);
}

#[test]
fn a_run_without_a_measured_call_takes_its_time() {
    let server = Server::unix(|_| at_once(End::Answer(0)));
    let plan = Plan {
        warmup: Duration::from_millis(10),
        duration: Duration::from_millis(20),
        ..server.plan(Arrival::Rate(1.0))
    };
    let report = report(&plan);
    assert!(report.elapsed >= plan.duration);
    assert!(report.cpu.is_finite());
    assert_eq!((report.total().calls, server.calls()), (0, 1));
}

#[test]
fn kinds_of_calls_are_mixed_and_reported_apart_over_all_connections() {
    let server = Server::tcp(|_| at_once(End::Answer(0)));
    let plan = Plan {
        calls: vec![
            Call::new("/test.Service/Read", [b"first".as_slice(), b"second"], 3.0),
            Call::new("/test.Service/Write", [b"third"], 1.0),
        ],
        connections: 3,
        ..server.plan(Arrival::Rate(400.0))
    };
    let report = report(&plan);
    let names: Vec<_> = report.methods.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, ["/test.Service/Read", "/test.Service/Write"]);
    let total = report.total();
    assert_eq!((total.calls, total.ok()), (200, 200));
    assert_eq!(server.seen.connections.load(Ordering::SeqCst), 3);
    let seen = server.seen.methods.lock().unwrap();
    for (name, stats) in &report.methods {
        assert_eq!(seen[name].len() as u64, stats.calls);
    }
    let reads = &seen["/test.Service/Read"];
    let first = |request: &&Vec<u8>| &request[5..] == b"first";
    assert_eq!(reads.iter().filter(first).count(), reads.len().div_ceil(2));
    assert!(report.methods[0].1.calls > report.methods[1].1.calls);
}

#[test]
fn failures_are_counted_by_code() {
    let server = Server::unix(|number| {
        at_once(match number % 4 {
            0 => End::Answer(0),
            1 => End::Answer(13),
            2 => End::Refusal(8, "slow down"),
            _ => End::Refusal(8, "not again"),
        })
    });
    let stats = only(report(&server.plan(Arrival::Rate(200.0))));
    assert_eq!(stats.codes, BTreeMap::from([(0, 25), (8, 50), (13, 25)]));
    assert_eq!(stats.messages[&13], "");
    assert_eq!(stats.messages[&8], "slow down");
    assert_eq!((stats.calls, stats.ok()), (100, 25));
    assert!((stats.share_within(Duration::MAX) - 0.25).abs() < 1e-9);
}

#[test]
fn a_broken_connection_fails_its_calls() {
    let server = Server::unix(|number| {
        at_once(match number {
            0..50 => End::Answer(0),
            _ => End::Hangup,
        })
    });
    let stats = only(report(&server.plan(Arrival::Rate(200.0))));
    assert_eq!(stats.calls, 100);
    // What was answered but had not left goes down with the connection.
    let ok = stats.ok();
    assert!((1..=50).contains(&ok), "{ok}");
    assert_eq!(stats.codes, BTreeMap::from([(0, ok), (14, 100 - ok)]));
    assert!(!stats.messages[&14].is_empty());
}

#[test]
fn calls_that_find_no_place_wait_until_their_deadline() {
    let server = Server::unix(|_| Box::pin(pending()));
    let plan = Plan {
        timeout: Duration::from_millis(100),
        max_in_flight: 10,
        ..server.plan(Arrival::Rate(400.0))
    };
    let stats = only(report(&plan));
    let expired = stats.codes[&4];
    assert_eq!(stats.calls, 200);
    // A place is free when the call that has it expires, before the one that waits for it does; one that is late all
    // the same is not sent.
    assert_eq!(stats.unsent + expired, 200);
    assert!(expired >= 10, "{expired}");
    assert_eq!(server.seen.most_at_once.load(Ordering::SeqCst), 10);
    assert_eq!(stats.share_within(Duration::MAX).to_bits(), 0);
    assert_eq!(stats.messages[&4], "no answer before the deadline");
}

#[test]
fn what_is_too_late_to_be_sent_is_counted() {
    let server = Server::unix(|_| at_once(End::Answer(0)));
    let plan = Plan {
        timeout: Duration::from_nanos(1),
        ..server.plan(Arrival::Rate(400.0))
    };
    let stats = only(report(&plan));
    assert_eq!((stats.calls, stats.unsent, stats.ok()), (200, 200, 0));
    assert_eq!(server.calls(), 0);
    assert_eq!(stats.share_within(Duration::MAX).to_bits(), 0);
}

#[test]
fn a_server_that_cannot_keep_up_lets_calls_wait_and_the_wait_counts() {
    const SERVICE: Duration = Duration::from_millis(5);
    // One call at a time: at most 200 a second.
    let turn = Arc::new(tokio::sync::Mutex::new(()));
    let server = Server::unix(move |_| {
        let turn = Arc::clone(&turn);
        Box::pin(async move {
            let _mine = turn.lock().await;
            tokio::time::sleep(SERVICE).await;
            End::Answer(0)
        })
    });
    let report = report(&server.plan(Arrival::Rate(400.0)));
    // 200 calls of 5 ms each.
    assert!(report.elapsed >= SERVICE * 190);
    let stats = only(report);
    assert_eq!(stats.ok(), 200);
    // The last was planned within the half second, and answered after the whole one.
    assert!(stats.max() >= SERVICE * 90);
}

#[test]
fn callers_call_one_after_the_other() {
    let server = Server::unix(|_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(2)).await;
            End::Answer(0)
        })
    });
    let plan = Plan {
        connections: 2,
        ..server.plan(Arrival::Callers(3))
    };
    let stats = only(report(&plan));
    assert_eq!(stats.calls, stats.ok());
    assert_eq!(server.calls(), stats.calls);
    assert!(server.seen.most_at_once.load(Ordering::SeqCst) <= 3);
    // Each call takes 2 ms at least.
    assert!((3..=3 * 250).contains(&stats.calls), "{}", stats.calls);
}

#[test]
fn nobody_there_is_an_error_that_names_the_address() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("none.sock");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().to_string();
    drop(free);
    for address in [Address::Unix(socket), Address::Tcp(port)] {
        let server = Server::unix(|_| at_once(End::Answer(0)));
        let plan = Plan {
            address: address.clone(),
            ..server.plan(Arrival::Rate(1.0))
        };
        let error = run(&plan, pending()).unwrap_err();
        assert!(matches!(error, LoadError::Connect { .. }));
        assert!(error.to_string().contains(&address.to_string()));
    }
}

#[test]
fn a_run_can_be_cancelled() {
    let server = Server::unix(|_| at_once(End::Answer(0)));
    let plan = Plan {
        duration: Duration::from_secs(3_600),
        ..server.plan(Arrival::Rate(100.0))
    };
    assert!(matches!(run(&plan, ready(())), Err(LoadError::Cancelled)));

    let mut running = spawn(plan).unwrap();
    while server.calls() < 10 {
        assert!(running.wait(Duration::from_millis(1)).is_none());
    }
    drop(running);
    // The thread is gone once its connection is.
    let short = spawn(server.plan(Arrival::Rate(100.0)))
        .unwrap()
        .wait(Duration::from_secs(60));
    assert_eq!(only(short.unwrap().unwrap()).ok(), 50);
}
