//! Limits that several replicas count together, in the store.
//!
//! A replica takes a share of a limit and uses it without asking. Small limits on calls and requests are asked about each time. All shares
//! of a period together never exceed the limit; a replica that ends takes the rest of its share with it. Minutes are those of the clock.
//!
//! The bytes of an answer are known after the call. A call needs a share with something left; an answer that is larger than the share is
//! charged to the limit at once, so that the next call pays for it.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Exceeded, Key, Limits, quotas};
use crate::config::{Limit, Measure};
use crate::store::{Allowance, Records};

/// The smallest limit of which shares are taken.
const SMALL: u64 = 60;

/// A share is at most this part of a limit.
const PART: u64 = 10;

/// The measures that are counted when a call begins.
pub(super) const AT_CALLS: [Measure; 6] = [
    Measure::CallsPerMinute,
    Measure::CallsPerDay,
    Measure::CallsPerMonth,
    Measure::BytesPerMinute,
    Measure::BytesPerDay,
    Measure::BytesPerMonth,
];

/// The shares of this replica, by limit.
#[derive(Debug, Default)]
pub(super) struct Shares {
    all: HashMap<String, Share>,
    /// The number at which those whose period has ended are removed.
    full: usize,
}

impl Shares {
    /// The share of a limit in this period.
    fn get(&mut self, name: &str, period: i64) -> Option<&mut Share> {
        let share = self.all.get_mut(name);
        share.filter(|share| share.period == period)
    }

    /// Adds an amount to a share of a period, which ends after `left`.
    fn add(&mut self, name: &str, (period, left): (i64, Duration), amount: i64) {
        if self.all.len() >= self.full.max(super::MOST) {
            let now = Instant::now();
            self.all.retain(|_, share| share.ends > now);
            // All are looked at again when there are twice as many, so that each one has been looked at a few times at most.
            self.full = self.all.len() * 2;
        }
        let none = Share {
            period,
            ends: Instant::now() + left,
            left: 0,
        };
        let share = self.all.entry(name.to_owned()).or_insert(none);
        if share.period != period {
            *share = none;
        }
        share.left = share.left.saturating_add(amount);
    }
}

/// A share of a limit in one period.
#[derive(Debug, Clone, Copy)]
struct Share {
    period: i64,
    ends: Instant,
    /// The rest; negative for an amount that was used without a grant and could not be charged yet.
    left: i64,
}

/// A limit on bytes of a call that goes on.
#[derive(Debug, Clone)]
pub(super) struct Counted {
    name: String,
    measure: Measure,
}

/// Whether a measure counts bytes.
fn is_of_bytes(measure: Measure) -> bool {
    matches!(
        measure,
        Measure::BytesPerMinute | Measure::BytesPerDay | Measure::BytesPerMonth
    )
}

/// A period: its number, and the time until its end.
fn period(measure: Measure) -> Option<(i64, Duration)> {
    let now = time::OffsetDateTime::now_utc().unix_timestamp();
    Some(match measure {
        Measure::CallsPerMinute | Measure::RequestsPerMinute | Measure::BytesPerMinute => {
            let left = 60 - now.rem_euclid(60);
            (now.div_euclid(60), Duration::from_secs(left.unsigned_abs()))
        }
        Measure::CallsPerDay | Measure::BytesPerDay => {
            (i64::from(quotas::day()), quotas::until_tomorrow())
        }
        Measure::CallsPerMonth | Measure::BytesPerMonth => {
            (i64::from(quotas::month()), quotas::until_next_month())
        }
        Measure::CallsInFlight => return None,
    })
}

/// The name of a limit in the store.
fn name(measure: Measure, key: &Key) -> String {
    let who = key.who.as_deref().unwrap_or_default();
    format!("{measure:?}\n{}\n{who}", key.limit)
}

/// The limits on bytes that these calls count for.
pub(super) fn counted(theirs: &[(Key, &Limit)]) -> Vec<Counted> {
    let all = theirs.iter().flat_map(|(key, limit)| {
        let measures = AT_CALLS
            .into_iter()
            .filter(|measure| is_of_bytes(*measure) && limit.most(*measure).is_some());
        measures.map(|measure| Counted {
            name: name(measure, key),
            measure,
        })
    });
    all.collect()
}

