//! Limits on calls that several replicas count together, in the store.
//!
//! A replica takes a share of a limit and uses it without asking. Small limits are asked about at each call. All shares of a period
//! together never exceed the limit; a replica that ends takes the rest of its share with it. Minutes are those of the clock.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use super::{Exceeded, Key, Limits, quotas};
use crate::config::{Limit, Measure};
use crate::store::{Allowance, Records};

/// The smallest limit of which shares are taken.
const SMALL: u64 = 60;

/// A share is at most this part of a limit.
const PART: u64 = 10;

/// The shares of this replica, by limit: the period, and the calls that are left.
pub(super) type Shares = HashMap<String, (i64, u64)>;

/// A period: its number, and the time until its end.
fn period(measure: Measure) -> Option<(i64, Duration)> {
    let now = time::OffsetDateTime::now_utc().unix_timestamp();
    Some(match measure {
        Measure::CallsPerMinute => {
            let left = 60 - now.rem_euclid(60);
            (now.div_euclid(60), Duration::from_secs(left.unsigned_abs()))
        }
        Measure::CallsPerDay => (i64::from(quotas::day()), quotas::until_tomorrow()),
        Measure::CallsPerMonth => (i64::from(quotas::month()), quotas::until_next_month()),
        _ => return None,
    })
}

impl Limits {
    /// Takes one call from the share of each limit, and asks the store for a share where none is left.
    pub(super) async fn take_shared(&self, theirs: &[(Key, &Limit)]) -> Result<(), Exceeded> {
        let Some(store) = &self.shared else {
            return Ok(());
        };
        let measures = [
            Measure::CallsPerMinute,
            Measure::CallsPerDay,
            Measure::CallsPerMonth,
        ];
        // Calls taken of one limit go back if another limit refuses the call.
        let mut taken = Vec::new();
        let mut outcome = Ok(());
        'all: for (key, limit) in theirs {
            for measure in measures {
                let (Some(most), Some((period, left))) = (limit.most(measure), period(measure))
                else {
                    continue;
                };
                let who = key.who.as_deref().unwrap_or_default();
                let name = format!("{measure:?}\n{}\n{who}", key.limit);
                match self
                    .take_one(store.as_ref(), &name, period, most, left)
                    .await
                {
                    Ok(true) => taken.push((name, period)),
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
            for (name, period) in taken {
                let share = shares.get_mut(&name).filter(|share| share.0 == period);
                share.into_iter().for_each(|share| share.1 += 1);
            }
        }
        outcome
    }

    /// Takes one call. Returns whether there was one.
    async fn take_one(
        &self,
        store: &dyn Records,
        name: &str,
        period: i64,
        most: u64,
        left: Duration,
    ) -> io::Result<bool> {
        let take = || {
            let mut shares = self.shares.lock();
            let share = shares.get_mut(name).filter(|share| share.0 == period);
            share.is_some_and(|share| match share.1.checked_sub(1) {
                Some(rest) => {
                    share.1 = rest;
                    true
                }
                None => false,
            })
        };
        if take() {
            return Ok(true);
        }
        let wanted = if most < SMALL { 1 } else { most / PART };
        let allowance = Allowance {
            key: name.to_owned(),
            period,
            ends: left,
            most,
            wanted,
        };
        let granted = store.allow(allowance).await?;
        {
            let mut shares = self.shares.lock();
            // Of other periods nothing counts any more.
            if shares.len() >= super::MOST {
                shares.retain(|_, share| share.1 > 0);
            }
            let share = shares.entry(name.to_owned()).or_insert((period, 0));
            if share.0 != period {
                *share = (period, 0);
            }
            share.1 += granted;
        }
        Ok(take())
    }
}
