//! Text made safe for HTML, and the entries of legends.

/// Text with the five characters that mean something in HTML replaced.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A color of a drawing, by its class, and the words for it, which are HTML. They are never on two lines apart.
pub(super) fn entry(color: &str, words: &str) -> String {
    format!("<span class=\"entry\"><span class=\"key {color}\"></span>{words}</span>")
}

/// Text in which no end of a line parts a number from its percent sign.
pub(super) fn unparted(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_special_character_is_replaced() {
        assert_eq!(escape("<a b=\"c\">&'"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;");
    }

    #[test]
    fn a_number_keeps_its_percent_sign() {
        assert_eq!(unparted("+1.5 % and 3 s"), "+1.5\u{a0}% and 3 s");
    }
}
