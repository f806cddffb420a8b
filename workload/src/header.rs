//! The header of a log: its comment lines as they are, and what they say about machine and clock.
//!
//! Keys are matched without regard to blanks around them, since some logs right-align them. Lines that say
//! nothing we use are kept all the same, so that a log that is written back keeps its license and credits.

use scheduler::Site;

/// Bytes that keeping a line takes beside its own.
pub(crate) const KEPT_LINE: u64 = 32;

/// A numbered queue or partition that a header declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The number that records use.
    pub number: i32,
    /// Its name, and whatever else the line says.
    pub name: String,
    /// Processors, if the line ends in a number after the name.
    pub processors: Option<u32>,
}

/// The comment lines of a log and what they mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Comment lines as they stand in the file, comment sign included, without line ends. Bytes, since old
    /// logs are not always UTF-8.
    pub lines: Vec<Vec<u8>>,
    /// Processors of the machine (`MaxProcs`; its leading integer).
    pub max_procs: Option<u32>,
    /// Nodes of the machine (`MaxNodes`; its leading integer).
    pub max_nodes: Option<u32>,
    /// Jobs the header promises (`MaxRecords`, else `MaxJobs`).
    pub max_records: Option<u64>,
    /// Unix time of submit time 0, in seconds (`UnixStartTime`).
    pub unix_start_time: Option<i64>,
    /// Name of the log's time zone (`TimeZoneString`).
    pub time_zone_name: Option<String>,
    /// Offset of the zone from UTC in seconds (`TimeZone`); often wrong, so the name is preferred.
    pub time_zone_offset: Option<i32>,
    /// The computer (`Computer`).
    pub computer: Option<String>,
    /// The installation (`Installation`).
    pub installation: Option<String>,
    /// Declared queues (`Queue`).
    pub queues: Vec<Declared>,
    /// Declared partitions (`Partition`).
    pub partitions: Vec<Declared>,
}

impl Header {
    /// Takes in one comment line, without its line end.
    pub fn push(&mut self, line: &[u8]) {
        self.lines.push(line.to_vec());
        let text = String::from_utf8_lossy(line);
        let Some((key, value)) = text.trim_start_matches([';', '#']).split_once(':') else { return };
        self.set(key.trim(), value.trim());
    }

    /// Adds a comment line `; Key: value`.
    pub fn push_pair(&mut self, key: &str, value: &str) {
        self.push(format!("; {key}: {value}").as_bytes());
    }

    /// States what Unix time submit time 0 is, in place of what the lines said.
    pub fn set_unix_start_time(&mut self, seconds: i64) {
        self.remove("UnixStartTime");
        self.unix_start_time = None;
        self.push_pair("UnixStartTime", &seconds.to_string());
    }

    /// States the time zone of the log by its name, in place of what the lines said.
    pub fn set_time_zone(&mut self, name: &str) {
        self.remove("TimeZoneString");
        self.time_zone_name = None;
        self.push_pair("TimeZoneString", name);
    }

    /// States how many jobs there are where the lines say how many there were.
    pub fn set_records(&mut self, records: u64) {
        for line in &mut self.lines {
            if let Some(key) = key_of(line).filter(|key| ["MaxJobs", "MaxRecords"].contains(&key.as_str())) {
                *line = format!("; {key}: {records}").into_bytes();
            }
        }
        self.max_records = self.max_records.map(|_| records);
    }

    fn remove(&mut self, key: &str) {
        self.lines.retain(|line| key_of(line).as_deref() != Some(key));
    }

    /// Declares the sites of a grid: as partitions, where jobs run, and as queues, where they are submitted.
    pub fn declare_sites<'a>(&mut self, sites: impl IntoIterator<Item = &'a Site>) {
        let sites: Vec<&Site> = sites.into_iter().collect();
        let number = |value: usize| value.to_string();
        self.push_pair("MaxQueues", &number(sites.len()));
        for site in &sites {
            self.push_pair("Queue", &format!("{} {}", site.id, site.name));
        }
        self.push_pair("MaxPartitions", &number(sites.len()));
        for site in &sites {
            self.push_pair("Partition", &format!("{} {} {}", site.id, site.name, site.processors));
        }
    }

    fn set(&mut self, key: &str, value: &str) {
        match key {
            // A machine of none is one of which nobody knows how many, as -1 is.
            "MaxProcs" => keep(&mut self.max_procs, leading_integer(value).filter(|&count| count > 0)),
            "MaxNodes" => keep(&mut self.max_nodes, leading_integer(value).filter(|&count| count > 0)),
            "MaxRecords" => self.max_records = leading_integer(value).or(self.max_records),
            "MaxJobs" => keep(&mut self.max_records, leading_integer(value)),
            "UnixStartTime" => keep(&mut self.unix_start_time, leading_integer(value)),
            "TimeZoneString" if !value.is_empty() => keep(&mut self.time_zone_name, Some(value.to_string())),
            "TimeZone" => keep(&mut self.time_zone_offset, leading_integer(value)),
            "Computer" => keep(&mut self.computer, Some(value.to_string())),
            "Installation" => keep(&mut self.installation, Some(value.to_string())),
            "Queue" => self.queues.extend(declared(value)),
            "Partition" => self.partitions.extend(declared(value)),
            _ => {}
        }
    }

    /// Processors of the machine: `MaxProcs`, else `MaxNodes`.
    pub fn processors(&self) -> Option<u32> {
        self.max_procs.or(self.max_nodes)
    }
}

