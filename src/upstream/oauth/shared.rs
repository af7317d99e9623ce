//! The records of logins in the store that replicas share. A lease with a fence lets one replica at a time renew a login.

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::place::LoginPlace;
use crate::store::{Lease, Records};

/// Logins in the store, and the leases of this process.
pub(crate) struct SharedLogins {
    records: Arc<dyn Records>,
    leases: Arc<Mutex<BTreeMap<String, Lease>>>,
}

/// A lease, given back when it is dropped.
struct Held {
    records: Arc<dyn Records>,
    leases: Arc<Mutex<BTreeMap<String, Lease>>>,
    name: String,
}

impl SharedLogins {
    /// The logins of this store.
    #[must_use]
    pub(crate) fn new(records: Arc<dyn Records>) -> Self {
        Self {
            records,
            leases: Arc::default(),
        }
    }

    async fn lease(&self, name: &str) -> io::Result<Held> {
        let lease = self.records.lease_login(name).await?;
        self.leases.lock().insert(name.to_owned(), lease);
        Ok(Held {
            records: self.records.clone(),
            leases: self.leases.clone(),
            name: name.to_owned(),
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(lease) = self.leases.lock().remove(&self.name) {
            self.records.release_login(lease);
        }
    }
}

impl LoginPlace for SharedLogins {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Option<Vec<u8>>>> {
        self.records.load_login(name)
    }

    fn save<'a>(&'a self, name: &'a str, record: Option<Vec<u8>>) -> BoxFuture<'a, io::Result<()>> {
        async move {
            let held = self.leases.lock().get(name).cloned();
            match held {
                Some(lease) => self.records.save_login(&lease, record).await,
                // Not under the lock of a renewal, such as when a login is removed.
                None => {
                    let held = self.lease(name).await?;
                    let lease = self.leases.lock().get(name).cloned();
                    let lease = lease.ok_or(io::ErrorKind::Interrupted)?;
                    let saved = self.records.save_login(&lease, record).await;
                    drop(held);
                    saved
                }
            }
        }
        .boxed()
    }

    fn lock<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Any + Send + Sync>>> {
        async move {
            let held = self.lease(name).await?;
            Ok(Box::new(held) as Box<dyn Any + Send + Sync>)
        }
        .boxed()
    }
}
