//! What all connections of a front share.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use crate::connection::Phase;
use crate::handler::Methods;
use crate::limits::{Budget, Limits, Places};

pub(crate) struct Shared {
    pub(crate) methods: Methods,
    /// Where grpcio listens.
    pub(crate) upstream: PathBuf,
    pub(crate) limits: Limits,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) budget: Arc<Budget>,
    /// A place for each request in hand.
    pub(crate) requests: Places,
    /// A place for each connection.
    pub(crate) connections: Places,
}

impl Shared {
    pub(crate) fn new(
        methods: Methods,
        upstream: PathBuf,
        limits: Limits,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        Self {
            methods,
            upstream,
            budget: Budget::new(limits.held_bytes),
            requests: Places::new(limits.requests),
            connections: Places::new(limits.connections),
            limits,
            phase,
        }
    }
}
