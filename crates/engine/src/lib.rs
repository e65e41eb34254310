//! Everything that touches the world: the clock and the disk (`sys`), what ralph keeps (`store`), the agents it speaks to (`hosts`), git (`git`), what must hold (`gates`),
//! who is told (`notify`), what people see (`view`), the operations on a loop (`ops`), how one stop is ruled on (`stop`), its two drivers (`hook`, `run`) and what it takes to be called at all (`setup`).
//!
//! All of it is synchronous and small: a hook call is a process that lives for about a millisecond.

pub mod gates;
pub mod git;
pub mod hook;
pub mod hosts;
pub mod notify;
pub mod ops;
pub mod run;
pub mod setup;
pub mod stop;
pub mod store;
pub mod sys;
#[cfg(test)]
mod tests;
pub mod view;
