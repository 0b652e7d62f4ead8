//! `WriteRequest` and `WriteItem`.

use super::*;

fn check_item(cases: &[Case<WriteItem>]) {
    let validate = |item| {
        write(
            v1::WriteRequest {
                items: vec![item],
                ..write_request()
            },
            "",
            CONTEXT,
        )
    };
    check(&write_request().items[0], validate, cases);
}

#[test]
fn writes() {
    fn items(request: &mut v1::WriteRequest, n: usize, bytes: usize) {
        request.items = with(
            n,
            &WriteItem {
                content: "a".repeat(bytes),
                ..Default::default()
            },
        );
    }
    // An item of n bytes of content takes n + 4, or n + 5 from 2,097,152 bytes on.
    check(
        &write_request(),
        |request| write(request, "", CONTEXT),
        &[
            (|r| items(r, 0, 0), "items: must be 1 to 1000 items, not 0"),
            (|r| items(r, 1000, 1), ""),
            (
                |r| items(r, 1001, 1),
                "items: must be 1 to 1000 items, not 1001",
            ),
            (|r| items(r, 16, (1 << 20) - 4), ""),
            (
                |r| items(r, 16, (1 << 20) - 3),
                "items: must be at most 16777216 bytes in all, not 16777232",
            ),
            (|r| r.idempotency_key = "k".repeat(128), ""),
            (
                |r| r.idempotency_key = "k".repeat(129),
                "idempotency_key: must be at most 128 bytes, not 129",
            ),
            (
                |r| r.idempotency_key = "\0".to_owned(),
                "idempotency_key: must not contain NUL",
            ),
            (
                |r| {
                    items(r, 3, 1);
                    r.items[0].key = "k".to_owned();
                    r.items[2].key = "k".to_owned();
                },
                "items[2].key: stands in items[0] already",
            ),
        ],
    );
}

#[test]
fn contents() {
    check_item(&[
        (|i| i.content.clear(), "items[0].content: must not be empty"),
        (|i| i.content = "a".repeat(1 << 20), ""),
        (
            |i| i.content = "a".repeat((1 << 20) + 1),
            "items[0].content: must be at most 1048576 bytes, not 1048577",
        ),
        (
            |i| i.content = " \n\u{3000}".to_owned(),
            "items[0].content: must not be white space alone",
        ),
        (
            |i| i.content = "a\0".to_owned(),
            "items[0].content: must not contain NUL",
        ),
        (|i| i.content = "a\u{7}\r\n".to_owned(), ""),
        (|i| i.content_format = 1, ""),
        (
            |i| i.content_format = 3,
            "items[0].content_format: must be TEXT or JSON",
        ),
        (
            |i| {
                i.content_format = 2;
                i.content = "{\"a\": [1, 2.5e3, null, \"\\u00e9\"]} ".to_owned();
            },
            "",
        ),
        (
            |i| i.content_format = 2,
            "items[0].content: must be one JSON document: expected value at line 1 column 1",
        ),
        (
            |i| {
                i.content_format = 2;
                i.content = "1 2".to_owned();
            },
            "items[0].content: must be one JSON document: trailing characters at line 1 column 3",
        ),
        (
            |i| {
                i.content_format = 2;
                i.content = "[".repeat(1 << 20);
            },
            "items[0].content: must be one JSON document: EOF while parsing a list at line 1 column 1048576",
        ),
        (
            |i| {
                i.content_format = 2;
                i.content = "[".repeat(1 << 19) + &"]".repeat(1 << 19);
            },
            "",
        ),
    ]);
}

