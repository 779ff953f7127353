//! The program from outside: every command's output, exit status and errors.

mod bad_input;
mod harness;
mod kept;
mod learn;
mod models;
mod outputs;
mod parts;
mod paths;
mod safety;
mod sample;
mod tables;
mod tour;
