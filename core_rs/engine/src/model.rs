//! The embedder of this engine: the static model, mapped from its folder.

use std::cell::RefCell;
use std::path::Path;

use recalld_embed::{Scratch, StaticModel};
use recalld_store::StoreError;
use recalld_vector::quantize::quantize;
use recalld_vector::{MappedFile, Quantized};

use crate::EngineError;

/// Turns texts into vectors.
pub struct Model {
    model: StaticModel,
}

thread_local! {
    static SCRATCH: RefCell<(Scratch, Vec<f32>)> = RefCell::default();
}

impl Model {
    /// Loads `model.safetensors` and `vocab.txt` of a folder.
    pub fn load(folder: &Path) -> Result<Self, EngineError> {
        let io = |path: &Path, source: std::io::Error| StoreError::Io {
            source: std::io::Error::new(
                source.kind(),
                format!("embedding model {}: {source}", path.display()),
            ),
        };
        let weights = folder.join("model.safetensors");
        let vocabulary = folder.join("vocab.txt");
        let mapped = MappedFile::open(&weights).map_err(|e| io(&weights, e))?;
        let text = std::fs::read_to_string(&vocabulary).map_err(|e| io(&vocabulary, e))?;
        Ok(Self {
            model: StaticModel::new(Box::new(mapped), &text)?,
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

    /// The quantised vector of a text; None when nothing in it is known.
    pub(crate) fn quantized(&self, text: &str) -> Option<Quantized> {
        // A vector of the model is finite and of unit length, so it is never refused.
        self.embed(text, |vector| quantize(vector).ok()).flatten()
    }
}
