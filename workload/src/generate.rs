//! Traces made up from the models, for one machine or a grid, scaled to a load.
//!
//! Jobs come from [`crate::lublin`], estimates from [`crate::tsafrir`]. The same request gives the same bytes.

use scheduler::{Grid, Site, Span};

use crate::draw::Draw;
use crate::lublin::{Kind, Lublin, LublinJob};
use crate::record::Record;
use crate::trace::{Format, Trace};
use crate::tsafrir::{Tsafrir, TsafrirError};

/// Where the jobs of a grid come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// Each site has its own stream, with sizes up to the site's (default). All sites then see equally many
    /// jobs, so that narrow sites are loaded more.
    #[default]
    PerSite,
    /// One stream with sizes up to the widest site's. Each job is submitted at a site that can hold it, drawn
    /// in proportion to processors.
    One,
}

/// Where the estimates come from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum EstimateModel {
    /// Estimates are the run times (default).
    #[default]
    Exact,
    /// Users' estimates by the model of Tsafrir and others.
    Tsafrir(Tsafrir),
}

/// A request for a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Generate {
    /// The model that jobs come from.
    pub kind: Kind,
    /// The sites; a single machine is a grid of one.
    pub grid: Grid,
    /// One stream or several.
    pub streams: Streams,
    /// How many jobs.
    pub jobs: usize,
    /// Seed of everything drawn.
    pub seed: u64,
    /// Offered load wanted: work over processors and time from the start of the trace to the last submission.
    /// `None` keeps the model's own times.
    pub load: Option<f64>,
    /// How users' estimates are made.
    pub estimates: EstimateModel,
}

/// Why a trace cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GenerateError {
    /// The load is not a positive number.
    #[error("generate trace: load is {0}; give a number above 0, such as 0.9")]
    Load(f64),
    /// No job is asked for.
    #[error("generate trace: 0 jobs asked for; give at least 1")]
    NoJobs,
    /// A site wider than a size field can say.
    #[error("generate trace: site {0} has {1} processors; the model is for at most 1000000")]
    TooWide(String, u32),
    /// The estimates cannot be made.
    #[error(transparent)]
    Estimates(#[from] TsafrirError),
}

/// Stream of the seed that draws sites: beyond those of jobs and estimates.
const SITE_STREAM: u64 = 1 << 41;
/// Far beyond machines of today and the model's domain.
const PROCESSORS_MAX: u32 = 1_000_000;

/// Makes a trace. Its queue field holds the origin site, and its header declares the sites.
///
/// # Errors
/// If the request asks for nothing, or for what the models cannot give.
pub fn generate(request: &Generate) -> Result<Trace, GenerateError> {
    generate_watched(request, &mut || {})
}

/// The same; `drawn` is called after each job that is drawn, for whoever shows how far it is. Estimates are dealt after
/// the last.
///
/// # Errors
/// As [`generate`].
pub fn generate_watched(request: &Generate, drawn: &mut dyn FnMut()) -> Result<Trace, GenerateError> {
    if request.jobs == 0 {
        return Err(GenerateError::NoJobs);
    }
    if let Some(load) = request.load.filter(|load| !(load.is_finite() && *load > 0.0)) {
        return Err(GenerateError::Load(load));
    }
    if let Some(site) = request.grid.sites().iter().find(|site| site.processors > PROCESSORS_MAX) {
        return Err(GenerateError::TooWide(site.name.clone(), site.processors));
    }
    let jobs = match request.streams {
        Streams::PerSite => merged_streams(request, drawn),
        Streams::One => one_stream(request, drawn),
    };
    let mut run_times: Vec<i64> = jobs.iter().map(|(job, _)| job.run_time).collect();
    let estimates = match request.estimates {
        EstimateModel::Exact => run_times.clone(),
        EstimateModel::Tsafrir(model) => model.estimates(&mut run_times, request.seed)?,
    };
    let stretch = request.load.map_or(1.0, |wanted| offered_load(request, &jobs, &run_times) / wanted);
    let mut trace = Trace::empty("generated", Format::Swf);
    trace.records.reserve_exact(jobs.len());
    for (index, (job, site)) in jobs.iter().enumerate() {
        let processors = i32::try_from(job.processors).expect("at most PROCESSORS_MAX");
        let origin = i32::try_from(site.id.0).expect("fewer sites than i32::MAX");
        trace.records.push(Record {
            job: index as i64 + 1,
            submit: Span::from_secs((job.arrival * stretch).floor() as i64),
            run_time: Span::from_secs(run_times[index]),
            allocated: processors,
            requested: processors,
            requested_time: Span::from_secs(estimates[index]),
            status: 1,
            queue: origin,
            origin,
            ..Record::default()
        });
    }
    describe(request, &mut trace);
    Ok(trace)
}

/// Work over capacity from time 0 to the last arrival, with the model's own times.
fn offered_load(request: &Generate, jobs: &[(LublinJob, &Site)], run_times: &[i64]) -> f64 {
    let work: f64 =
        jobs.iter().zip(run_times).map(|((job, _), &run)| f64::from(job.processors) * run as f64).sum();
    let last = jobs.last().expect("there are jobs").0.arrival;
    work / (request.grid.processors() as f64 * last)
}

