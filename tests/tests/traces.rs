//! Real logs through reading, preparation and writing. Each test skips, loudly, where its log is absent.

use std::fs::File;
use std::io::{BufRead, BufReader};

use flate2::read::GzDecoder;
use scheduler::{SiteId, Time};
use stealgrid_tests::shared;
use workload::mix::{Log, MixOptions, mix};
use workload::prepare::{Overrun, PrepareOptions, Prepared, Size};
use workload::repair::Repair;
use workload::{Trace, prepare, read};

/// Every log, with its number of jobs, of run times of -1, of missing sizes and of missing estimates, as
/// counted independently of this project.
const LOGS: [(&str, usize, u64, u64, u64); 17] = [
    ("ALCF-Theta-2022", 23_911, 0, 0, 0),
    ("CTC-SP2-1996-3.1-cln", 77_222, 0, 0, 6),
    ("HPC2N-2002-2.2-cln", 202_871, 0, 0, 0),
    ("KTH-SP2-1996-2.1-cln", 28_476, 0, 1, 0),
    ("KTH-SP2-1996-2", 28_489, 0, 0, 0),
    ("LANL-CM5-1994-4.1-cln", 122_060, 0, 3, 11_290),
    ("LCG-2005-1", 188_041, 0, 0, 0),
    ("LLNL-Atlas-2006-2.1-cln", 43_778, 0, 4_571, 8_233),
    ("LLNL-Thunder-2007-1.1-cln", 121_039, 1_190, 2_248, 82_437),
    ("NASA-iPSC-1993-3.1-cln", 18_239, 0, 0, 18_239),
    ("OSC-Clust-2000-3.1-cln", 36_097, 0, 0, 36_097),
    ("SDSC-BLUE-2000-4.2-cln", 243_306, 10_744, 0, 0),
    ("SDSC-DS-2004-2.1-cln", 96_069, 11_024, 0, 0),
    ("SDSC-Par-1996-3.1-cln", 32_135, 0, 0, 32_135),
    ("SDSC-SP2-1998-4.2-cln", 59_715, 5_671, 0, 66),
    ("UniLu-Gaia-2014-1", 51_987, 127, 0, 0),
    ("lublin_256", 10_000, 0, 0, 10_000),
];

fn log(name: &str) -> Option<Trace> {
    shared(&format!("traces/{name}.swf.gz")).map(|path| read(path).expect("a shared log can be read"))
}

#[test]
fn every_log_is_read_whole_and_its_awkward_values_are_counted() {
    for (name, jobs, no_run_time, no_size, no_estimate) in LOGS {
        let Some(trace) = log(name) else { continue };
        let count = |repair| trace.repairs.count(repair);

        assert_eq!(trace.records.len(), jobs, "{name}");
        assert_eq!(count(Repair::MissingRunTime), no_run_time, "{name}");
        assert_eq!(count(Repair::MissingProcessors), no_size, "{name}");
        assert_eq!(count(Repair::MissingEstimate), no_estimate, "{name}");
        assert_eq!(count(Repair::EpochShifted), u64::from(name == "ALCF-Theta-2022"), "{name}");
    }
}

#[test]
fn headers_of_all_kinds_give_size_and_clock() {
    let facts = [
        ("CTC-SP2-1996-3.1-cln", 338, Some("US/Eastern")),
        ("SDSC-DS-2004-2.1-cln", 1664, Some("US/Pacific")),
        ("UniLu-Gaia-2014-1", 2004, Some("Europe/Luxembourg")),
        ("lublin_256", 256, None),
    ];
    for (name, processors, zone) in facts {
        let Some(trace) = log(name) else { continue };

        assert_eq!(trace.processors(), processors, "{name}");
        assert_eq!(trace.header.time_zone_name.as_deref(), zone, "{name}");
    }
}

/// Fields 3, 6 and 7 may lose spelling (`12.50`); the others must not change.
#[test]
fn a_log_written_back_says_the_same_in_every_field_that_matters() {
    for name in ["KTH-SP2-1996-2.1-cln", "UniLu-Gaia-2014-1", "LLNL-Thunder-2007-1.1-cln"] {
        let Some(path) = shared(&format!("traces/{name}.swf.gz")) else { continue };
        let trace = read(&path).unwrap();
        let mut written = Vec::new();
        workload::swf::write_trace(&trace, &mut written).unwrap();

        let original = GzDecoder::new(File::open(&path).unwrap());
        let mut original: Vec<Vec<u8>> = BufReader::new(original).split(b'\n').map(Result::unwrap).collect();
        original.retain(|line| !line.trim_ascii().is_empty());
        let written: Vec<&[u8]> =
            written.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();

        assert_eq!(original.len(), written.len(), "{name}");
        for (line, (original, written)) in original.iter().zip(written).enumerate() {
            if original.starts_with(b";") {
                assert_eq!(original.trim_ascii_end(), written.trim_ascii_end(), "{name}: line {line}");
                continue;
            }
            let fields = |line: &[u8]| -> Vec<String> {
                String::from_utf8(line.to_vec()).unwrap().split_whitespace().map(str::to_string).collect()
            };
            let (original, written) = (fields(original), fields(written));
            assert_eq!(written.len(), 18, "{name}: line {line}");
            for field in [1, 2, 4, 5].into_iter().chain(8..=18) {
                assert_eq!(original[field - 1], written[field - 1], "{name}: line {line}, field {field}");
            }
        }
    }
}

