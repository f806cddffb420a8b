#![no_main]
//! libFuzzer drives [`fuzz::peer`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::peer(data));
