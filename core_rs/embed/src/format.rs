//! The weights file: where things lie in it, checked before anything is read.
//!
//! It is a safetensors file: the length of the header (u64, little-endian), the header (JSON), the tensors.
//! There are two, `embeddings` (I8, rows × dimensions) and `weights` (F32, one scale a row), which must fill
//! the rest of the file exactly. The header's `__metadata__` holds, as strings: `format` ("1"), `name`,
//! `dims`, `normalize` ("l2"), `words` and `pieces` (rows of each of the two tokenizers, in this order).
//! The file of the neighbours is laid out in the same way; see [`crate::neighbours`].

use std::ops::Range;

use serde_json::{Map, Value};

use crate::error::EmbedError;

/// The version of the format that this crate reads.
pub(crate) const FORMAT: &str = "1";

/// Longest header accepted, in bytes. A real one has about 300; the limit keeps a damaged length from making
/// the JSON parser walk the table.
const MAX_HEADER: usize = 64 * 1024;

/// What the header says, found consistent with itself and with the length of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Name of the model.
    pub name: String,
    /// Dimensions of a row.
    pub dimensions: usize,
    /// Rows of the `WordPiece` tokenizer; they come first.
    pub words: usize,
    /// Rows of the unigram tokenizer.
    pub pieces: usize,
    /// Bytes of the table in the file, row after row.
    pub table: Range<usize>,
    /// Bytes of the scales in the file, f32 little-endian.
    pub scales: Range<usize>,
}

/// Reads and checks the header of a weights file.
pub(crate) fn layout(file: &[u8]) -> Result<Layout, EmbedError> {
    use EmbedError::Weights;

    let (header, data) = parts(file).map_err(Weights)?;
    let metadata = |key: &str| header.get("__metadata__")?.get(key)?.as_str();
    let format = metadata("format").ok_or(Weights("its metadata name no format"))?;
    if format != FORMAT {
        return Err(EmbedError::Format {
            found: format.chars().take(32).collect(),
        });
    }
    if metadata("normalize") != Some("l2") {
        return Err(Weights("its vectors are not normalised by \"l2\""));
    }
    let name = metadata("name")
        .filter(|name| !name.is_empty())
        .ok_or(Weights("its metadata give no name"))?;
    let count = |key: &str| -> Option<usize> { metadata(key)?.parse().ok() };
    let (Some(dimensions), Some(words), Some(pieces)) =
        (count("dims"), count("words"), count("pieces"))
    else {
        return Err(Weights("its metadata lack dims, words or pieces"));
    };
    // The row number u32::MAX is the tries' mark for "no row".
    let rows = words
        .checked_add(pieces)
        .filter(|&n| n > 0 && n < u32::MAX as usize)
        .ok_or(Weights("the number of its rows is out of range"))?;
    if dimensions == 0 {
        return Err(Weights("its rows have no dimensions"));
    }

    let table = tensor(&header, "embeddings", "I8", &[rows, dimensions], 1)
        .ok_or(Weights("its tensor \"embeddings\" is not as described"))?;
    let scales = tensor(&header, "weights", "F32", &[rows], 4)
        .ok_or(Weights("its tensor \"weights\" is not as described"))?;
    if !fill(&table, &scales, data) {
        return Err(Weights(NOT_FILLED));
    }
    let start = file.len() - data.len();
    let in_file = |range: &Range<usize>| range.start + start..range.end + start;
    Ok(Layout {
        name: name.to_owned(),
        dimensions,
        words,
        pieces,
        table: in_file(&table),
        scales: in_file(&scales),
    })
}

/// Where the lists of neighbours lie, found consistent with the number of rows.
pub(crate) struct Lists {
    /// SHA-256 of the weights that they were made from, hexadecimal.
    pub model: String,
    /// Neighbours of a row, at most.
    pub width: usize,
    /// Bytes of the rows' numbers in the file, u16 little-endian.
    pub ids: Range<usize>,
    /// Bytes of the cosines in the file.
    pub cosines: Range<usize>,
}

