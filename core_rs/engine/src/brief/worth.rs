//! What a memory and its forms are worth to the packer: all that there is to tune.
//!
//! The packer adds values up, so they must behave like chances to help: relevance itself is far too high for an average
//! memory, and many cheap headlines would crowd out the one that answers. `docs/decisions/0004-briefs.md` has the sweep.

use recalld_algo::score::logistic;

use crate::search::Scored;

/// What a form keeps of a memory's value.
pub(super) const FULL: f64 = 1.0;
pub(super) const SUMMARY: f64 = 0.95;
/// Of only the sentences that have the words of the query.
pub(super) const CORE: f64 = 0.9;
pub(super) const HEADLINE: f64 = 0.2;
/// Of so many quoted passages: the best one keeps nearly all of it.
pub(super) const PASSAGES: [(usize, f64); 9] = [
    (1, 0.9),
    (2, 0.95),
    (3, 0.97),
    (5, 0.975),
    (8, 0.98),
    (13, 0.985),
    (20, 0.99),
    (32, 0.995),
    (50, 0.997),
];
/// More than the first three are offered only where they have a chance: when they take no more than twice a memory's even
/// share of the budget. About so many tokens has a passage.
pub(super) const ALWAYS_OFFERED: usize = 3;
pub(super) const PASSAGE_TOKENS: u32 = 60;

/// The least tokens of a quotation with its head. As many of the best memories as the budget could hold of it are read
/// for the query; what the others cost is known from when they were written.
pub(super) const QUOTATION_TOKENS: u32 = 40;

/// Values are whole numbers: so fine that the worth of the weakest memory is still one, and so coarse that those of all
/// memories of a brief can be added up.
const UNIT: f64 = 1e15;

/// Fused value at which a memory helps as often as not, and how fast that rises around it.
const EVEN: f64 = 3.0;
const STEEPNESS: f64 = 0.7;

/// The value of a memory. Flatter than relevance, which does not tell the best memories apart.
pub(super) fn worth(scored: &Scored) -> f64 {
    logistic(scored.fused, EVEN, STEEPNESS).powi(4) * scored.score * UNIT
}
