#![no_main]
//! libFuzzer drives [`fuzz::frame`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::frame(data));
