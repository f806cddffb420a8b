#![no_main]
//! libFuzzer drives [`fuzz::lockstep`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::lockstep(data));
