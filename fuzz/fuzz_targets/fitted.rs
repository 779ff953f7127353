//! libFuzzer target over `mondrian_cli::fuzz::fitted`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mondrian_cli::fuzz::fitted(bytes));