fn merged_streams<'a>(request: &'a Generate, drawn: &mut dyn FnMut()) -> Vec<(LublinJob, &'a Site)> {
    let sites = request.grid.sites();
    let mut streams: Vec<_> = sites
        .iter()
        .map(|site| Lublin::new(request.kind, site.processors, request.seed, u64::from(site.id.0)).peekable())
        .collect();
    let mut jobs = Vec::with_capacity(request.jobs);
    while jobs.len() < request.jobs {
        let mut earliest = (f64::INFINITY, 0);
        for (index, stream) in streams.iter_mut().enumerate() {
            let arrival = stream.peek().expect("streams are endless").arrival;
            if arrival < earliest.0 {
                earliest = (arrival, index);
            }
        }
        let index = earliest.1;
        jobs.push((streams[index].next().expect("streams are endless"), &sites[index]));
        drawn();
    }
    jobs
}

fn one_stream<'a>(request: &'a Generate, drawn: &mut dyn FnMut()) -> Vec<(LublinJob, &'a Site)> {
    let grid = &request.grid;
    let mut draw = Draw::of_stream(request.seed, SITE_STREAM);
    Lublin::new(request.kind, grid.widest(), request.seed, 0)
        .take(request.jobs)
        .map(|job| {
            let home = grid.home_rank(job.processors).expect("no job is wider than the widest site");
            let able = usize::try_from(grid.suffix_processors(home)).expect("processors fit an address");
            let mut processor = draw.below(able);
            let mut rank = home;
            while processor >= grid.sizes()[rank] as usize {
                processor -= grid.sizes()[rank] as usize;
                rank += 1;
            }
            drawn();
            (job, grid.site(grid.at_rank(rank)))
        })
        .collect()
}

fn describe(request: &Generate, trace: &mut Trace) {
    let sizes: Vec<String> = request.grid.sites().iter().map(|site| site.processors.to_string()).collect();
    let total = request.grid.processors();
    let of_sites =
        if sizes.len() > 1 { format!("{total} ({})", sizes.join(", ")) } else { total.to_string() };
    let header = &mut trace.header;
    header.push_pair("Version", "2.2");
    header.push_pair("Computer", "none: jobs of a statistical model");
    header.push_pair("Information", "Lublin and Feitelson, J. Parallel Distrib. Comput. 63(11), 2003");
    if let EstimateModel::Tsafrir(_) = request.estimates {
        header.push_pair("Information", "Tsafrir, Etsion and Feitelson, JSSPP 2005 (requested times)");
    }
    header.push_pair("MaxJobs", &request.jobs.to_string());
    header.push_pair("MaxRecords", &request.jobs.to_string());
    header.push_pair("MaxNodes", &of_sites);
    header.push_pair("MaxProcs", &of_sites);
    header.push_pair("Note", "time 0 is a midnight; the queue (field 15) is the site of submission");
    header.declare_sites(request.grid.sites());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(streams: Streams) -> Generate {
        Generate {
            kind: Kind::Typeless,
            grid: Grid::of_sizes(&[8, 48, 16]).unwrap(),
            streams,
            jobs: 2000,
            seed: 11,
            load: Some(0.9),
            estimates: EstimateModel::Tsafrir(Tsafrir { longest: 64_800, longest_share: Some(0.1) }),
        }
    }

    #[test]
    fn the_same_request_gives_the_same_bytes_and_another_seed_does_not() {
        let bytes = |seed| {
            let mut out = Vec::new();
            let trace = generate(&Generate { seed, ..request(Streams::PerSite) }).unwrap();
            crate::swf::write_trace(&trace, &mut out).unwrap();
            out
        };

        assert_eq!(bytes(11), bytes(11));
        assert_ne!(bytes(11), bytes(12));
    }

    /// Rounding arrivals down to seconds changes the load by one second in days.
    #[test]
    fn the_load_is_the_one_asked_for() {
        for streams in [Streams::PerSite, Streams::One] {
            let trace = generate(&request(streams)).unwrap();
            let work: f64 = trace.records.iter().map(Record::work).sum();
            let last = trace.records.last().unwrap().submit.as_secs_f64();

            assert!((work / (72.0 * last) - 0.9).abs() < 1e-4);
        }
    }

    #[test]
    fn jobs_fit_the_site_where_they_are_submitted_and_are_in_order() {
        for streams in [Streams::PerSite, Streams::One] {
            let request = request(streams);
            let trace = generate(&request).unwrap();

            for record in &trace.records {
                let site = &request.grid.sites()[record.origin as usize - 1];
                assert!(record.requested as u32 <= site.processors, "{record:?}");
                assert!(record.run_time <= record.requested_time, "{record:?}");
            }
            assert!(trace.records.is_sorted_by_key(|record| (record.submit, record.job)));
            assert!((1..=3).all(|site| trace.records.iter().any(|record| record.queue == site)));
        }
    }

    #[test]
    fn requests_that_cannot_be_met_are_refused() {
        let refused = |change: fn(&mut Generate)| {
            let mut request = request(Streams::One);
            change(&mut request);
            generate(&request).unwrap_err()
        };

        assert_eq!(refused(|request| request.jobs = 0), GenerateError::NoJobs);
        assert_eq!(refused(|request| request.load = Some(0.0)), GenerateError::Load(0.0));
        assert!(matches!(refused(|request| request.load = Some(f64::NAN)), GenerateError::Load(_)));
    }
}
