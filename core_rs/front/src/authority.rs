//! Lets in clients that send the path of the Unix socket as `:authority`.
//!
//! Over a Unix socket gRPC's C core (Python, C++, Ruby) sends the path percent-encoded and Java sends it raw. Neither is
//! an authority by RFC 3986, and h2 resets such a request. [`Repaired`] stands between the socket and h2: in each HEADERS
//! frame it looks for an `:authority` that is written out, and when that is no authority, it changes the characters at
//! fault into `-` and the like, in place. Every change keeps its length, as encoded and as decoded, so that the dynamic
//! tables of HPACK on both sides hold entries of equal sizes and stay in step. Nothing else is ever changed.
//!
//! Only headers in a HEADERS frame are looked at, not those in a CONTINUATION: pseudo-headers come first, and a client
//! begins a second frame after 16 KiB.

mod hpack;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a client says first: `PRI * HTTP/2.0` and so on.
const PREFACE: usize = 24;
const FRAME_HEAD: usize = 9;
const TYPE_HEADERS: u8 = 1;
const FLAG_PADDED: u8 = 0x8;
const FLAG_PRIORITY: u8 = 0x20;
const PRIORITY: usize = 5;
/// The largest frame that h2 allows here; it refuses a larger one.
const MAX_FRAME: usize = 16_384;

/// Finds the HEADERS frames in what a client sends, in any split.
#[derive(Debug)]
struct Scanner {
    /// Bytes to pass on unseen: the preface, or what is left of a frame of another type.
    pass: usize,
    /// The head of a frame, as far as it was read.
    head: [u8; FRAME_HEAD],
    head_len: usize,
    /// The payload of a HEADERS frame, as far as it was read and could not be passed on.
    kept: BytesMut,
    /// Bytes of that payload that have not come yet.
    missing: usize,
}

impl Scanner {
    fn new() -> Self {
        Self {
            pass: PREFACE,
            head: [0; FRAME_HEAD],
            head_len: 0,
            kept: BytesMut::new(),
            missing: 0,
        }
    }

    /// Repairs what is there in full and answers how many bytes may be passed on. The rest is the beginning of a HEADERS
    /// payload, and is kept. Not to be called while one is missing.
    fn scan(&mut self, bytes: &mut [u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let left = bytes.len() - at;
            if self.pass > 0 {
                let passed = self.pass.min(left);
                self.pass -= passed;
                at += passed;
                continue;
            }
            let part = (FRAME_HEAD - self.head_len).min(left);
            self.head[self.head_len..][..part].copy_from_slice(&bytes[at..at + part]);
            self.head_len += part;
            at += part;
            if self.head_len < FRAME_HEAD {
                break;
            }
            self.head_len = 0;
            let [a, b, c, kind, flags, ..] = self.head;
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            let payload = &mut bytes[at..];
            if kind != TYPE_HEADERS || length > MAX_FRAME {
                self.pass = length;
            } else if payload.len() >= length {
                repair_payload(flags, &mut payload[..length]);
                at += length;
            } else {
                self.missing = length - payload.len();
                self.kept.extend_from_slice(payload);
                return at;
            }
        }
        bytes.len()
    }

    /// Takes more of the missing bytes; true once the payload is whole and repaired.
    fn fill(&mut self, bytes: &[u8]) -> bool {
        self.kept.extend_from_slice(bytes);
        self.missing -= bytes.len();
        if self.missing == 0 {
            repair_payload(self.head[4], &mut self.kept);
        }
        self.missing == 0
    }
}

/// Repairs the header block in the payload of a HEADERS frame.
fn repair_payload(flags: u8, payload: &mut [u8]) {
    let mut start = 0;
    let mut end = payload.len();
    if flags & FLAG_PADDED != 0 {
        let Some(&padding) = payload.first() else {
            return;
        };
        start += 1;
        end = end.saturating_sub(usize::from(padding));
    }
    if flags & FLAG_PRIORITY != 0 {
        start += PRIORITY;
    }
    if let Some(block) = payload.get_mut(start..end) {
        hpack::repair_authority(block);
    }
}

/// A connection whose client may send a path as `:authority`.
#[derive(Debug)]
pub(crate) struct Repaired<I> {
    io: I,
    scanner: Scanner,
}

impl<I> Repaired<I> {
    pub(crate) fn new(io: I) -> Self {
        let scanner = Scanner::new();
        Self { io, scanner }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Repaired<I> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { io, scanner } = self.get_mut();
        loop {
            if scanner.missing > 0 {
                let mut space = [0; MAX_FRAME];
                let mut part = ReadBuf::new(&mut space[..scanner.missing]);
                ready!(Pin::new(&mut *io).poll_read(cx, &mut part))?;
                if part.filled().is_empty() {
                    // The end, inside a frame: h2 gets what there is and finds the fault.
                    scanner.missing = 0;
                } else {
                    scanner.fill(part.filled());
                    continue;
                }
            }
            if !scanner.kept.is_empty() {
                let passed = scanner.kept.len().min(buffer.remaining());
                buffer.put_slice(&scanner.kept[..passed]);
                scanner.kept.advance(passed);
                return Poll::Ready(Ok(()));
            }
            let before = buffer.filled().len();
            ready!(Pin::new(&mut *io).poll_read(cx, buffer))?;
            let read = &mut buffer.filled_mut()[before..];
            let (all, passed) = (read.len(), scanner.scan(read));
            buffer.set_filled(before + passed);
            // Nothing passed on means the end to a reader; it must be one.
            if passed > 0 || all == 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Repaired<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
