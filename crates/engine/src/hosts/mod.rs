//! The agents that call ralph: one folder each, with its wire format in and out.

pub mod agent_event;
pub mod claude;
pub mod slash;
mod stop_word;
