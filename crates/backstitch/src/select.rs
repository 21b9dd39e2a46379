//! `select!` and `join!` in written order.
//!
//! They are not made of tokio's macros of these names, so that a program can forbid those: theirs
//! begin at a random branch unless they are told otherwise.

/// One of several types: the output of the branch that was first.
#[doc(hidden)]
pub enum Either<L, R> {
    Left(L),
    Right(R),
}

/// Waits for the first of several branches, polling them in written order; replay does the same. The
/// others are dropped before its handler runs.
///
/// The syntax is that of `tokio::select!`: `pattern = future, if condition => handler`. A branch whose
/// condition is false is not polled. One whose output does not fit its pattern is out of the race; when
/// all are, the `else` branch runs. A binding that is to be `mut` stands alone (`mut order = …`) or is
/// bound again in the handler.
///
/// ```
/// # use backstitch::{Ctx, Result};
/// # async fn quote(ctx: Ctx) -> Result<u32> {
/// backstitch::select! {
///     price = ctx.step("ask", async |_s| Ok(42_u32)) => price,
///     _ = ctx.sleep("10s") => Ok(0),
/// }
/// # }
/// ```
///
/// # Panics
/// When no branch is left and there is no `else`.
#[macro_export]
macro_rules! select {
    (@branches [$($done:tt)*] [$($place:tt)*] else => $otherwise:expr $(,)?) => {
        $crate::select!(@race [$($done)*] [$($place)*] ($otherwise))
    };
    // A branch: its future and whether it is in the race, its place, and what was written.
    (@branches [$($done:tt)*] [$($place:tt)*]
        $pattern:pat = $future:expr $(, if $condition:expr)? => $handler:block, $($rest:tt)*
    ) => {
        $crate::select!(@branches
            [$($done)* (future racing [$($place)*] ($pattern) ($future) (true $(&& $condition)?) ($handler))]
            [$($place)* after] $($rest)*)
    };
    (@branches [$($done:tt)*] [$($place:tt)*]
        $pattern:pat = $future:expr $(, if $condition:expr)? => $handler:block $($rest:tt)*
    ) => {
        $crate::select!(@branches
            [$($done)* (future racing [$($place)*] ($pattern) ($future) (true $(&& $condition)?) ($handler))]
            [$($place)* after] $($rest)*)
    };
    (@branches [$($done:tt)*] [$($place:tt)*]
        $pattern:pat = $future:expr $(, if $condition:expr)? => $handler:expr, $($rest:tt)*
    ) => {
        $crate::select!(@branches
            [$($done)* (future racing [$($place)*] ($pattern) ($future) (true $(&& $condition)?) ($handler))]
            [$($place)* after] $($rest)*)
    };
    (@branches [$($done:tt)*] [$($place:tt)*]
        $pattern:pat = $future:expr $(, if $condition:expr)? => $handler:expr
    ) => {
        $crate::select!(@branches
            [$($done)* (future racing [$($place)*] ($pattern) ($future) (true $(&& $condition)?) ($handler))]
            [$($place)* after])
    };
    (@branches [$($done:tt)*] [$($place:tt)*]) => {
        $crate::select!(@race [$($done)*] [$($place)*]
            (::core::panic!("no branch of this select! is left, and it has no else")))
    };

    (@race
        [$(($branch:ident $racing:ident [$($place:tt)*] ($pattern:pat) ($future:expr) ($condition:expr)
            ($handler:expr)))*]
        [$($all:tt)*] ($otherwise:expr)
    ) => {{
        let first = {
            $(
                let mut $racing: bool = $condition;
                let mut $branch =
                    ::core::pin::pin!(::core::future::IntoFuture::into_future($future));
            )*
            ::core::future::poll_fn(|cx| {
                let mut is_open = false;
                $(
                    if $racing {
                        match ::core::future::Future::poll($branch.as_mut(), cx) {
                            ::core::task::Poll::Ready(output) => {
                                #[allow(unused_mut, unused_variables, unreachable_patterns)]
                                let fits = match &output {
                                    $pattern => true,
                                    _ => false,
                                };
                                if fits {
                                    return ::core::task::Poll::Ready(::core::option::Option::Some(
                                        $crate::select!(@place [$($place)*] output),
                                    ));
                                }
                                $racing = false;
                            }
                            ::core::task::Poll::Pending => is_open = true,
                        }
                    }
                )*
                // Never; it says what type comes after the last branch.
                if let ::core::option::Option::Some(never) =
                    ::core::option::Option::None::<::core::convert::Infallible>
                {
                    return ::core::task::Poll::Ready(::core::option::Option::Some(
                        $crate::select!(@end [$($all)*] never),
                    ));
                }
                match is_open {
                    true => ::core::task::Poll::Pending,
                    false => ::core::task::Poll::Ready(::core::option::Option::None),
                }
            })
            .await
        };
        #[allow(unreachable_patterns)]
        match first {
            $(
                ::core::option::Option::Some($crate::select!(@place [$($place)*] $pattern)) => {
                    $handler
                }
            )*
            _ => $otherwise,
        }
    }};

    (@place [] $($what:tt)*) => { $crate::private::Either::Left($($what)*) };
    (@place [after $($place:tt)*] $($what:tt)*) => {
        $crate::private::Either::Right($crate::select!(@place [$($place)*] $($what)*))
    };
    (@end [] $never:ident) => { $never };
    (@end [after $($place:tt)*] $never:ident) => {
        $crate::private::Either::Right($crate::select!(@end [$($place)*] $never))
    };

    (biased; $($branches:tt)*) => { $crate::select!(@branches [] [] $($branches)*) };
    ($($branches:tt)*) => { $crate::select!(@branches [] [] $($branches)*) };
}

