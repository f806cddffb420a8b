//! The latest of what has no end.

use std::collections::VecDeque;

/// Keeps one more, and the last `most` only.
pub fn keep<T>(kept: &mut VecDeque<T>, most: usize, new: T) {
    if kept.len() == most {
        kept.pop_front();
    }
    kept.push_back(new);
}
