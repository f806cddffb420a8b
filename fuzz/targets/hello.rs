#![no_main]
//! libFuzzer drives [`fuzz::hello`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::hello(data));
