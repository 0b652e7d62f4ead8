//! topk.
