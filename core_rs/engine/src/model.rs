//! The embedder of this engine: the static model, mapped from its folder.

use std::cell::RefCell;
use std::path::Path;

use recalld_embed::{Scratch, StaticModel};
use recalld_store::StoreError;
use recalld_vector::quantize::quantize;
use recalld_vector::{MappedFile, Quantized};

use crate::EngineError;

/// Weight from which a word is kept to be compared: below it are articles, prepositions and punctuation, two fifths of a text.
const TELLING: f32 = 0.5;

/// Turns texts into vectors.
pub struct Model {
    model: StaticModel,
}

thread_local! {
    static SCRATCH: RefCell<(Scratch, Vec<f32>)> = RefCell::default();
}

impl Model {
    /// Loads `model.safetensors`, `vocab.txt` and `neighbours.safetensors` of a folder.
    pub fn load(folder: &Path) -> Result<Self, EngineError> {
        let io = |path: &Path, source: std::io::Error| StoreError::Io {
            source: std::io::Error::new(
                source.kind(),
                format!("embedding model {}: {source}", path.display()),
            ),
        };
        let vocabulary = folder.join("vocab.txt");
        let text = std::fs::read_to_string(&vocabulary).map_err(|e| io(&vocabulary, e))?;
        let map = |name| {
            let path = folder.join(name);
            MappedFile::open(&path).map_err(|e| io(&path, e))
        };
        let weights = map("model.safetensors")?;
        let neighbours = map("neighbours.safetensors")?;
        Ok(Self {
            model: StaticModel::new(Box::new(weights), &text, Box::new(neighbours))?,
        })
    }

    pub(crate) fn name(&self) -> &str {
        self.model.name()
    }

    pub(crate) fn fingerprint(&self) -> &str {
        self.model.fingerprint()
    }

    /// Of a vector.
    pub fn dimensions(&self) -> usize {
        self.model.dimensions()
    }

    /// Calls `with` with the unit vector of a text; None when nothing in it is known.
    pub fn embed<T>(&self, text: &str, with: impl FnOnce(&[f32]) -> T) -> Option<T> {
        SCRATCH.with_borrow_mut(|(scratch, out)| {
            out.resize(self.dimensions(), 0.0);
            self.model.embed(text, scratch, out).then(|| with(out))
        })
    }

    /// The quantised vector of a passage, None when nothing in it is known, and its telling words, in order.
    pub(crate) fn passage(&self, text: &str) -> (Option<Quantized>, Vec<u32>) {
        SCRATCH.with_borrow_mut(|(scratch, out)| {
            out.resize(self.dimensions(), 0.0);
            let known = self.model.embed(text, scratch, out);
            // A vector of the model is finite and of unit length, so it is never refused.
            let vector = known.then(|| quantize(out).ok()).flatten();
            (vector, self.telling(self.model.rows(text, scratch)))
        })
    }

    /// The telling words of a text, in order: rows of the model without those that say next to nothing.
    pub(crate) fn words(&self, text: &str) -> Vec<u32> {
        SCRATCH.with_borrow_mut(|(scratch, _)| self.telling(self.model.rows(text, scratch)))
    }

    fn telling(&self, rows: &[u32]) -> Vec<u32> {
        let mut words = rows.to_vec();
        words.sort_unstable();
        words.dedup();
        words.retain(|&word| self.model.weight(word) >= TELLING);
        words
    }

    /// How much a word says; at least [`TELLING`].
    pub(crate) fn weight(&self, word: u32) -> f32 {
        self.model.weight(word)
    }

    /// The words that mean nearly the same, with their cosines.
    pub(crate) fn neighbours(&self, word: u32) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.model.neighbours(word)
    }
}
