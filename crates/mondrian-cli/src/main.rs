//! The program `mondrian`: arguments, then a checked plan, then a run, then output. No numerics here.

fn main() {}
