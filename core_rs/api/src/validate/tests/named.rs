//! `Namespace`, and the requests that name memories or texts.

use super::*;

#[test]
fn namespaces() {
    type Request = v1::GetRequest;
    fn segments(request: &mut Request) -> &mut Vec<String> {
        &mut request.namespace.as_mut().unwrap().segments
    }
    check(
        &get_request(),
        |request| get(request, CONTEXT),
        &[
            (|r| r.namespace = None, "namespace: must be given"),
            (
                |r| segments(r).clear(),
                "namespace.segments: must be 1 to 8 segments, not 0",
            ),
            (|r| *segments(r) = with(8, &"a".to_owned()), ""),
            (
                |r| *segments(r) = with(9, &"a".to_owned()),
                "namespace.segments: must be 1 to 8 segments, not 9",
            ),
            (
                |r| segments(r)[1].clear(),
                "namespace.segments[1]: must not be empty",
            ),
            (|r| segments(r)[1] = "a".repeat(128), ""),
            (
                |r| segments(r)[1] = "é".repeat(65),
                "namespace.segments[1]: must be at most 128 bytes, not 130",
            ),
            (
                |r| segments(r)[0] = "a\u{85}b".to_owned(),
                "namespace.segments[0]: must not contain control characters",
            ),
        ],
    );
    assert_eq!(
        violations(only_namespace(Vec::new())),
        ["namespace.segments: must be 1 to 8 segments, not 0"]
    );
    assert_eq!(only_namespace(vec!["acme".to_owned()]).unwrap().0, ["acme"]);
}

#[test]
fn each_method_wants_a_namespace() {
    let missing = ["namespace: must be given"];
    assert_eq!(
        violations(write(
            v1::WriteRequest {
                namespace: None,
                ..write_request()
            },
            "",
            CONTEXT
        )),
        missing
    );
    assert_eq!(
        violations(search(
            v1::SearchRequest {
                namespace: None,
                ..search_request()
            },
            CONTEXT
        )),
        missing
    );
    assert_eq!(
        violations(brief(
            v1::BriefRequest {
                namespace: None,
                ..brief_request()
            },
            CONTEXT
        )),
        missing
    );
    assert_eq!(
        violations(get(
            v1::GetRequest {
                namespace: None,
                ..get_request()
            },
            CONTEXT
        )),
        missing
    );
    assert_eq!(
        violations(delete(
            v1::DeleteRequest {
                namespace: None,
                ..delete_request()
            },
            ""
        )),
        missing
    );
}

#[test]
fn gets() {
    check(
        &get_request(),
        |request| get(request, CONTEXT),
        &[
            (
                |r| r.keys.clear(),
                "ids: must name a memory, unless `keys` does",
            ),
            (|r| r.ids = with(999, &ID.to_owned()), ""),
            (
                |r| r.ids = with(1000, &ID.to_owned()),
                "ids: must be at most 1000 together with `keys`, not 1001",
            ),
            (
                |r| r.ids = vec![ID.to_owned(), "seat".to_owned()],
                "ids[1]: an id is 26 characters of 0-9 and A-Z without I, L, O, U; this is \"seat\"",
            ),
            (|r| r.keys.push(String::new()), "keys[1]: must not be empty"),
            (
                |r| r.keys[0] = "k".repeat(257),
                "keys[0]: must be at most 256 bytes, not 257",
            ),
            (
                |r| r.keys[0] = "\u{1b}".to_owned(),
                "keys[0]: must not contain control characters",
            ),
            (|r| r.max_tokens = Some(0), "max_tokens: must be at least 1"),
            (|r| r.max_tokens = Some(1), ""),
            (
                |r| r.encoding = "?".to_owned(),
                "encoding: must be one of `o200k_base`, `cl100k_base`, `approximate`, not \"?\"",
            ),
            (|r| r.as_of_version = Some(1), ""),
            (
                |r| r.as_of_version = Some(0),
                "as_of_version: must be at least 1",
            ),
            (
                |r| {
                    r.as_of_version = Some(1);
                    r.keys.push("other".to_owned());
                },
                "as_of_version: needs exactly one id or key",
            ),
            (
                |r| r.at_least_as_fresh = "?".to_owned(),
                "at_least_as_fresh: is not a consistency token of recalld",
            ),
        ],
    );
    let request = v1::GetRequest {
        ids: vec![ID.to_owned()],
        keys: Vec::new(),
        max_tokens: Some(9),
        as_of_version: Some(2),
        encoding: "cl100k_base".to_owned(),
        ..get_request()
    };
    let get = get(request, CONTEXT).unwrap();
    assert_eq!((get.ids[0].to_string().as_str(), get.keys.len()), (ID, 0));
    assert_eq!(
        (get.max_tokens, get.version, get.counter.name()),
        (Some(9), Some(2), "cl100k_base")
    );
}

#[test]
fn deletes() {
    check(
        &delete_request(),
        |request| delete(request, ""),
        &[
            (
                |r| r.keys.clear(),
                "ids: must name a memory, unless `keys` or `filter` does",
            ),
            (
                |r| {
                    r.keys.clear();
                    r.filter = Some(exists("key"));
                },
                "",
            ),
            (
                |r| r.filter = Some(v1::Filter::default()),
                "filter: must have one of `all`, `any`, `not` and `condition`",
            ),
            (
                |r| r.ids = with(1000, &ID.to_owned()),
                "ids: must be at most 1000 together with `keys`, not 1001",
            ),
            (|r| r.if_version = Some(1), ""),
            (
                |r| {
                    r.if_version = Some(1);
                    r.ids = vec![ID.to_owned()];
                },
                "if_version: needs exactly one id or key, and no filter",
            ),
            (
                |r| {
                    r.if_version = Some(1);
                    r.filter = Some(exists("key"));
                },
                "if_version: needs exactly one id or key, and no filter",
            ),
            (
                |r| r.idempotency_key = "k".repeat(129),
                "idempotency_key: must be at most 128 bytes, not 129",
            ),
        ],
    );
    let request = v1::DeleteRequest {
        dry_run: true,
        if_version: Some(4),
        ..delete_request()
    };
    let delete = delete(request, "uid:7").unwrap();
    assert_eq!(
        (delete.dry_run, delete.if_version, delete.actor.as_str()),
        (true, Some(4), "uid:7")
    );
}

#[test]
fn counts() {
    check(
        &count_request(),
        |request| count_tokens(request, CONTEXT),
        &[
            (|r| r.texts.clear(), "texts: must be 1 to 1000 texts, not 0"),
            (|r| r.texts = with(1000, &String::new()), ""),
            (
                |r| r.texts = with(1001, &String::new()),
                "texts: must be 1 to 1000 texts, not 1001",
            ),
            (|r| r.texts = with(16, &"a".repeat(1 << 20)), ""),
            (
                |r| r.texts = with(17, &"a".repeat(1 << 20)),
                "texts: must be at most 16777216 bytes in all, not 17825792",
            ),
            (
                |r| r.encoding = "gpt2".to_owned(),
                "encoding: must be one of `o200k_base`, `cl100k_base`, `approximate`, not \"gpt2\"",
            ),
        ],
    );
}
