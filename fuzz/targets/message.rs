#![no_main]
//! libFuzzer drives [`fuzz::message`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::message(data));
