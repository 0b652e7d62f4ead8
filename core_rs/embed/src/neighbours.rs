//! The nearest rows of every row, by which words that mean nearly the same are told.
//!
//! They are made from the table once, by `tools/model/neighbours.py`, since the comparison of all rows with all others
//! takes a minute. The file is in the safetensors format, with two tensors: `ids` (U16, rows × width) and `cosines`
//! (U8, rows × width, in steps of 1/255), nearest first; a cosine of 0 ends a shorter list.

use std::fmt;
use std::ops::Range;

use crate::error::EmbedError;
use crate::format;

/// Steps of a cosine.
const STEPS: f32 = 255.0;

/// Lists of near rows, read where they lie.
pub(crate) struct Neighbours {
    file: Box<dyn AsRef<[u8]> + Send + Sync>,
    ids: Range<usize>,
    cosines: Range<usize>,
    width: usize,
}

impl fmt::Debug for Neighbours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Neighbours")
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

impl Neighbours {
    /// Of the weights with that SHA-256 (hexadecimal) and so many rows.
    pub fn new(
        file: Box<dyn AsRef<[u8]> + Send + Sync>,
        weights: &str,
        rows: usize,
    ) -> Result<Self, EmbedError> {
        let format::Lists {
            model,
            width,
            ids,
            cosines,
        } = format::lists((*file).as_ref(), rows)?;
        if model != weights {
            return Err(EmbedError::Neighbours("they are of other weights"));
        }
        Ok(Self {
            file,
            ids,
            cosines,
            width,
        })
    }

    /// The rows near `row` with their cosines, nearest first.
    pub fn of(&self, row: u32) -> impl Iterator<Item = (u32, f32)> + '_ {
        let file = (*self.file).as_ref();
        let at = row as usize * self.width;
        let ids = file[self.ids.clone()].get(at * 2..(at + self.width) * 2);
        let cosines = file[self.cosines.clone()].get(at..at + self.width);
        let (ids, _) = ids.unwrap_or_default().as_chunks::<2>();
        ids.iter()
            .zip(cosines.unwrap_or_default())
            .take_while(|(_, cosine)| **cosine > 0)
            .map(|(id, cosine)| {
                (
                    u32::from(u16::from_le_bytes(*id)),
                    f32::from(*cosine) / STEPS,
                )
            })
    }
}
