//! Whether the messages of a run were free and instantaneous and all sites there, as theorems assume, and what kept that from
//! being so.

/// Why a site did not know at once what happened elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// Messages took time.
    Delay,
    /// Messages could be lost, arrive twice or overtake each other.
    Loss,
    /// Sites that have nothing to do ask from time to time.
    Polling,
    /// Jobs are given away only for an advantage that is large enough.
    Margin,
    /// Brokers are told from time to time, or do not count what is on its way.
    Reports,
    /// Sites knew some others only.
    Views,
    /// Sites crashed, stood still, came later or left.
    Absence,
}

impl Hindrance {
    /// Every hindrance, in the order of the enum.
    pub const ALL: [Hindrance; 7] = [
        Hindrance::Delay,
        Hindrance::Loss,
        Hindrance::Polling,
        Hindrance::Margin,
        Hindrance::Reports,
        Hindrance::Views,
        Hindrance::Absence,
    ];

    fn words(self) -> &'static str {
        match self {
            Hindrance::Delay => "messages took time",
            Hindrance::Loss => "links were unreliable",
            Hindrance::Polling => "idle sites polled",
            Hindrance::Margin => "jobs left a site only for the margin",
            Hindrance::Reports => "brokers did not know all",
            Hindrance::Views => "sites did not know all others",
            Hindrance::Absence => "sites failed or were away",
        }
    }
}

/// The hindrances that a run could have; none by default, as under ideal strategies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages([bool; Hindrance::ALL.len()]);

impl Messages {
    /// Free and instantaneous.
    pub const FREE: Messages = Messages([false; Hindrance::ALL.len()]);

    /// The same, and with this hindrance if the condition holds.
    pub fn hindered_if(mut self, condition: bool, by: Hindrance) -> Messages {
        self.0[by as usize] |= condition;
        self
    }

    /// Whether nothing hinders them.
    pub fn are_free(self) -> bool {
        self == Messages::FREE
    }

    /// All that hinders them, as a clause; empty if nothing does.
    pub fn hindrances(self) -> String {
        let found = Hindrance::ALL.into_iter().filter(|hindrance| self.0[*hindrance as usize]);
        let words: Vec<&str> = found.map(Hindrance::words).collect();
        match words.split_last() {
            Some((last, [])) => (*last).to_string(),
            Some((last, before)) => format!("{} and {last}", before.join(", ")),
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_hinders_a_run_is_said() {
        let delayed = Messages::FREE.hindered_if(true, Hindrance::Delay).hindered_if(false, Hindrance::Loss);
        assert_eq!(delayed.hindrances(), "messages took time");
        let more = delayed.hindered_if(true, Hindrance::Polling).hindered_if(true, Hindrance::Loss);
        assert_eq!(more.hindrances(), "messages took time, links were unreliable and idle sites polled");
        let away = delayed.hindered_if(true, Hindrance::Absence);
        assert_eq!(away.hindrances(), "messages took time and sites failed or were away");
        assert!(Messages::FREE.are_free() && !delayed.are_free());
        assert_eq!(Messages::FREE.hindrances(), "");
    }
}