#[test]
fn items() {
    check_item(&[
        (|i| i.key = "k".repeat(256), ""),
        (
            |i| i.key = "k".repeat(257),
            "items[0].key: must be at most 256 bytes, not 257",
        ),
        (
            |i| i.key = "a\tb".to_owned(),
            "items[0].key: must not contain control characters",
        ),
        (|i| i.kind = "my-kind_2.0".to_owned(), ""),
        (|i| i.kind = "k".repeat(64), ""),
        (
            |i| i.kind = "Fact".to_owned(),
            "items[0].kind: must be 1 to 64 of a-z, 0-9, `_`, `-` and `.`, not \"Fact\"",
        ),
        (
            |i| i.kind = "k".repeat(65),
            "items[0].kind: must be 1 to 64 of a-z, 0-9, `_`, `-` and `.`, not \
             \"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\"...",
        ),
        (|i| i.summary = "s".repeat(2048), ""),
        (
            |i| i.summary = "s".repeat(2049),
            "items[0].summary: must be at most 2048 bytes, not 2049",
        ),
        (
            |i| i.summary = "\0".to_owned(),
            "items[0].summary: must not contain NUL",
        ),
        (|i| i.tags = (0..64).map(|n| n.to_string()).collect(), ""),
        (
            |i| i.tags = (0..65).map(|n| n.to_string()).collect(),
            "items[0].tags: must be at most 64 tags, not 65",
        ),
        (|i| i.tags = with(65, &"same".to_owned()), ""),
        (
            |i| i.tags = vec!["a".to_owned(), String::new()],
            "items[0].tags[1]: must not be empty",
        ),
        (
            |i| i.tags = vec!["t".repeat(129)],
            "items[0].tags[0]: must be at most 128 bytes, not 129",
        ),
        (
            |i| i.tags = vec!["a\n".to_owned()],
            "items[0].tags[0]: must not contain control characters",
        ),
        (|i| i.importance = Some(1.0), ""),
        (
            |i| i.importance = Some(1.01),
            "items[0].importance: must be 0 to 1, not 1.01",
        ),
        (
            |i| i.importance = Some(f64::NAN),
            "items[0].importance: must be 0 to 1, not NaN",
        ),
        (|i| i.confidence = Some(0.0), ""),
        (
            |i| i.confidence = Some(-0.5),
            "items[0].confidence: must be 0 to 1, not -0.5",
        ),
        (|i| i.origin = "o".repeat(128), ""),
        (
            |i| i.origin = "o".repeat(129),
            "items[0].origin: must be at most 128 bytes, not 129",
        ),
        (
            |i| i.origin = "\0".to_owned(),
            "items[0].origin: must not contain NUL",
        ),
        (
            |i| i.if_version = Some(0),
            "items[0].if_version: needs a key",
        ),
        (
            |i| {
                i.if_version = Some(3);
                i.key = "k".to_owned();
            },
            "",
        ),
        (|i| i.vector = vec![0.0, 0.0, -1.0, 0.0], ""),
        (
            |i| i.vector = vec![1.0; 3],
            "items[0].vector: the vector has 3 dimensions, expected 4",
        ),
        (
            |i| i.vector = vec![0.0; 4],
            "items[0].vector: the vector is all zeros",
        ),
        (
            |i| i.vector = vec![0.0, f32::NAN, 1.0, 0.0],
            "items[0].vector: element 1 of the vector is not finite",
        ),
    ]);
}

#[test]
fn sources() {
    fn source(item: &mut WriteItem, change: fn(&mut v1::Source)) {
        let mut source = v1::Source {
            uri: "u".to_owned(),
            session: "s".to_owned(),
            speaker: "p".to_owned(),
        };
        change(&mut source);
        item.sources = vec![source];
    }
    check_item(&[
        (|i| i.sources = with(16, &uri("u")), ""),
        (
            |i| i.sources = with(17, &uri("u")),
            "items[0].sources: must be at most 16 sources, not 17",
        ),
        (
            |i| i.sources = vec![v1::Source::default()],
            "items[0].sources[0]: must have at least one field set",
        ),
        (
            |i| source(i, |s| (s.uri, s.speaker) = Default::default()),
            "",
        ),
        (
            |i| source(i, |s| (s.uri, s.session) = Default::default()),
            "",
        ),
        (|i| source(i, |s| s.uri = "u".repeat(1024)), ""),
        (
            |i| source(i, |s| s.uri = "u".repeat(1025)),
            "items[0].sources[0].uri: must be at most 1024 bytes, not 1025",
        ),
        (
            |i| source(i, |s| s.uri = "\0".to_owned()),
            "items[0].sources[0].uri: must not contain NUL",
        ),
        (|i| source(i, |s| s.session = "u".repeat(256)), ""),
        (
            |i| source(i, |s| s.session = "u".repeat(257)),
            "items[0].sources[0].session: must be at most 256 bytes, not 257",
        ),
        (
            |i| source(i, |s| s.session = "\0".to_owned()),
            "items[0].sources[0].session: must not contain NUL",
        ),
        (|i| source(i, |s| s.speaker = "u".repeat(256)), ""),
        (
            |i| source(i, |s| s.speaker = "u".repeat(257)),
            "items[0].sources[0].speaker: must be at most 256 bytes, not 257",
        ),
        (
            |i| source(i, |s| s.speaker = "\0".to_owned()),
            "items[0].sources[0].speaker: must not contain NUL",
        ),
    ]);
}

