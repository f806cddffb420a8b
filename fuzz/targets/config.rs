#![no_main]
//! libFuzzer drives [`fuzz::config`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::config(data));