/// Reads and checks the header of a file of neighbours.
pub(crate) fn lists(file: &[u8], rows: usize) -> Result<Lists, EmbedError> {
    use EmbedError::Neighbours;

    let (header, data) = parts(file).map_err(Neighbours)?;
    let metadata = |key: &str| header.get("__metadata__")?.get(key)?.as_str();
    if metadata("format") != Some(FORMAT) {
        return Err(Neighbours("they are of another format"));
    }
    let model = metadata("model").ok_or(Neighbours("their metadata name no model"))?;
    let width = header
        .get("ids")
        .and_then(|ids| ids.get("shape")?.get(1)?.as_u64())
        .and_then(|width| usize::try_from(width).ok())
        .ok_or(Neighbours("their tensor \"ids\" is not as described"))?;
    let ids = tensor(&header, "ids", "U16", &[rows, width], 2)
        .ok_or(Neighbours("their tensor \"ids\" is not as described"))?;
    let cosines = tensor(&header, "cosines", "U8", &[rows, width], 1)
        .ok_or(Neighbours("their tensor \"cosines\" is not as described"))?;
    if !fill(&ids, &cosines, data) {
        return Err(Neighbours(NOT_FILLED));
    }
    let start = file.len() - data.len();
    Ok(Lists {
        model: model.to_owned(),
        width,
        ids: ids.start + start..ids.end + start,
        cosines: cosines.start + start..cosines.end + start,
    })
}

/// The header of a safetensors file and its data.
fn parts(file: &[u8]) -> Result<(Map<String, Value>, &[u8]), &'static str> {
    let too_short = "it is shorter than its header";
    let (length, rest) = file.split_first_chunk::<8>().ok_or(too_short)?;
    let length = usize::try_from(u64::from_le_bytes(*length))
        .ok()
        .filter(|&n| n <= MAX_HEADER)
        .ok_or("the length of its header is out of range")?;
    let (header, data) = rest.split_at_checked(length).ok_or(too_short)?;
    let header = serde_json::from_slice(header).map_err(|_| "its header is not a JSON object")?;
    Ok((header, data))
}

const NOT_FILLED: &str = "its tensors do not fill it exactly";

/// Whether two tensors fill the data exactly, in either order.
fn fill(one: &Range<usize>, other: &Range<usize>, data: &[u8]) -> bool {
    let (first, second) = if one.start <= other.start {
        (one, other)
    } else {
        (other, one)
    };
    first.start == 0 && first.end == second.start && second.end == data.len()
}

