//! What field 21 of a log with more than 18 columns says of a job's size, as those of Frontier have it.

/// Nodes by a descriptor: `frontier:excl:8x112` is 8 nodes, and so are `8` and `node[1-4,7-10]`. Parts with `+` between are added.
/// `None` if it is no descriptor.
pub(super) fn nodes(text: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(text).ok()?;
    let sum = text.split('+').map(part).try_fold(0_i64, |sum, nodes| sum.checked_add(nodes?))?;
    i32::try_from(sum).ok().filter(|&nodes| nodes > 0)
}

fn part(text: &str) -> Option<i64> {
    let size = text.rsplit_once(':').map_or(text, |(_, size)| size);
    if let Some(nodes) = digits(size) {
        return Some(nodes);
    }
    if let Some((nodes, each)) = size.split_once('x')
        && let (Some(nodes), Some(_)) = (digits(nodes), digits(each))
    {
        return Some(nodes);
    }
    list(size)
}

fn digits(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// How many nodes a list names: `a1,b[3-5,7]`.
fn list(text: &str) -> Option<i64> {
    let (mut count, mut rest) = (0_i64, text);
    loop {
        let end = rest.find(['[', ',']).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if !name.starts_with(|letter: char| letter.is_ascii_alphabetic()) || !name.chars().all(is_name) {
            return None;
        }
        let behind = match behind.strip_prefix('[') {
            None => {
                // A word alone is no list: names of nodes end in a number.
                if !name.ends_with(|letter: char| letter.is_ascii_digit()) {
                    return None;
                }
                count += 1;
                behind
            }
            Some(inside) => {
                let (inside, behind) = inside.split_once(']')?;
                for range in inside.split(',') {
                    let (first, last) = range.split_once('-').unwrap_or((range, range));
                    let more = digits(last)?.checked_sub(digits(first)?)?.checked_add(1)?;
                    count = count.checked_add(Some(more).filter(|&more| more > 0)?)?;
                }
                behind
            }
        };
        match behind.strip_prefix(',') {
            Some(more) => rest = more,
            None => return behind.is_empty().then_some(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_a_count_of_nodes_or_a_list_of_them() {
        for (text, expected) in [
            ("frontier:excl:8x112", Some(8)),
            ("9408x112", Some(9408)),
            ("8", Some(8)),
            ("frontier:excl:8", Some(8)),
            ("frontier:excl:8x112+frontier:excl:2x56", Some(10)),
            ("frontier[00001-00004,00007]", Some(5)),
            ("node3,node5,rack[1-2]", Some(4)),
            ("-1", None),
            ("0", None),
            ("7.5", None),
            ("text", None),
            ("8xmany", None),
            ("node[4-1]", None),
            ("node[1-", None),
            ("99999999999x1", None),
            ("", None),
        ] {
            assert_eq!(nodes(text.as_bytes()), expected, "{text}");
        }
    }
}