fn kth(estimate: &str) -> Option<Prepared> {
    let trace = log("KTH-SP2-1996-2.1-cln")?;
    let options = PrepareOptions {
        size: Size::Allocated,
        // As the references were normalized.
        overrun: Overrun::Kill,
        estimate: estimate.parse().expect("a switch of these tests"),
        ..PrepareOptions::default()
    };
    Some(prepare(&trace, &options, trace.processors()).expect("the log can be prepared"))
}

/// The reference schedules were computed by other tools from a log normalized by other code: their submit
/// and run times are those of our jobs, or the two preparations differ.
#[test]
fn prepared_jobs_are_those_of_the_reference_schedules() {
    for (estimate, reference) in [("user", "pyss-kth-sp2-easy"), ("exact", "pyss-kth-sp2-exact-easy")] {
        let (Some(prepared), Some(path)) = (kth(estimate), shared(&format!("references/{reference}.csv.gz")))
        else {
            continue;
        };
        let rows =
            BufReader::new(GzDecoder::new(File::open(path).unwrap())).lines().skip(1).map(Result::unwrap);
        let mut reference: Vec<[f64; 4]> = rows
            .map(|row| {
                let values: Vec<f64> = row.split(',').map(|value| value.trim().parse().unwrap()).collect();
                values.try_into().unwrap()
            })
            .collect();
        reference.sort_by(|a, b| (a[1], a[0]).partial_cmp(&(b[1], b[0])).unwrap());

        assert_eq!(prepared.jobs.len(), 28_467);
        assert_eq!(reference.len(), prepared.jobs.len());
        for (job, [id, submit, start, end]) in prepared.jobs.iter().zip(reference) {
            assert_eq!(job.spec.id.0 as f64, id);
            assert_eq!(job.spec.submit.since(Time::ZERO).as_secs_f64(), submit, "job {id}");
            assert_eq!(job.run_time.as_secs_f64(), end - start, "job {id}");
            if estimate == "exact" {
                assert_eq!(job.spec.requested, job.run_time, "job {id}");
            }
        }
    }
}

/// Four logs of Europe and North America, laid over each other by week.
#[test]
fn a_mix_of_real_logs_fills_the_weekdays_of_one_week() {
    let names =
        ["KTH-SP2-1996-2.1-cln", "SDSC-SP2-1998-4.2-cln", "HPC2N-2002-2.2-cln", "CTC-SP2-1996-3.1-cln"];
    let mut logs = Vec::new();
    for (name, site) in names.into_iter().zip(1..) {
        let Some(trace) = log(name) else { return };
        let jobs = prepare(&trace, &PrepareOptions::default(), trace.processors()).unwrap().jobs;
        logs.push(Log {
            name: name.to_string(),
            header: trace.header,
            jobs,
            uses: Vec::new(),
            site: Some(SiteId(site)),
            first_week: 1,
        });
    }
    let options = MixOptions { week: Some(3), ..MixOptions::default() };

    let mixed = mix(&logs, &options).unwrap();

    assert!(mixed.taken.iter().all(|&taken| taken > 50), "{:?}", mixed.taken);
    assert_eq!(mixed.taken.iter().sum::<u64>(), mixed.jobs.len() as u64);
    assert!(mixed.jobs.is_sorted_by_key(|job| job.spec.key()));
    for (job, id) in mixed.jobs.iter().zip(1..) {
        let (name, number) = mixed.source(job.spec.id).unwrap();
        let log = logs.iter().find(|log| log.name == name).unwrap();
        let original = log.jobs.iter().find(|original| original.spec.id == number).unwrap();

        assert_eq!(job.spec.id.0, id);
        assert_eq!(Some(job.spec.origin), log.site);
        assert_eq!((job.run_time, job.spec.processors), (original.run_time, original.spec.processors));
        assert!(job.spec.submit >= Time::ZERO);
        assert!(job.spec.submit < Time::from_secs(5 * 86_400));
    }
}