/// Where a tensor lies in the data, if the header describes it with exactly this type and shape.
fn tensor(
    header: &Map<String, Value>,
    name: &str,
    dtype: &str,
    shape: &[usize],
    item_bytes: usize,
) -> Option<Range<usize>> {
    let tensor = header.get(name)?;
    let sizes = |key: &str| -> Option<Vec<usize>> {
        let items = tensor.get(key)?.as_array()?;
        items
            .iter()
            .map(|n| usize::try_from(n.as_u64()?).ok())
            .collect()
    };
    let bytes = shape
        .iter()
        .try_fold(item_bytes, |product, &n| product.checked_mul(n))?;
    let [start, end] = sizes("data_offsets")?.try_into().ok()?;
    let described = tensor.get("dtype")?.as_str()? == dtype && sizes("shape")? == shape;
    (described && end.checked_sub(start)? == bytes).then_some(start..end)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use proptest::prelude::*;

    use super::*;

    /// A header for 2 words and 1 piece of 4 dimensions, and its data.
    const HEADER: &str = r#"{"__metadata__":{"format":"1","name":"tiny","dims":"4","normalize":"l2","words":"2","pieces":"1"},"weights":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"embeddings":{"dtype":"I8","shape":[3,4],"data_offsets":[12,24]}}"#;

    fn file(header: &str, data: usize) -> Vec<u8> {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(header.as_bytes());
        file.resize(file.len() + data, 0);
        file
    }

    #[test]
    fn a_whole_file_is_read() {
        let start = 8 + HEADER.len();
        assert_eq!(
            layout(&file(HEADER, 24)).unwrap(),
            Layout {
                name: "tiny".to_owned(),
                dimensions: 4,
                words: 2,
                pieces: 1,
                scales: start..start + 12,
                table: start + 12..start + 24,
            }
        );
    }

    #[test]
    fn the_order_of_the_tensors_is_free() {
        let header = HEADER.replace("[0,12]", "[12,24]").replacen(
            "\"data_offsets\":[12,24]}}",
            "\"data_offsets\":[0,12]}}",
            1,
        );
        let layout = layout(&file(&header, 24)).unwrap();
        assert_eq!(layout.table.end, layout.scales.start);
    }

    #[test]
    fn a_file_cut_anywhere_is_refused() {
        let whole = file(HEADER, 24);
        for length in 0..whole.len() {
            assert!(layout(&whole[..length]).is_err(), "cut to {length} bytes");
        }
        let mut longer = whole;
        longer.push(0);
        assert!(layout(&longer).is_err(), "one byte too many");
    }

    #[test]
    fn another_format_is_named() {
        let found = layout(&file(
            &HEADER.replace(r#""format":"1""#, r#""format":"2""#),
            24,
        ));
        assert_eq!(
            found.unwrap_err().to_string(),
            "the model is of format \"2\"; this version reads format \"1\""
        );
    }

    #[test]
    fn contradictions_are_refused() {
        for (right, wrong) in [
            (r#""dims":"4""#, r#""dims":"5""#),
            (r#""dims":"4""#, r#""dims":"four""#),
            (r#""dims":"4""#, r#""dims":"0""#),
            (r#""words":"2""#, r#""words":"3""#),
            (r#""words":"2""#, r#""words":"18446744073709551615""#),
            (r#","pieces":"1""#, ""),
            (r#""pieces":"1""#, r#""pieces":"4294967293""#),
            (r#""name":"tiny""#, r#""name":"""#),
            (r#""l2""#, r#""none""#),
            (r#""I8""#, r#""U8""#),
            (r#""F32""#, r#""F64""#),
            ("[3,4]", "[4,3]"),
            ("[3,4]", "[12]"),
            ("[0,12]", "[12,0]"),
            ("[0,12]", "[0,12,24]"),
            ("[0,12]", "[-12,0]"),
            ("[0,12]", "[12,24]"),
            ("[12,24]", "[13,25]"),
            ("[12,24]", "[18446744073709551604,18446744073709551615]"),
            (r#""embeddings""#, r#""other""#),
            ("{\"__", "[{\"__"),
        ] {
            let header = HEADER.replacen(right, wrong, 1);
            assert_ne!(header, HEADER, "{right} is in the header");
            assert!(layout(&file(&header, 24)).is_err(), "{right} as {wrong}");
        }
    }

    proptest! {
        /// No bytes make it panic, and what it accepts lies within the file.
        #[test]
        fn any_bytes(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), length in 0..400_u64) {
            if let Some(head) = bytes.first_chunk_mut::<8>() {
                *head = length.to_le_bytes();
            }
            let _ = layout(&bytes);
        }

        #[test]
        fn a_changed_byte(at in 0..8 + HEADER.len(), byte: u8) {
            let mut bytes = file(HEADER, 24);
            bytes[at] = byte;
            if let Ok(layout) = layout(&bytes) {
                prop_assert!(layout.table.end <= bytes.len() && layout.scales.end <= bytes.len());
                prop_assert_eq!(layout.table.len(), 12);
                prop_assert_eq!(layout.scales.len(), 12);
            }
        }
    }
}