#[test]
fn times() {
    const LAST: i64 = 253_402_300_799;
    check_item(&[
        (|i| i.occurred_at = timestamp(-62_135_596_800, 0), ""),
        (
            |i| i.occurred_at = timestamp(-62_135_596_801, 0),
            "items[0].occurred_at: must lie in the years 1 to 9999",
        ),
        (|i| i.occurred_at = timestamp(LAST, 999_999_999), ""),
        (
            |i| i.occurred_at = timestamp(LAST + 1, 0),
            "items[0].occurred_at: must lie in the years 1 to 9999",
        ),
        (
            |i| i.occurred_at = timestamp(0, -1),
            "items[0].occurred_at: must have nanoseconds of 0 to 999999999",
        ),
        (
            |i| i.occurred_at = timestamp(0, 1_000_000_000),
            "items[0].occurred_at: must have nanoseconds of 0 to 999999999",
        ),
        (|i| i.ttl = Some(duration(0, 1_000)), ""),
        (
            |i| i.ttl = Some(duration(0, 999)),
            "items[0].ttl: must be greater than zero, by a microsecond at least",
        ),
        (
            |i| i.ttl = Some(duration(-1, 0)),
            "items[0].ttl: must be greater than zero, by a microsecond at least",
        ),
        (
            |i| i.ttl = Some(duration(1, -1)),
            "items[0].ttl: must be greater than zero, by a microsecond at least",
        ),
        (
            |i| i.ttl = Some(duration(1, 1_000_000_000)),
            "items[0].ttl: must have nanoseconds of 0 to 999999999",
        ),
        (|i| i.ttl = Some(duration(LAST - NOW, 0)), ""),
        (
            |i| i.ttl = Some(duration(LAST + 1 - NOW, 0)),
            "items[0].ttl: must end before the year 10000",
        ),
        (|i| i.expires_at = timestamp(NOW, 1_000), ""),
        (
            |i| i.expires_at = timestamp(NOW, 0),
            "items[0].expires_at: must be in the future",
        ),
        (
            |i| i.expires_at = timestamp(LAST + 1, 0),
            "items[0].expires_at: must lie in the years 1 to 9999",
        ),
        (
            |i| {
                i.ttl = Some(duration(1, 0));
                i.expires_at = timestamp(NOW + 1, 0);
            },
            "items[0].expires_at: must not be given together with `ttl`",
        ),
    ]);
}

