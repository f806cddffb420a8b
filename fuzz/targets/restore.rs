#![no_main]
//! libFuzzer drives [`fuzz::restore`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::restore(data));