impl Limits {
    /// Takes one call or request from the share of each limit by these measures, and asks the store for a share where none is left.
    pub(super) async fn take_shared(
        &self,
        theirs: &[(Key, &Limit)],
        measures: &[Measure],
    ) -> Result<(), Exceeded> {
        let Some(store) = &self.shared else {
            return Ok(());
        };
        // An amount that was taken of one limit goes back if another limit refuses the call.
        let mut taken = Vec::new();
        let mut outcome = Ok(());
        'all: for (key, limit) in theirs {
            for measure in measures.iter().copied() {
                let (Some(most), Some((period, left))) = (limit.most(measure), period(measure))
                else {
                    continue;
                };
                let name = name(measure, key);
                let amount = i64::from(!is_of_bytes(measure));
                let allowance = Allowance {
                    key: name.clone(),
                    period,
                    ends: left,
                    most,
                    wanted: match amount > 0 && most < SMALL {
                        true => 1,
                        false => (most / PART).max(1),
                    },
                };
                match self.take(store.as_ref(), allowance, amount).await {
                    Ok(true) => taken.push((name, period, amount)),
                    Ok(false) => {
                        outcome = Err(self.state.lock().refuse(limit, measure, most, left));
                        break 'all;
                    }
                    Err(error) => {
                        tracing::error!(%error, "a limit cannot be read from the store, so the call is refused");
                        outcome = Err(Exceeded::Unknown);
                        break 'all;
                    }
                }
            }
        }
        if outcome.is_err() {
            let mut shares = self.shares.lock();
            for (name, period, amount) in taken {
                let share = shares.get(&name, period);
                share.into_iter().for_each(|share| share.left += amount);
            }
        }
        outcome
    }

    /// Takes an amount, 0 for one that is not known yet. Returns whether there was something left.
    async fn take(
        &self,
        store: &dyn Records,
        allowance: Allowance,
        amount: i64,
    ) -> io::Result<bool> {
        let (name, period, left) = (allowance.key.clone(), allowance.period, allowance.ends);
        let take = || {
            let mut shares = self.shares.lock();
            shares.get(&name, period).is_some_and(|share| {
                let has_some = share.left > 0;
                if has_some {
                    share.left -= amount;
                }
                has_some
            })
        };
        if take() {
            return Ok(true);
        }
        let granted = store.allow(allowance).await?;
        let granted = i64::try_from(granted).unwrap_or(i64::MAX);
        self.shares.lock().add(&name, (period, left), granted);
        Ok(take())
    }

    /// Counts bytes of a call. Those that the share does not have are charged to the limit.
    pub(super) fn count_shared(self: &Arc<Self>, counted: &[Counted], bytes: u64) {
        let Some(store) = &self.shared else {
            return;
        };
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        for Counted { name, measure } in counted {
            let Some((period, ends)) = period(*measure) else {
                continue;
            };
            let debt = {
                let mut shares = self.shares.lock();
                shares.add(name, (period, ends), bytes.saturating_neg());
                let share = shares.get(name, period).filter(|share| share.left < 0);
                share.map_or(0, |share| std::mem::take(&mut share.left).unsigned_abs())
            };
            if debt == 0 {
                continue;
            }
            let (limits, store, name) = (self.clone(), store.clone(), name.clone());
            self.tasks.spawn(async move {
                let used = Allowance {
                    key: name.clone(),
                    period,
                    ends,
                    most: 0,
                    wanted: debt,
                };
                if let Err(error) = store.charge(used).await {
                    tracing::debug!(%error, "bytes are counted at this replica alone");
                    let debt = i64::try_from(debt).unwrap_or(i64::MAX);
                    let mut shares = limits.shares.lock();
                    shares.add(&name, (period, ends), debt.saturating_neg());
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_periods_that_have_ended_make_room() {
        let most = super::super::MOST;
        let mut shares = Shares::default();
        let (over, on) = ((1, Duration::ZERO), (2, Duration::from_secs(3600)));
        for number in 0..most {
            shares.add(&format!("old {number}"), over, 1);
        }
        shares.add("new", on, 1);
        assert_eq!(shares.all.len(), 1, "those that have ended are gone");
        for number in 0..2 * most {
            shares.add(&number.to_string(), on, 1);
        }
        assert!(shares.full > most, "all are not looked at for each one");
        assert_eq!(shares.get("new", 2).unwrap().left, 1);
        assert!(shares.get("new", 1).is_none());
    }
}
