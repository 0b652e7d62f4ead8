//! Vector search: exact scan, HNSW, quantisation; the room for foreign code.
