//! Text to vector: the static model.
