//! Answers to calls: whole, selected or stored results, error texts, and the form of each era.

pub(in crate::proxy) mod answer;
mod compact;
pub(in crate::proxy) mod content;
pub(in crate::proxy) mod counting;
pub(in crate::proxy) mod duplicate;
pub(in crate::proxy) mod error;
pub(crate) mod projection;
mod read_result;
pub(in crate::proxy) mod reply;

use std::sync::Arc;

use crate::results::Results;
use crate::shutdown::Tasks;
use crate::statistics::Statistics;
use projection::Projection;

/// Turns results of servers into answers: filters, stores and counts them.
#[derive(Debug)]
pub(in crate::proxy) struct Answers {
    projection: Projection,
    pub(in crate::proxy) results: Arc<Results>,
    statistics: Arc<Statistics>,
    tasks: Tasks,
}

impl Answers {
    pub(in crate::proxy) fn new(
        results: Arc<Results>,
        statistics: Arc<Statistics>,
        tasks: Tasks,
    ) -> Self {
        Self {
            projection: Projection::default(),
            results,
            statistics,
            tasks,
        }
    }
}
