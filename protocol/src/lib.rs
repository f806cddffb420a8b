//! One site as a sans-IO state machine.
