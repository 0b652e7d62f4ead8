//! protect.
