//! Names of experiments and sites, which become names of files: those that somebody typed are refused if they cannot, and those
//! that come from a file's name are made to fit.

use std::path::Path;

use super::built_in;

/// Names become names of files with endings; most file systems take 255 bytes.
pub const NAME_BYTES_MAX: usize = 200;

/// The name of an experiment that nobody named, by its workload: `KTH-SP2-1996-2.1-cln` of `KTH-SP2-1996-2.1-cln.swf.gz`.
pub(super) fn of_workload(workload: Option<&Path>) -> String {
    let file = workload.and_then(|path| path.file_name());
    file.map_or("run".into(), |file| of_file(without_endings(&file.to_string_lossy())))
}

/// The name of an experiment that nobody named, by its file: what names cannot have becomes `_`, as in `KTH-SP2 _1_` of
/// `KTH-SP2 (1)`, and what is longer than a name ends in `_`.
pub(super) fn of_file(file: &str) -> String {
    let mut name: String = file.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    if name.starts_with('.') {
        name.replace_range(..1, "_");
    }
    if name.len() > NAME_BYTES_MAX {
        while name.len() >= NAME_BYTES_MAX {
            name.pop();
        }
        name.push('_');
    }
    if name.is_empty() { "run".to_string() } else { name }
}

/// A file's name without what tells its format.
fn without_endings(file: &str) -> &str {
    let mut name = file.strip_prefix(built_in::PREFIX).unwrap_or(file);
    for ending in [".gz", ".zst", ".swf", ".gwf", ".json", ".csv", ".txt"] {
        name = name.strip_suffix(ending).unwrap_or(name);
    }
    name
}

/// Whether a name may have this letter.
fn is_plain(letter: char) -> bool {
    letter.is_alphanumeric() || "-_.+ ".contains(letter)
}

/// Names of sites and experiments become names of files.
///
/// # Errors
/// If this one cannot, in words that stand behind it.
pub(super) fn name_of_a_file(name: &str) -> Result<(), String> {
    if !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.starts_with('.')
        && name.chars().all(is_plain)
    {
        return Ok(());
    }
    Err(format!(
        "is not a name: write letters, digits, - _ . + and spaces, at most {NAME_BYTES_MAX} bytes, no dot in front"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_nobody_typed_is_made_to_fit() {
        for (file, name) in [
            ("KTH-SP2-1996-2.1-cln.swf.gz", "KTH-SP2-1996-2.1-cln"),
            ("KTH-SP2 (1).swf.gz", "KTH-SP2 _1_"),
            ("a#b@c,d'e.swf", "a_b_c_d_e"),
            (".swf", "run"),
            (".hidden", "_hidden"),
            ("J\u{fc}lich.swf", "J\u{fc}lich"),
            ("x\u{fffd}.swf", "x_"),
        ] {
            assert_eq!(of_workload(Some(Path::new(file))), name);
            assert_eq!(name_of_a_file(name), Ok(()));
        }
        for letters in ["a", "\u{fc}", "\u{4e2d}"] {
            let name = of_file(&letters.repeat(250));
            assert!(name.len() <= NAME_BYTES_MAX && name.ends_with('_'), "{name}");
        }
        assert_eq!(of_workload(None), "run");
        assert!(name_of_a_file("KTH-SP2 (1)").unwrap_err().contains("write letters"));
    }
}
