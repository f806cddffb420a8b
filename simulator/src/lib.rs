//! Many peers in virtual time.
