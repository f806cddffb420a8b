#![no_main]
//! libFuzzer drives [`fuzz::swf`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::swf(data));
