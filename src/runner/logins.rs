//! The application's own store for logins.

use std::any::Any;
use std::io;

use futures_util::FutureExt as _;

use super::contained::{Panicked, contained};
use super::error::Error;
use super::inside::BoxFuture;
use crate::upstream::oauth::LoginPlace;

/// A store for logins at servers, for [`Builder::login_store`](crate::Builder::login_store). It takes the place of the files below
/// [`Builder::directories`](crate::Builder::directories).
///
/// A record has the tokens of one server in clear text: encrypt it, unless the store does. A name is `SERVER-HASH`, the same for
/// the same URL, and a valid name of a file. Runners of one process that are to share logins need one store each, with a
/// [`lock`](Self::lock) that holds for all of them.
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::Mutex;
/// use mcpzip::{BoxFuture, Error, LoginStore, Runner, Server};
///
/// #[derive(Default)]
/// struct Memory(Mutex<HashMap<String, Vec<u8>>>);
///
/// impl LoginStore for Memory {
///     fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, Error>> {
///         Box::pin(async move { Ok(self.0.lock().unwrap().get(name).cloned()) })
///     }
///
///     fn save<'a>(&'a self, name: &'a str, record: Vec<u8>) -> BoxFuture<'a, Result<(), Error>> {
///         Box::pin(async move {
///             self.0.lock().unwrap().insert(name.to_owned(), record);
///             Ok(())
///         })
///     }
///
///     fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>> {
///         Box::pin(async move {
///             self.0.lock().unwrap().remove(name);
///             Ok(())
///         })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let runner = Runner::builder()
///     .server("tracker", Server::http("https://tracker.example.com/mcp"))
///     .login_store(Memory::default())
///     .build()
///     .await?;
/// # Ok(())
/// # }
/// ```
pub trait LoginStore: Send + Sync + 'static {
    /// The record called `name`, if there is one.
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, Error>>;

    /// Keeps a record. It must last when this returns: a refresh token that was used up cannot be had again.
    fn save<'a>(&'a self, name: &'a str, record: Vec<u8>) -> BoxFuture<'a, Result<(), Error>>;

    /// Removes a record. One that is not there is no error.
    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Locks the record against changes by others until the value is dropped. A runner changes a record in one
    /// task at a time without it; a store that several runners or processes share needs it, since a refresh token is often
    /// valid once.
    fn lock<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Box<dyn Any + Send + Sync>, Error>> {
        let _ = name;
        Box::pin(async { Ok(Box::new(()) as Box<dyn Any + Send + Sync>) })
    }
}

/// A store of the program, as logins use it.
pub(super) struct Own<S>(pub(super) S);

impl<S: LoginStore> LoginPlace for Own<S> {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Option<Vec<u8>>>> {
        answered(async { self.0.load(name).await })
    }

    fn save<'a>(&'a self, name: &'a str, record: Option<Vec<u8>>) -> BoxFuture<'a, io::Result<()>> {
        match record {
            Some(record) => answered(async move { self.0.save(name, record).await }),
            None => answered(async { self.0.remove(name).await }),
        }
    }

    fn lock<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Any + Send + Sync>>> {
        answered(async { self.0.lock(name).await })
    }
}

/// The result of `future`; a panic in it is an error.
fn answered<'a, T: 'a>(
    future: impl Future<Output = Result<T, Error>> + Send + 'a,
) -> BoxFuture<'a, io::Result<T>> {
    Box::pin(contained(future).map(|answered| match answered {
        Ok(answered) => answered.map_err(io::Error::other),
        Err(Panicked) => Err(io::Error::other("the store for logins panicked")),
    }))
}