#[test]
fn metadata() {
    fn set(item: &mut WriteItem, name: &str, value: v1::Value) {
        item.metadata.insert(name.to_owned(), value);
    }
    check_item(&[
        (
            |i| i.metadata = (0..64).map(|n| (n.to_string(), int(n))).collect(),
            "",
        ),
        (
            |i| i.metadata = (0..65).map(|n| (n.to_string(), int(n))).collect(),
            "items[0].metadata: must have at most 64 names, not 65",
        ),
        (|i| set(i, &"n".repeat(128), int(1)), ""),
        (
            |i| set(i, "", int(1)),
            "items[0].metadata[\"\"]: a name must be 1 to 128 bytes without control characters and dots",
        ),
        (
            |i| set(i, "a.b", int(1)),
            "items[0].metadata[\"a.b\"]: a name must be 1 to 128 bytes without control characters and dots",
        ),
        (
            |i| set(i, "a\n", int(1)),
            "items[0].metadata[\"a\\n\"]: a name must be 1 to 128 bytes without control characters and dots",
        ),
        (
            |i| set(i, &"n".repeat(129), int(1)),
            "items[0].metadata[\"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn\"...]: \
             a name must be 1 to 128 bytes without control characters and dots",
        ),
        // Around the text: 3 bytes each of the text, the value and the entry, and 3 for the name.
        (|i| set(i, "a", text(&"x".repeat((16 << 10) - 12))), ""),
        (
            |i| set(i, "a", text(&"x".repeat((16 << 10) - 11))),
            "items[0].metadata: must be at most 16384 bytes in all, not 16385",
        ),
        (
            |i| set(i, "a", v1::Value { kind: None }),
            "items[0].metadata.a: must have a value",
        ),
        (|i| set(i, "a", value(Kind::BoolValue(false))), ""),
        (|i| set(i, "a", value(Kind::DoubleValue(1e300))), ""),
        (
            |i| set(i, "a", value(Kind::DoubleValue(f64::INFINITY))),
            "items[0].metadata.a: must be a finite number, not inf",
        ),
        (|i| set(i, "a", text("")), ""),
        (
            |i| set(i, "a", list(vec![text("x"), text("\0")])),
            "items[0].metadata.a[1]: must not contain NUL",
        ),
        (
            |i| set(i, "a", value(Kind::TimeValue(timestamp(0, -1).unwrap()))),
            "items[0].metadata.a: must have nanoseconds of 0 to 999999999",
        ),
        (
            |i| set(i, "order", map([("id", v1::Value { kind: None })])),
            "items[0].metadata.order.id: must have a value",
        ),
        (
            |i| {
                let fields = (0..65).map(|n| (n.to_string(), int(n))).collect();
                set(i, "a", value(Kind::MapValue(v1::ValueMap { fields })));
            },
            "items[0].metadata.a: must have at most 64 names, not 65",
        ),
        (|i| set(i, "a", nested(16)), ""),
        (
            |i| set(i, "z", nested(17)),
            "items[0].metadata.z[0].a[0].a[0].a[0].a[0].a[0].a[0].a[0].a: must nest at most 16 deep",
        ),
    ]);
}

#[test]
fn all_violations_are_named_at_once() {
    let mut request = write_request();
    request.namespace = None;
    request.idempotency_key = "k".repeat(129);
    request.items.push(WriteItem {
        kind: "A".to_owned(),
        origin: "\0".to_owned(),
        ..Default::default()
    });
    let fields: Vec<String> = write(request, "", CONTEXT)
        .unwrap_err()
        .violations
        .into_iter()
        .map(|violation| violation.field)
        .collect();
    assert_eq!(
        fields,
        [
            "idempotency_key",
            "namespace",
            "items[1].content",
            "items[1].kind",
            "items[1].origin"
        ]
    );
}

#[test]
fn an_item_gets_its_defaults() {
    let mut request = write_request();
    request.items[0].tags = ["b", "a", "b"].map(str::to_owned).to_vec();
    let write = write(request, "uid:7", CONTEXT).unwrap();
    let item = &write.items[0];
    assert_eq!(
        (item.kind.as_str(), item.json, item.vector.as_ref()),
        ("fact", false, None)
    );
    assert_eq!(
        (item.importance.to_bits(), item.confidence.to_bits()),
        (0.5f64.to_bits(), 1f64.to_bits())
    );
    assert_eq!(
        (item.occurred_at, item.expiry, item.if_version),
        (None, Expiry::ByKind, None)
    );
    assert_eq!(item.tags, ["a", "b"]);
    assert_eq!((write.actor.as_str(), write.idempotency), ("uid:7", None));
}

