//! The LMDB store: schema, codecs, transactions.
