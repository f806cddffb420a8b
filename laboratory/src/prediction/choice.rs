//! What is tried, as it is typed: who predicts, what corrects, and in which order jobs overtake.

use std::fmt::{self, Display};
use std::str::FromStr;

use experiments::experiment::{order, order_of};
use predict::{PREDICTORS, Predictor};
use scheduler::{LocalScheduler, spelling};

/// Who says how long jobs take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// The log, as nobody could: the end of the scale.
    Exact,
    /// A predictor, or the user.
    Predictor(Predictor),
}

const EXACT: &str = "exact";

impl FromStr for Who {
    type Err = String;

    fn from_str(text: &str) -> Result<Who, String> {
        if text == EXACT {
            return Ok(Who::Exact);
        }
        text.parse().map(Who::Predictor).map_err(|error: String| {
            // Of an option it would be no answer.
            if !error.contains("is no predictor") {
                return error;
            }
            let hint =
                if error.contains("did you mean") { String::new() } else { spelling::hint(text, [EXACT]) };
            format!("{error}; or exact{hint}")
        })
    }
}

impl Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Exact => f.write_str(EXACT),
            Who::Predictor(predictor) => Display::fmt(predictor, f),
        }
    }
}

/// Both ends of the scale, and every predictor with its defaults.
pub(super) fn all() -> Vec<Who> {
    let named = |name: &&str| Who::Predictor(name.parse().expect("each name is one"));
    let mut all: Vec<Who> = PREDICTORS.iter().map(named).collect();
    all.insert(1, Who::Exact);
    all
}

/// How a predictor is shown: by its name alone where its options are the defaults.
pub(super) fn short(predictor: &str) -> &str {
    let is_default = |name: &&&str| name.parse().is_ok_and(|of: Predictor| of.to_string() == predictor);
    PREDICTORS.iter().find(|name| is_default(name)).copied().unwrap_or(predictor)
}

/// An order in which EASY looks at jobs that may overtake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order(pub(super) LocalScheduler);

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Order, String> {
        order(text).map(Order)
    }
}

impl Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(order_of(self.0).expect("it was read as one"))
    }
}

/// What stands between commas. One with options has commas of its own: what is `name=value` belongs to what is before it.
pub(super) fn list<T>(text: &str, flag: &str) -> Result<Vec<T>, String>
where
    T: FromStr<Err = String> + PartialEq + Display,
{
    let mut words: Vec<String> = Vec::new();
    for part in text.split(',') {
        match words.last_mut().filter(|_| part.contains('=') && !part.contains(':')) {
            Some(last) => *last += &format!(",{part}"),
            None => words.push(part.trim().to_string()),
        }
    }
    let mut all: Vec<T> = Vec::new();
    for word in words {
        let one = word.parse().map_err(|error| format!("{flag}: {error}"))?;
        if all.contains(&one) {
            return Err(format!("{flag}: {one} is there twice; name it once"));
        }
        all.push(one);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_of_options_are_none_between_predictors() {
        let who = list::<Who>("user,last:k=2,by=mean,exact,avg2,template:k=3", "--predictors").unwrap();
        let names: Vec<String> = who.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["user", "last:k=2,by=mean", "exact", "avg2", "template:k=3"]);
        assert_eq!(list::<Order>("sjf,arrival", "--backfill").unwrap()[0].to_string(), "sjf");
    }

    #[test]
    fn slips_are_named_with_what_to_do() {
        for (text, expected) in [
            ("avg3", "--predictors: \"avg3\""),
            ("exakt", "or exact (did you mean exact?)"),
            ("avg2,avg2", "avg2 is there twice"),
            ("", "is no predictor"),
        ] {
            let error = list::<Who>(text, "--predictors").unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let option = list::<Who>("last:k=0", "--predictors").unwrap_err();
        assert!(option.contains("write a whole number") && !option.contains("exact"), "{option}");
        assert!(list::<Order>("sfj", "--backfill").unwrap_err().contains("did you mean sjf?"));
    }

    #[test]
    fn all_are_tried_and_shown_by_their_names() {
        let all = all();
        assert_eq!(all.len(), PREDICTORS.len() + 1);
        let shown: Vec<String> = all.iter().map(|who| short(&who.to_string()).to_string()).collect();
        assert!(shown.iter().skip(2).all(|name| PREDICTORS.contains(&name.as_str())), "{shown:?}");
        assert_eq!(short("last:k=2,by=mean"), "last:k=2,by=mean");
    }
}
