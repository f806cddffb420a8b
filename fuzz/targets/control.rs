#![no_main]
//! libFuzzer drives [`fuzz::control`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::control(data));
