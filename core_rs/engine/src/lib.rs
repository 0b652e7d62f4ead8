//! Namespaces, journal, apply, search and brief.