#[test]
fn an_item_keeps_what_it_was_given() {
    let mut request = write_request();
    request.items = vec![
        WriteItem {
            key: "k".to_owned(),
            content: "[]".to_owned(),
            content_format: 2,
            kind: "event".to_owned(),
            summary: "s".to_owned(),
            metadata: BTreeMap::from([("a".to_owned(), int(1))]),
            importance: Some(0.25),
            confidence: Some(0.75),
            occurred_at: timestamp(-1, 1_999),
            ttl: Some(duration(1, 2_999)),
            sources: vec![uri("u")],
            vector: vec![1.0, 2.0, 3.0, 4.0],
            if_version: Some(7),
            origin: "o".to_owned(),
            ..Default::default()
        },
        WriteItem {
            content: "c".to_owned(),
            expires_at: timestamp(NOW + 1, 500),
            ..Default::default()
        },
    ];
    request.idempotency_key = "once".to_owned();
    let write = write(request, "", CONTEXT).unwrap();
    let item = &write.items[0];
    assert_eq!(
        (item.key.as_str(), item.content.as_str(), item.json),
        ("k", "[]", true)
    );
    assert_eq!(
        (
            item.kind.as_str(),
            item.summary.as_str(),
            item.origin.as_str()
        ),
        ("event", "s", "o")
    );
    assert_eq!(item.metadata["a"], int(1));
    assert_eq!(
        (item.importance.to_bits(), item.confidence.to_bits()),
        (0.25f64.to_bits(), 0.75f64.to_bits())
    );
    assert_eq!(item.occurred_at, Some(Micros(-999_999)));
    assert_eq!(item.expiry, Expiry::After(Duration::from_micros(1_000_002)));
    assert_eq!(item.sources[0].uri, "u");
    assert_eq!(
        (item.vector.clone(), item.if_version),
        (Some(vec![1.0, 2.0, 3.0, 4.0]), Some(7))
    );
    assert_eq!(
        write.items[1].expiry,
        Expiry::At(Micros((NOW + 1) * 1_000_000))
    );
    assert_eq!(write.idempotency.unwrap().key, "once");
}

fn digest_of(change: impl FnOnce(&mut WriteItem)) -> Option<[u8; 16]> {
    let mut request = write_request();
    change(&mut request.items[0]);
    write(request, "", CONTEXT).unwrap().items[0].digest
}

#[test]
fn a_digest_is_of_the_memory_and_not_of_how_it_was_said() {
    let plain = digest_of(|_| ());
    assert!(plain.is_some());
    let same: [fn(&mut WriteItem); 4] = [
        |i| i.kind = "fact".to_owned(),
        |i| i.content_format = 1,
        |i| i.importance = Some(0.5),
        |i| i.confidence = Some(1.0),
    ];
    for (number, change) in same.into_iter().enumerate() {
        assert_eq!(digest_of(change), plain, "case {number}");
    }
    let other: [fn(&mut WriteItem); 11] = [
        |i| i.key = "k".to_owned(),
        |i| i.content = "[]".to_owned(),
        |i| i.kind = "event".to_owned(),
        |i| i.summary = "s".to_owned(),
        |i| i.tags = vec!["t".to_owned()],
        |i| i.metadata = BTreeMap::from([("a".to_owned(), int(1))]),
        |i| i.importance = Some(0.6),
        |i| i.occurred_at = timestamp(1, 0),
        |i| i.expires_at = timestamp(NOW + 1, 0),
        |i| i.sources = vec![uri("u")],
        |i| i.vector = vec![1.0; 4],
    ];
    for (number, change) in other.into_iter().enumerate() {
        assert_ne!(digest_of(change), plain, "case {number}");
    }
    assert_eq!(digest_of(|i| i.ttl = Some(duration(1, 0))), None);
    let tags = |tags: [&str; 3]| tags.map(str::to_owned).to_vec();
    assert_eq!(
        digest_of(|i| i.tags = tags(["a", "b", "a"])),
        digest_of(|i| i.tags = tags(["b", "a", "b"]))
    );
    let keyed = digest_of(|i| i.key = "k".to_owned());
    let guarded = digest_of(|i| {
        i.key = "k".to_owned();
        i.if_version = Some(1);
    });
    assert_eq!(guarded, keyed);
}

#[test]
fn a_request_is_known_by_all_of_it_but_its_key() {
    let digest = |key: &str, content: &str| {
        let mut request = write_request();
        request.items[0].content = content.to_owned();
        request.idempotency_key = key.to_owned();
        write(request, "", CONTEXT)
            .unwrap()
            .idempotency
            .unwrap()
            .digest
    };
    assert_eq!(digest("a", "x"), digest("b", "x"));
    assert_ne!(digest("a", "x"), digest("a", "y"));
    let delete = delete(
        v1::DeleteRequest {
            idempotency_key: "a".to_owned(),
            ..delete_request()
        },
        "",
    )
    .unwrap();
    let empty = crate::canonical::request_digest("Write", &v1::DeleteRequest::default());
    assert_ne!(
        crate::canonical::request_digest("Delete", &v1::DeleteRequest::default()),
        empty
    );
    assert_eq!(delete.idempotency.unwrap().key, "a");
}
