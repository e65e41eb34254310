//! Tests that reach behind the doors of several modules.

mod fuzz;
