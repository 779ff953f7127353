//! libFuzzer target over `mondrian_cli::fuzz::table`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mondrian_cli::fuzz::table(bytes));
