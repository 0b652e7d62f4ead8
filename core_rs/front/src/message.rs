//! Messages in the body of a request: a flag, four bytes of length, and so many bytes, in any split of the frames.
//!
//! Nothing is allocated for what a peer only announces, and what is held is counted. Inflating happens where the
//! handler runs, never in a thread that moves bytes.

use std::future::poll_fn;
use std::io::Read;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use flate2::read::{GzDecoder, ZlibDecoder};
use h2::RecvStream;

use crate::handler::{Status, code};
use crate::limits::{Budget, Held};
use crate::metadata::Encoding;

/// The flag and the length.
const PREFIX: usize = 5;
/// By how much an inflated message may grow before it is counted.
const INFLATE_STEP: usize = 64 << 10;

/// Why no answer can be given, or which.
#[derive(Debug)]
pub(crate) enum Unanswerable {
    /// The caller gave up or is gone.
    Gone,
    /// The request is refused.
    Refused(Status),
}

impl From<Status> for Unanswerable {
    fn from(status: Status) -> Self {
        Self::Refused(status)
    }
}

fn malformed(message: &str) -> Status {
    Status::of_protocol(code::INTERNAL, message)
}

/// A message as it came, with its share of the budget.
#[derive(Debug)]
pub(crate) struct Message {
    bytes: Bytes,
    encoding: Encoding,
    most: usize,
    held: Held,
}

impl Message {
    /// The bytes that the caller meant.
    pub(crate) fn into_plain(self) -> Result<Plain, Status> {
        let Self {
            bytes,
            encoding,
            most,
            mut held,
        } = self;
        let bytes = match encoding {
            Encoding::Identity => bytes,
            Encoding::Gzip => inflate(GzDecoder::new(&*bytes), most, &mut held)?,
            Encoding::Deflate => inflate(ZlibDecoder::new(&*bytes), most, &mut held)?,
        };
        Ok(Plain { bytes, _held: held })
    }
}

/// A message without compression.
#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) bytes: Bytes,
    _held: Held,
}

fn inflate(mut from: impl Read, most: usize, held: &mut Held) -> Result<Bytes, Status> {
    let mut inflated = Vec::new();
    loop {
        let before = inflated.len();
        let mut step = (&mut from).take(INFLATE_STEP as u64);
        step.read_to_end(&mut inflated)
            .map_err(|_| malformed("a message cannot be decompressed"))?;
        let read = inflated.len() - before;
        if read == 0 {
            return Ok(inflated.into());
        }
        if inflated.len() > most {
            return Err(too_large(inflated.len(), most));
        }
        held.grow(read)?;
    }
}

fn too_large(bytes: usize, most: usize) -> Status {
    let message = format!("a message of {bytes} bytes or more is larger than {most}");
    Status::of_protocol(code::RESOURCE_EXHAUSTED, message)
}

/// Puts messages together from pieces.
#[derive(Debug, Default)]
struct Assembler {
    /// The last piece, as far as it is not used.
    fresh: Bytes,
    /// A message that began in an earlier piece.
    begun: BytesMut,
}

impl Assembler {
    /// Takes the next piece, once `next` has answered None.
    fn push(&mut self, piece: Bytes) {
        self.begin(self.fresh.len());
        self.fresh = piece;
    }

    fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.begun.is_empty()
    }

    /// The next whole message, and whether it is compressed. Without a copy when it lies in one piece.
    fn next(&mut self, most: usize) -> Result<Option<(bool, Bytes)>, Status> {
        if !self.begun.is_empty() {
            self.begin(PREFIX.saturating_sub(self.begun.len()));
        }
        let lying = if self.begun.is_empty() {
            &self.fresh[..]
        } else {
            &self.begun[..]
        };
        let Some((&[flag, a, b, c, d], _)) = lying.split_first_chunk::<PREFIX>() else {
            self.begin(PREFIX);
            return Ok(None);
        };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if flag > 1 {
            return Err(malformed("a message has an unknown flag"));
        }
        if length > most {
            return Err(too_large(length, most));
        }
        let whole = PREFIX + length;
        let mut message = if self.begun.is_empty() && self.fresh.len() >= whole {
            self.fresh.split_to(whole)
        } else {
            self.begin(whole - self.begun.len());
            if self.begun.len() < whole {
                return Ok(None);
            }
            self.begun.split().freeze()
        };
        message.advance(PREFIX);
        Ok(Some((flag == 1, message)))
    }

    /// Moves up to so many fresh bytes to the message that has begun.
    fn begin(&mut self, bytes: usize) {
        let bytes = bytes.min(self.fresh.len());
        self.begun.put(self.fresh.split_to(bytes));
    }
}

/// The messages of one request.
#[derive(Debug)]
pub(crate) struct Messages {
    body: RecvStream,
    encoding: Encoding,
    most: usize,
    assembler: Assembler,
    held: Held,
}

impl Messages {
    pub(crate) fn new(
        body: RecvStream,
        encoding: Encoding,
        most: usize,
        budget: &Arc<Budget>,
    ) -> Self {
        Self {
            body,
            encoding,
            most,
            assembler: Assembler::default(),
            held: Held::nothing(Arc::clone(budget)),
        }
    }