/// Waits for all of several futures, polling them in written order.
///
/// ```
/// # use backstitch::{Ctx, Result};
/// # async fn both(ctx: Ctx) -> Result<u32> {
/// let (a, b) = backstitch::join!(
///     ctx.step("a", async |_s| Ok(1_u32)),
///     ctx.step("b", async |_s| Ok(2_u32)),
/// );
/// # Ok(a? + b?)
/// # }
/// ```
#[macro_export]
macro_rules! join {
    (@futures [$($done:tt)*] $future:expr $(, $($rest:tt)*)?) => {
        $crate::join!(@futures [$($done)* (future output ($future))] $($($rest)*)?)
    };
    (@futures [$(($branch:ident $output:ident ($future:expr)))*]) => {{
        $(
            let mut $branch = ::core::pin::pin!(::core::future::IntoFuture::into_future($future));
            let mut $output = ::core::option::Option::None;
        )*
        ::core::future::poll_fn(|cx| {
            let mut is_open = false;
            $(
                if $output.is_none() {
                    match ::core::future::Future::poll($branch.as_mut(), cx) {
                        ::core::task::Poll::Ready(value) => {
                            $output = ::core::option::Option::Some(value);
                        }
                        ::core::task::Poll::Pending => is_open = true,
                    }
                }
            )*
            match is_open {
                true => ::core::task::Poll::Pending,
                false => ::core::task::Poll::Ready(()),
            }
        })
        .await;
        ($($output.expect("each was polled to its end"),)*)
    }};
    (biased; $($futures:tt)*) => { $crate::join!(@futures [] $($futures)*) };
    ($($futures:tt)*) => { $crate::join!(@futures [] $($futures)*) };
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::{pending, ready};

    #[tokio::test]
    async fn the_first_in_written_order_wins_and_the_others_are_dropped_before_its_handler() {
        struct Told<'a>(&'a RefCell<Vec<&'static str>>);
        impl Drop for Told<'_> {
            fn drop(&mut self) {
                self.0.borrow_mut().push("dropped");
            }
        }
        let told = RefCell::new(Vec::new());
        let loser = async {
            let _told = Told(&told);
            pending::<()>().await;
        };
        let got = crate::select! {
            () = loser => "loser",
            mut won = ready("first") => {
                told.borrow_mut().push("handled");
                won = won.trim_start_matches("fi");
                won
            }
            _ = ready("second") => "second"
        };
        assert_eq!((got, told.into_inner()), ("rst", vec!["dropped", "handled"]));
    }

    #[tokio::test]
    async fn branches_are_out_by_condition_and_by_pattern_and_else_is_for_when_none_is_left() {
        let race = async |allowed: bool, answer: Option<u32>| {
            crate::select! {
                biased;
                n = ready(7), if allowed => n,
                Some(n) = ready(answer) => n,
                else => 0,
            }
        };
        assert_eq!(race(true, Some(1)).await, 7);
        assert_eq!(race(false, Some(1)).await, 1);
        assert_eq!(race(false, None).await, 0);
    }

    #[tokio::test]
    #[should_panic(expected = "no branch of this select! is left")]
    async fn nothing_left_and_no_else_panics() {
        crate::select! { Some(()) = ready(None) => {} }
    }

    #[tokio::test]
    async fn handlers_break_and_continue_and_return_where_they_stand() {
        let mut rounds = Vec::new();
        for round in 0..5 {
            crate::select! {
                () = ready(()), if round == 0 => continue,
                () = ready(()), if round == 2 => { break; }
                () = ready(()) => rounds.push(round),
            }
        }
        assert_eq!(rounds, [1]);
    }

    #[tokio::test]
    async fn all_are_joined_and_each_is_polled_in_written_order() {
        let order = RefCell::new(Vec::new());
        let step = async |n: u32| {
            for _ in 0..2 {
                order.borrow_mut().push(n);
                tokio::task::yield_now().await;
            }
            n
        };
        let joined = crate::join!(step(1), step(2), step(3),);
        assert_eq!(joined, (1, 2, 3));
        assert_eq!(order.into_inner(), [1, 2, 3, 1, 2, 3]);
    }
}
