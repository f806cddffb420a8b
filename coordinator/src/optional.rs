//! Parts that take long to build and that few need: in images and packages, and here if they were asked for.

/// Whether a part is in this program; if not, says how to get it.
///
/// # Errors
/// What the user reads: what is missing, how to build a program that has it, and what does without.
pub(crate) fn check(is_here: bool, what: &str, feature: &str, instead: &str) -> Result<(), String> {
    if is_here {
        return Ok(());
    }
    Err(format!(
        "this program was built without {what}; build it with `cargo build --release -p stealgrid --features {feature}`, \
         or {instead}"
    ))
}
