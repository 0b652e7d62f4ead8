//! Walks a header block of HPACK (RFC 7541) to its `:authority` and repairs that in place.
//!
//! Strings may be written in the Huffman code of RFC 7541, appendix B. That code is canonical and all printable ASCII
//! that an authority may hold has codes of up to 13 bits, so the codes up to 15 bits are enough here: a string with a
//! longer one is left as it is, and refused by h2 as it would have been.

use http::uri::Authority;

/// Index of `:authority` in the static table.
const AUTHORITY: usize = 1;
const LONGEST_CODE: usize = 15;

/// Repairs the first `:authority` that is written out, if it is no authority. True when something was changed.
pub(super) fn repair_authority(block: &mut [u8]) -> bool {
    let Some((start, end, is_huffman)) = find_authority(block) else {
        return false;
    };
    let value = &mut block[start..end];
    if is_huffman {
        repair_huffman(value)
    } else {
        repair_plain(value)
    }
}

/// Where the value of `:authority` lies, and whether it is in Huffman code. None when it is not written out, and for a
/// block that is malformed before it.
fn find_authority(block: &[u8]) -> Option<(usize, usize, bool)> {
    let mut at = 0;
    while let Some(&first) = block.get(at) {
        let index_bits = match first {
            // An indexed field, or a new size of the table: a number and no more.
            0x80.. => {
                integer(block, &mut at, 7)?;
                continue;
            }
            0x20..0x40 => {
                integer(block, &mut at, 5)?;
                continue;
            }
            // A literal: with indexing, or without.
            0x40..0x80 => 6,
            0..0x20 => 4,
        };
        let name = integer(block, &mut at, index_bits)?;
        let is_authority = if name == 0 {
            let (start, end, is_huffman) = string(block, &mut at)?;
            is_name(&block[start..end], is_huffman)
        } else {
            name == AUTHORITY
        };
        let value = string(block, &mut at)?;
        if is_authority {
            return Some(value);
        }
    }
    None
}

/// An integer with a prefix of so many bits (RFC 7541, 5.1). None beyond four more bytes.
fn integer(block: &[u8], at: &mut usize, bits: u32) -> Option<usize> {
    let most = (1 << bits) - 1;
    let mut next = || {
        let byte = block.get(*at).copied().map(usize::from);
        *at += 1;
        byte
    };
    let mut number = next()? & most;
    if number < most {
        return Some(number);
    }
    for shift in [0, 7, 14, 21] {
        let byte = next()?;
        number += (byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Start and end of a string, and whether it is in Huffman code.
fn string(block: &[u8], at: &mut usize) -> Option<(usize, usize, bool)> {
    let is_huffman = block.get(*at)? & 0x80 != 0;
    let length = integer(block, at, 7)?;
    let start = *at;
    let end = start.checked_add(length)?;
    block.get(start..end)?;
    *at = end;
    Some((start, end, is_huffman))
}

/// Whether a name that is written out is `:authority`.
fn is_name(name: &[u8], is_huffman: bool) -> bool {
    const NAME: &[u8] = b":authority";
    if !is_huffman {
        return name == NAME;
    }
    // In this code it is shorter.
    name.len() <= NAME.len()
        && decode(name).is_some_and(|symbols| {
            let characters = symbols.iter().map(|symbol| &symbol.character);
            characters.eq(NAME)
        })
}

/// Characters that may stand anywhere in a host name.
fn is_plain(character: u8) -> bool {
    character.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&character)
}

fn repair_plain(value: &mut [u8]) -> bool {
    if value.is_empty() || Authority::try_from(&*value).is_ok() {
        return false;
    }
    for character in value.iter_mut().filter(|character| !is_plain(**character)) {
        *character = b'-';
    }
    true
}

fn repair_huffman(value: &mut [u8]) -> bool {
    let Some(decoded) = decode(value) else {
        return false;
    };
    let text: Vec<u8> = decoded.iter().map(|symbol| symbol.character).collect();
    if text.is_empty() || Authority::try_from(&*text).is_ok() {
        return false;
    }
    let wrong = decoded.iter().filter(|symbol| !is_plain(symbol.character));
    let codes = wrong.map(|symbol| Some((symbol, replacement(symbol.bits)?)));
    let Some(codes) = codes.collect::<Option<Vec<_>>>() else {
        return false;
    };
    for (symbol, code) in codes {
        put(value, symbol.at, symbol.bits, code);
    }
    true
}

/// One character of a string in Huffman code.
struct Symbol {
    character: u8,
    /// Where its code starts, in bits.
    at: usize,
    bits: usize,
}

/// The codes of up to 15 bits: length, first code, and the characters in the order of their codes.
pub(super) const CODES: [(usize, u32, &[u8]); 10] = [
    (5, 0x0, b"012aceiost"),
    (6, 0x14, b" %-./3456789=A_bdfghlmnpru"),
    (7, 0x5c, b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
    (8, 0xf8, b"&*,;XZ"),
    (10, 0x3f8, b"!\"()?"),
    (11, 0x7fa, b"'+|"),
    (12, 0xffa, b"#>"),
    (13, 0x1ff8, b"\0$@[]~"),
    (14, 0x3ffc, b"^}"),
    (LONGEST_CODE, 0x7ffc, b"<`{"),
];

/// A code of the same length whose character is plain.
fn replacement(bits: usize) -> Option<u32> {
    let (_, first, characters) = CODES.iter().find(|(length, ..)| *length == bits)?;
    // `-` where there is a choice.
    let plain = characters.iter().position(|&character| character == b'-');
    let plain = plain.or_else(|| characters.iter().position(|&character| is_plain(character)))?;
    Some(first + plain as u32)
}

/// The characters of a string in Huffman code. None when there is one with a longer code, or the end is no padding.
fn decode(value: &[u8]) -> Option<Vec<Symbol>> {
    let all = value.len() * 8;
    let mut decoded = Vec::new();
    let mut at = 0;
    while at < all {
        let symbol = CODES.iter().find_map(|&(bits, first, characters)| {
            let code = get(value, at, bits)?;
            let character = *characters.get(code.checked_sub(first)? as usize)?;
            Some(Symbol {
                character,
                at,
                bits,
            })
        });
        let Some(symbol) = symbol else {
            // Less than a byte of ones fills up the last byte.
            let rest = all - at;
            let padding = rest < 8 && get(value, at, rest) == Some((1 << rest) - 1);
            return padding.then_some(decoded);
        };
        at += symbol.bits;
        decoded.push(symbol);
    }
    Some(decoded)
}

fn get(value: &[u8], at: usize, bits: usize) -> Option<u32> {
    (at..at + bits).try_fold(0, |code, bit| {
        let byte = value.get(bit / 8)?;
        Some((code << 1) | u32::from(byte >> (7 - bit % 8) & 1))
    })
}

fn put(value: &mut [u8], at: usize, bits: usize, code: u32) {
    for (bit, shift) in (at..at + bits).zip((0..bits).rev()) {
        let mask = 0x80 >> (bit % 8);
        if code >> shift & 1 == 1 {
            value[bit / 8] |= mask;
        } else {
            value[bit / 8] &= !mask;
        }
    }
}
