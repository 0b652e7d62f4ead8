use http::uri::Authority;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::hpack::{CODES, repair_authority};
use super::*;

const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

fn huffman(text: &[u8]) -> Vec<u8> {
    let mut bits = Vec::new();
    for character in text {
        let (length, first, characters) = CODES
            .into_iter()
            .find(|(_, _, characters)| characters.contains(character))
            .unwrap();
        let place = characters.iter().position(|c| c == character).unwrap();
        let code = first + place as u32;
        bits.extend((0..length).rev().map(|bit| code >> bit & 1));
    }
    bits.resize(bits.len().next_multiple_of(8), 1);
    let bytes = bits.chunks(8);
    bytes
        .map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | *bit as u8))
        .collect()
}

/// An integer with a prefix, after what stands before it in the first byte.
fn integer(before: u8, bits: u32, number: usize) -> Vec<u8> {
    let most = (1 << bits) - 1;
    if number < most {
        return vec![before | number as u8];
    }
    let mut bytes = vec![before | most as u8];
    let mut rest = number - most;
    while rest >= 0x80 {
        bytes.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

fn string(text: &[u8], is_huffman: bool) -> Vec<u8> {
    let (flag, bytes) = if is_huffman {
        (0x80, huffman(text))
    } else {
        (0, text.to_vec())
    };
    [integer(flag, 7, bytes.len()), bytes].concat()
}

/// How a literal is written: into the table, not into it, or never.
#[derive(Debug, Clone, Copy)]
enum Indexing {
    Yes,
    No,
    Never,
}

/// A literal with the index of its name, 0 for a name that is written out.
fn literal(
    indexing: Indexing,
    index: usize,
    name: &str,
    value: &[u8],
    is_huffman: bool,
) -> Vec<u8> {
    let mut bytes = match indexing {
        Indexing::Yes => integer(0x40, 6, index),
        Indexing::No => integer(0, 4, index),
        Indexing::Never => integer(0x10, 4, index),
    };
    if index == 0 {
        bytes.extend(string(name.as_bytes(), is_huffman));
    }
    bytes.extend(string(value, is_huffman));
    bytes
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// What a client says before its first request.
fn opening() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    bytes
}

fn headers_frame(stream: u32, block: &[u8], padding: Option<u8>, has_priority: bool) -> Vec<u8> {
    let mut flags = END_HEADERS | END_STREAM;
    let mut payload = Vec::new();
    if let Some(padding) = padding {
        flags |= FLAG_PADDED;
        payload.push(padding);
    }
    if has_priority {
        flags |= FLAG_PRIORITY;
        payload.extend([0, 0, 0, 0, 7]);
    }
    payload.extend(block);
    payload.extend(vec![0; usize::from(padding.unwrap_or(0))]);
    frame(TYPE_HEADERS, flags, stream, &payload)
}

/// A path as clients send it: raw, percent-encoded, or an address that is in order.
fn authorities() -> impl Strategy<Value = String> {
    prop_oneof![
        "(/[a-zA-Z0-9 _.@:~+-]{1,12}){1,6}",
        "%2[Ff]([a-zA-Z0-9_.-]|%2F|%40|%20){0,60}",
        "[a-z]{1,12}(\\.[a-z]{1,5})?(:[0-9]{1,5})?",
        Just("[::1]:7411".to_owned()),
        "[ -~&&[^\\\\]]{1,40}",
    ]
}

fn indexings() -> impl Strategy<Value = Indexing> {
    prop_oneof![
        Just(Indexing::Yes),
        Just(Indexing::No),
        Just(Indexing::Never)
    ]
}

/// Two requests: the second repeats the first by the entries of the table, where there are some.
#[derive(Debug, Clone)]
struct Talk {
    bytes: Vec<u8>,
    authority: String,
    /// Of a header that is written after the authority.
    value: String,
}

fn talks() -> impl Strategy<Value = Talk> {
    (
        authorities(),
        "[a-z0-9 /%]{1,40}",
        any::<bool>(),
        indexings(),
        any::<bool>(),
        prop::option::of(0u8..20),
        any::<bool>(),
    )
        .prop_map(
            |(authority, value, is_huffman, indexing, is_named, padding, has_priority)| {
                let index = usize::from(!is_named);
                let is_huffman = is_huffman && huffman_can(&authority);
                let written = literal(
                    indexing,
                    index,
                    ":authority",
                    authority.as_bytes(),
                    is_huffman,
                );
                // A new size of the table; POST, http, /.
                let mut first = vec![0x3f, 0xe1, 0x1f, 0x83, 0x86, 0x84];
                first.extend(&written);
                first.extend(literal(
                    Indexing::Yes,
                    0,
                    "x-value",
                    value.as_bytes(),
                    is_huffman,
                ));
                let mut second = vec![0x83, 0x86, 0x84];
                match indexing {
                    // The table's last entry is x-value, the one before it the authority.
                    Indexing::Yes => second.extend([0xbf, 0xbe]),
                    _ => {
                        second.extend(&written);
                        second.push(0xbe);
                    }
                }
                let bytes = [
                    opening(),
                    headers_frame(1, &first, padding, has_priority),
                    // A ping lies between.
                    frame(6, 0, 0, &[7; 8]),
                    headers_frame(3, &second, None, false),
                ];
                Talk {
                    bytes: bytes.concat(),
                    authority,
                    value: value.trim().to_owned(),
                }
            },
        )
}

/// `\` has a code of 19 bits, which is not in the table here.
fn huffman_can(text: &str) -> bool {
    !text.contains('\\')
}

/// What comes out of `Repaired` when the bytes come in such pieces.
async fn repaired(bytes: &[u8], pieces: &[usize]) -> Vec<u8> {
    let (mut client, server) = duplex(1 << 16);
    let mut out = Vec::new();
    let mut server = Repaired::new(server);
    let write = async {
        let mut rest = bytes;
        let mut pieces = pieces.iter().cycle();
        while !rest.is_empty() {
            let piece = (*pieces.next().unwrap()).min(rest.len());
            client.write_all(&rest[..piece]).await.unwrap();
            rest = &rest[piece..];
            tokio::task::yield_now().await;
        }
        drop(client);
    };
    let read = async { server.read_to_end(&mut out).await.unwrap() };
    tokio::join!(write, read);
    out
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(work)
}

/// Authorities and values of the requests that h2 sees; it resets those that it refuses.
async fn seen_by_h2(mut bytes: Vec<u8>, piece: usize) -> Vec<(Authority, String)> {
    // A ping, whose answer says that all before was looked at.
    let last = [9; 8];
    bytes.extend(frame(6, 0, 0, &last));
    let (client, server) = duplex(1 << 16);
    let (mut from_server, mut to_server) = tokio::io::split(client);
    let write = async {
        for part in bytes.chunks(piece) {
            to_server.write_all(part).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let (say_all_seen, mut all_seen) = tokio::sync::oneshot::channel();
    let read = async {
        let mut answer = Vec::new();
        while !answer.ends_with(&last) {
            answer.push(from_server.read_u8().await.unwrap());
        }
        say_all_seen.send(()).unwrap();
    };
    let serve = async {
        let mut seen = Vec::new();
        let mut connection = h2::server::handshake(Repaired::new(server)).await.unwrap();
        loop {
            let (request, _) = tokio::select! {
                biased;
                accepted = connection.accept() => accepted.unwrap().unwrap(),
                _ = &mut all_seen => return seen,
            };
            let value = request.headers()["x-value"].to_str().unwrap().to_owned();
            seen.push((request.uri().authority().unwrap().clone(), value));
        }
    };
    tokio::join!(write, read, serve).2
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn only_an_authority_changes_in_any_split(
        talk in talks(),
        pieces in prop::collection::vec(1usize..60, 1..20),
    ) {
        let whole = block_on(repaired(&talk.bytes, &[usize::MAX]));
        prop_assert_eq!(whole.len(), talk.bytes.len());
        let again = block_on(repaired(&talk.bytes, &pieces));
        prop_assert!(again == whole, "a split changed what comes out");
        let changed = whole.iter().zip(&talk.bytes).filter(|(after, before)| after != before).count();
        if Authority::try_from(talk.authority.as_str()).is_ok() {
            prop_assert_eq!(changed, 0);
        }
        // The authority is written out twice at most.
        prop_assert!(changed <= 2 * talk.authority.len());
    }

    #[test]
    fn h2_sees_the_requests_with_an_authority_of_the_same_length(talk in talks(), piece in 1usize..100) {
        let is_legal = Authority::try_from(talk.authority.as_str()).is_ok();
        // Some characters have no replacement of their length in the code.
        let can_be_repaired = !talk.authority.contains(|c: char| "#><^`{}|\\\"".contains(c));
        let seen = block_on(seen_by_h2(talk.bytes.clone(), piece));
        if is_legal {
            prop_assert_eq!(&seen[0].0, &Authority::try_from(talk.authority.as_str()).unwrap());
        }
        if is_legal || can_be_repaired {
            prop_assert_eq!(seen.len(), 2);
        }
        for (authority, value) in &seen {
            prop_assert_eq!(authority.as_str().len(), talk.authority.len());
            prop_assert_eq!(value.trim(), &talk.value);
        }
    }

    #[test]
    fn any_bytes_come_through_in_their_length(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        pieces in prop::collection::vec(1usize..60, 1..20),
    ) {
        let talk = [opening(), bytes].concat();
        let whole = block_on(repaired(&talk, &[usize::MAX]));
        prop_assert_eq!(whole.len(), talk.len());
        prop_assert!(block_on(repaired(&talk, &pieces)) == whole);
    }

    #[test]
    fn any_block_is_repaired_once(block in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut once = block.clone();
        repair_authority(&mut once);
        let mut twice = once.clone();
        prop_assert!(!repair_authority(&mut twice));
        prop_assert_eq!(twice, once);
    }
}

#[test]
fn what_clients_send() {
    // As Java sends it.
    let mut block = b"\x83\x86\x41\x0a/run/a.soc\x84".to_vec();
    assert!(repair_authority(&mut block));
    assert_eq!(block, b"\x83\x86\x41\x0a-run-a.soc\x84");
    // As the C core sends it, in Huffman code.
    let percent = literal(Indexing::Yes, 1, "", b"%2Frun%2Frecalld.sock", true);
    let dashes = literal(Indexing::Yes, 1, "", b"-2Frun-2Frecalld.sock", true);
    let mut block = percent;
    assert!(repair_authority(&mut block));
    assert_eq!(block, dashes);
    // RFC 7541, C.4.1.
    let example = b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
    let mut block = example.to_vec();
    assert!(!repair_authority(&mut block));
    assert_eq!(block, example);
}