    /// The next message, None after the last. May be dropped while it waits and asked again.
    pub(crate) async fn next(&mut self) -> Result<Option<Message>, Unanswerable> {
        loop {
            if let Some((compressed, bytes)) = self.assembler.next(self.most)? {
                let encoding = match (compressed, self.encoding) {
                    (false, _) => Encoding::Identity,
                    (true, Encoding::Identity) => {
                        let message = "a message is compressed, but grpc-encoding does not say how";
                        return Err(malformed(message).into());
                    }
                    (true, encoding) => encoding,
                };
                return Ok(Some(Message {
                    held: self.held.split(PREFIX + bytes.len()),
                    most: self.most,
                    bytes,
                    encoding,
                }));
            }
            match poll_fn(|cx| self.body.poll_data(cx)).await {
                Some(Ok(piece)) => {
                    self.held.grow(piece.len())?;
                    // Fails only when the stream is gone, which the next read says.
                    let _ = self.body.flow_control().release_capacity(piece.len());
                    self.assembler.push(piece);
                }
                Some(Err(_)) => return Err(Unanswerable::Gone),
                None if self.assembler.is_empty() => return Ok(None),
                None => return Err(malformed("the request ends inside a message").into()),
            }
        }
    }
}

/// Frames an answer.
pub(crate) fn framed(answer: &[u8], most: usize) -> Result<Bytes, Status> {
    let mut framed = BytesMut::new();
    frame_onto(&mut framed, answer, most)?;
    Ok(framed.freeze())
}

/// Frames an answer behind others.
pub(crate) fn frame_onto(framed: &mut BytesMut, answer: &[u8], most: usize) -> Result<(), Status> {
    match u32::try_from(answer.len()) {
        Ok(length) if answer.len() <= most => {
            framed.reserve(PREFIX + answer.len());
            framed.put_u8(0);
            framed.put_u32(length);
            framed.put_slice(answer);
            Ok(())
        }
        _ => Err(too_large(answer.len(), most)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    const MOST: usize = 1 << 20;

    fn message(bytes: Vec<u8>, encoding: Encoding, budget: &Arc<Budget>) -> Message {
        Message {
            bytes: bytes.into(),
            encoding,
            most: MOST,
            held: Held::nothing(Arc::clone(budget)),
        }
    }

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_bomb_is_refused_at_the_limit() {
        let budget = Budget::new(usize::MAX);
        let bomb = gzipped(&vec![0; 64 * MOST]);
        assert!(bomb.len() < MOST);
        let refused = message(bomb, Encoding::Gzip, &budget).into_plain();
        assert_eq!(refused.unwrap_err().code, code::RESOURCE_EXHAUSTED);
        let largest = message(gzipped(&vec![7; MOST]), Encoding::Gzip, &budget).into_plain();
        assert_eq!(largest.unwrap().bytes.len(), MOST);
    }

    #[test]
    fn inflating_counts_against_the_budget() {
        let budget = Budget::new(MOST / 2);
        let refused = message(gzipped(&vec![0; MOST]), Encoding::Gzip, &budget).into_plain();
        assert_eq!(refused.unwrap_err().code, code::RESOURCE_EXHAUSTED);
        assert!(Held::nothing(budget).grow(MOST / 2).is_ok());
    }

    #[test]
    fn what_cannot_be_inflated_is_malformed() {
        let budget = Budget::new(usize::MAX);
        for encoding in [Encoding::Gzip, Encoding::Deflate] {
            let cut = gzipped(b"some text")[..12].to_vec();
            for bytes in [b"no such thing".to_vec(), cut] {
                let refused = message(bytes, encoding, &budget).into_plain();
                assert_eq!(refused.unwrap_err().code, code::INTERNAL);
            }
        }
    }

    #[test]
    fn flags_and_lengths_are_checked_before_the_bytes_come() {
        let mut assembler = Assembler::default();
        assembler.push(Bytes::from_static(&[2, 0, 0, 0, 0]));
        assert_eq!(assembler.next(MOST).unwrap_err().code, code::INTERNAL);
        let mut assembler = Assembler::default();
        assembler.push(Bytes::from_static(&[0, 255, 255, 255, 255]));
        let refused = assembler.next(MOST).unwrap_err();
        assert_eq!(refused.code, code::RESOURCE_EXHAUSTED);
        assert_eq!(
            refused.message,
            "a message of 4294967295 bytes or more is larger than 1048576"
        );
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_messages(
            messages in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..300)), 0..8),
            cuts in prop::collection::vec(1usize..40, 1..200),
        ) {
            let mut wire = Vec::new();
            for (compressed, bytes) in &messages {
                let start = wire.len();
                wire.extend_from_slice(&framed(bytes, MOST).unwrap());
                wire[start] = u8::from(*compressed);
            }
            let mut assembler = Assembler::default();
            let mut found = Vec::new();
            let mut rest = Bytes::from(wire);
            let mut cuts = cuts.into_iter().cycle();
            while !rest.is_empty() {
                let cut = cuts.next().unwrap().min(rest.len());
                assembler.push(rest.split_to(cut));
                while let Some((compressed, bytes)) = assembler.next(MOST).unwrap() {
                    found.push((compressed, bytes.to_vec()));
                }
            }
            prop_assert!(assembler.is_empty());
            prop_assert_eq!(found, messages);
        }

        #[test]
        fn any_bytes_are_messages_or_refused(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..40)) {
            let mut assembler = Assembler::default();
            'pieces: for piece in pieces {
                assembler.push(piece.into());
                loop {
                    match assembler.next(100) {
                        Ok(Some((_, bytes))) => prop_assert!(bytes.len() <= 100),
                        Ok(None) => break,
                        Err(_) => break 'pieces,
                    }
                }
            }
        }

        #[test]
        fn compressed_messages_round_trip(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
            let budget = Budget::new(usize::MAX);
            let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
            zlib.write_all(&bytes).unwrap();
            let zlib = zlib.finish().unwrap();
            for (sent, encoding) in [(gzipped(&bytes), Encoding::Gzip), (zlib, Encoding::Deflate)] {
                let plain = message(sent, encoding, &budget).into_plain().unwrap();
                prop_assert_eq!(&plain.bytes[..], &bytes[..]);
            }
        }
    }
}