/// The key of a comment line `; Key: value`.
pub(crate) fn key_of(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    text.trim_start_matches([';', '#']).split_once(':').map(|(key, _)| key.trim().to_string())
}

/// The first line that states a key wins: later ones are often notes about filters.
fn keep<T>(slot: &mut Option<T>, value: Option<T>) {
    if slot.is_none() {
        *slot = value;
    }
}

/// The integer at the start of `1664 (72, 1368, 224)` or `338 (batch partition; 512 total)`.
fn leading_integer<T: std::str::FromStr>(value: &str) -> Option<T> {
    let end = value
        .char_indices()
        .find(|&(at, c)| !(c.is_ascii_digit() || (at == 0 && c == '-')))
        .map_or(value.len(), |(at, _)| at);
    value[..end].parse().ok()
}

/// `<number> <name> [<processors>]`, with an optional dash after the number.
fn declared(value: &str) -> Option<Declared> {
    let (number, rest) = value.split_once(char::is_whitespace).unwrap_or((value, ""));
    let number = number.parse().ok()?;
    let rest = rest.trim();
    let rest = rest.strip_prefix("- ").unwrap_or(rest);
    let sized =
        rest.rsplit_once(char::is_whitespace).and_then(|(name, size)| Some((name, size.parse().ok()?)));
    let (name, processors) = match sized {
        Some((name, size)) => (name.trim_end(), Some(size)),
        None => (rest, None),
    };
    Some(Declared { number, name: name.to_string(), processors })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(lines: &[&str]) -> Header {
        let mut header = Header::default();
        for line in lines {
            header.push(line.as_bytes());
        }
        header
    }

    #[test]
    fn a_part_of_a_log_has_as_many_jobs_as_it_has() {
        let mut read = header(&["; Computer: SP2", ";      MaxJobs: 51987", "; MaxRecords: 51987 (all)"]);
        read.set_records(12);
        assert_eq!(read.max_records, Some(12));
        assert_eq!(read.lines.concat(), b"; Computer: SP2; MaxJobs: 12; MaxRecords: 12");
        let mut silent = header(&["; Computer: SP2"]);
        silent.set_records(12);
        assert_eq!(silent, header(&["; Computer: SP2"]));
    }

    #[test]
    fn machine_sizes_are_leading_integers() {
        let read =
            header(&["; MaxNodes: 338 (batch partition; 512 total)", "; MaxProcs: 1664 (72, 1368, 224)"]);

        assert_eq!((read.max_nodes, read.max_procs), (Some(338), Some(1664)));
        assert_eq!(read.processors(), Some(1664));
    }

    #[test]
    fn a_machine_without_processors_is_unknown() {
        let read = header(&["; MaxProcs: 0", "; MaxNodes: -1", "; MaxNodes: 12"]);

        assert_eq!((read.max_procs, read.processors()), (None, Some(12)));
    }

    #[test]
    fn right_aligned_keys_are_found() {
        let read = header(&[";      MaxJobs: 51987", "; TimeZoneString: Europe/Luxembourg", ";MaxNodes:12"]);

        assert_eq!(read.max_records, Some(51_987));
        assert_eq!(read.time_zone_name.as_deref(), Some("Europe/Luxembourg"));
        assert_eq!(read.processors(), Some(12));
    }

    #[test]
    fn queues_and_partitions_are_declared_with_or_without_processors() {
        let read = header(&[
            "; Queue:  6  0                       ",
            "; Queue: 1 - Normal jobs queue",
            "; Queues: these are LoadLeveler classes",
            "; Partition: 2 south wing 128",
        ]);

        let named = |number, name: &str, processors| Declared { number, name: name.into(), processors };
        assert_eq!(read.queues, [named(6, "0", None), named(1, "Normal jobs queue", None)]);
        assert_eq!(read.partitions, [named(2, "south wing", Some(128))]);
    }

    #[test]
    fn sites_are_read_back_as_they_were_declared() {
        let grid = scheduler::Grid::of_sizes(&[8, 16]).unwrap();
        let mut written = Header::default();
        written.declare_sites(grid.sites());

        let lines: Vec<&str> = written.lines.iter().map(|line| std::str::from_utf8(line).unwrap()).collect();

        assert_eq!(lines[2], "; Queue: 2 site2");
        assert_eq!(lines[5], "; Partition: 2 site2 16");
        assert_eq!(header(&lines), written);
        assert_eq!(written.partitions[1].processors, Some(16));
    }

    #[test]
    fn lines_are_kept_byte_for_byte_even_if_not_utf8() {
        let line = b"; Acknowledge: \xc5ke Sandgren  ";
        let mut read = Header::default();
        read.push(line);

        assert_eq!(read.lines, [line.to_vec()]);
    }

    #[test]
    fn a_negative_offset_is_read_and_a_note_does_not_override_it() {
        let read = header(&["; TimeZone: -28800", "; TimeZone: 0"]);

        assert_eq!(read.time_zone_offset, Some(-28_800));
    }
}
