//! Futures of the application, whose panics do not spread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The future panicked.
#[derive(Debug)]
pub(super) struct Panicked;

/// A future of the program. A panic of it is its result, and one in its drop goes no further.
pub(super) struct Contained<F>(Option<Pin<Box<F>>>);

/// Contains the panics of `future`. A method that makes a future may panic before there is one: call it within `async`.
pub(super) fn contained<F: Future>(future: F) -> Contained<F> {
    Contained(Some(Box::pin(future)))
}

impl<F: Future> Future for Contained<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else {
            return Poll::Ready(Err(Panicked));
        };
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    }
}

impl<F> Drop for Contained<F> {
    fn drop(&mut self) {
        let future = self.0.take();
        // The panic was printed, and the result is not wanted any more.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
    }
}
