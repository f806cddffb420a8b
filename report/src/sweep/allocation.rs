//! The page of batches that were allocated off-line: measures, convergence, the front of a batch, and rows as a schedule.

use std::fmt::Write as _;

use super::axis::{LOG_FROM, Scale, around, span, time_labels};
use super::chart::{Line, LineChart, Room, picture};
use super::figures::{Figure, lines, plot};
use super::look::Looks;
use super::metric::Unit;
use super::page::{Body, PRODUCT, begin, end};
use super::study::Study;
use super::tables::Table;
use crate::page::html::escape;
use crate::quantity::counted;

/// What the page shows.
#[derive(Clone, Debug)]
pub struct Allocations {
    /// Of the folder.
    pub name: String,
    /// Sites, batches and seed in words.
    pub about: String,
    /// What made the results, and what made the page.
    pub commands: [String; 2],
    /// All options, as TOML.
    pub options: String,
    /// Names of columns, and a row for each algorithm, its name first.
    pub measures: (Vec<String>, Vec<Vec<String>>),
    /// The best so far along generations, if anything searched.
    pub convergence: Option<Study>,
    /// Who does not search, with the means of what was found at once.
    pub steady: Vec<(String, Criteria)>,
    /// If there is one.
    pub front: Option<Front>,
    /// The rows that are drawn.
    pub schedule: Schedule,
}

/// Makespan, turnaround, response ratio and wait; times in seconds.
pub type Criteria = [f64; 4];

/// What is drawn of the front of a batch.
#[derive(Clone, Debug)]
pub struct Front {
    /// From 1.
    pub batch: usize,
    /// Its members.
    pub members: Vec<Criteria>,
    /// What the other algorithms came to.
    pub others: Vec<(String, Criteria)>,
}

/// The rows of a batch under an algorithm, as they run with requested times.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// From 1.
    pub batch: usize,
    /// As typed.
    pub algorithm: String,
    /// By site as typed.
    pub sites: Vec<Site>,
}

/// A site of a schedule.
#[derive(Clone, Debug)]
pub struct Site {
    /// How many it has.
    pub processors: u32,
    /// Its jobs by start.
    pub jobs: Vec<Bar>,
}

/// A job of a schedule.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Its number in `rows.json`.
    pub job: u64,
    /// How many it takes.
    pub processors: u32,
    /// Seconds from the beginning of the batch.
    pub start_s: f64,
    /// The same.
    pub end_s: f64,
}

const CRITERIA: [(&str, &str); 4] = [
    ("makespan_s", "Makespan"),
    ("turnaround_s", "Turnaround"),
    ("response_ratio", "Response ratio"),
    ("wait_s", "Wait"),
];

/// The whole page.
pub fn html(shown: &Allocations) -> String {
    let mut page = begin(&shown.name);
    let _ = writeln!(
        page,
        "{PRODUCT}{}</p>\n<h1>{}</h1>\n<p class=\"about\">{}</p>\n</header>",
        env!("CARGO_PKG_VERSION"),
        escape(&shown.name),
        escape(&shown.about)
    );
    let mut body = Body::default();
    let (header, rows) = shown.measures.clone();
    let note = "Means over the batches, with requested times. The competitive factor is the makespan over its lower bound. \
                Percentages are of the means, as in the published table; the means of the percentages of single batches are in \
                table.csv.";
    body.tables(std::iter::once(&Table {
        title: "Measures".to_string(),
        note: note.to_string(),
        header,
        rows,
        is_detail: false,
    }));
    body.draw(figures(shown).iter());
    page += &body.html;
    let [made, shows] = &shown.commands;
    let _ = writeln!(
        page,
        "<section>\n<h2>How this was made</h2>\n<pre>{}\n{}</pre>\n<details>\n<summary>All options</summary>\n<pre>{}</pre>\n\
         </details>\n</section>",
        escape(made),
        escape(shows),
        escape(&shown.options)
    );
    end(&mut page);
    page
}

/// All drawings, in the order of the page.
pub fn figures(shown: &Allocations) -> Vec<Figure> {
    let figure = |id: &str, (svg, narrow): (String, String), note: &str| Figure {
        id: id.to_string(),
        panel: None,
        is_detail: false,
        svg,
        narrow,
        note: note.to_string(),
    };
    let mut figures = Vec::new();
    for (place, (column, title)) in CRITERIA.into_iter().enumerate() {
        let Some(study) = &shown.convergence else { continue };
        let mut chart = plot(
            study,
            0,
            &format!("{title} by generation"),
            &format!("{} of the best so far", title.to_lowercase()),
        );
        chart.lines = lines(study, 0, column);
        let ends = [chart.x.first(), chart.x.last()].map(|end| end.map_or(0.0, |(x, _)| *x));
        chart.lines.extend(shown.steady.iter().map(|(name, criteria)| {
            let points = ends.map(|x| (x, Some(criteria[place]), None)).to_vec();
            Line { name: name.clone(), points, marks: Vec::new(), look: 0 }
        }));
        look(&mut chart.lines);
        chart.y_unit = Unit::of(column);
        let note = "Means over the batches, with 95 % intervals. The best so far is the best by what an algorithm goes by: \
                    the weighted average of all four criteria under c1, c2, c3 and nsga2, one of them under b1 to b4. So a \
                    criterion alone may get worse. Who has ended stays where it is. Strategies that do not search are level.";
        figures.push(figure(&format!("convergence-{column}"), (chart.svg(), chart.narrow()), note));
    }
    if let Some(front) = &shown.front {
        for place in [2, 3] {
            let id = format!("front-{}", CRITERIA[place].0);
            let note = "A point of the front for each member; of two that seem to be better and worse here, the other is better \
                        in a criterion that is not drawn.";
            let chart = scatter(front, place);
            figures.push(figure(&id, (chart.svg(), chart.narrow()), note));
        }
    }
    let note = "A block for each job, as high as its processors, from its start to its end as requested. Under the pointer: \
                its number in rows.json.";
    let drawn = [Room::Page, Room::Phone].map(|room| schedule(&shown.schedule, room));
    figures.push(figure("schedule", drawn.into(), note));
    figures
}

/// Gives lines their looks by their names.
fn look(lines: &mut [Line]) {
    let looks = Looks::default().of(&lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>());
    lines.iter_mut().zip(looks).for_each(|(line, look)| line.look = look);
}

/// A criterion of the members of a front over their makespans, with the other algorithms.
fn scatter(front: &Front, place: usize) -> LineChart {
    let (column, title) = CRITERIA[place];
    let all = || front.members.iter().chain(front.others.iter().map(|(_, criteria)| criteria));
    let least = all().map(|criteria| criteria[0]).fold(f64::INFINITY, f64::min);
    let most = all().map(|criteria| criteria[0]).fold(0.0, f64::max);
    let marks = around(least, most);
    // A point without a value between two keeps them apart.
    let members = front
        .members
        .iter()
        .flat_map(|criteria| [(criteria[0], Some(criteria[place]), None), (criteria[0], None, None)]);
    let mut lines =
        vec![Line { name: "front".to_string(), points: members.collect(), marks: Vec::new(), look: 0 }];
    for (name, criteria) in &front.others {
        let points = vec![(criteria[0], Some(criteria[place]), None)];
        lines.push(Line { name: name.clone(), points, marks: Vec::new(), look: 0 });
    }
    look(&mut lines);
    let heading = format!("{title} over makespan, batch {}", front.batch);
    LineChart {
        title: heading.clone(),
        heading,
        x_label: "makespan".to_string(),
        y_label: title.to_lowercase(),
        x: marks.iter().copied().zip(time_labels(&marks)).collect(),
        x_per: None,
        lines,
        theory: Vec::new(),
        y_unit: Unit::of(column),
        log_from: LOG_FROM,
        least_possible: None,
    }
}

const LEFT: f64 = 72.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 40.0;
/// Pixels of a processor.
const PROCESSOR: f64 = 4.0;
/// Pixels between two sites.
const GAP: f64 = 8.0;

/// Rows as blocks over time, a band for each site.
fn schedule(shown: &Schedule, room: Room) -> String {
    let ends = shown.sites.iter().flat_map(|site| &site.jobs).map(|job| job.end_s);
    let end = ends.fold(0.0, f64::max).max(1.0);
    let scale = Scale::Linear(0.0, end);
    let x = |seconds: f64| LEFT + (room.width() - LEFT - RIGHT) * seconds / end;
    let mut svg = String::new();
    let mut top = TOP;
    for (site, number) in shown.sites.iter().zip(1..) {
        let height = PROCESSOR * f64::from(site.processors);
        let _ = writeln!(
            svg,
            "<rect class=\"frame\" x=\"{LEFT}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/><text class=\"tick end\" \
             x=\"{:.1}\" y=\"{:.1}\">{number}: {}</text>",
            room.width() - LEFT - RIGHT,
            LEFT - 8.0,
            top + height / 2.0 + 4.0,
            site.processors
        );
        for (job, blocks) in site.jobs.iter().zip(places(site)) {
            let path: String = blocks
                .iter()
                .map(|&(first, count)| {
                    format!(
                        "M{:.1},{:.1} h{:.1} v{:.1} h-{:.1} z ",
                        x(job.start_s),
                        top + PROCESSOR * f64::from(first),
                        x(job.end_s) - x(job.start_s),
                        PROCESSOR * f64::from(count),
                        x(job.end_s) - x(job.start_s)
                    )
                })
                .collect();
            let title = format!(
                "job {}, {}, {} to {}",
                job.job,
                counted(job.processors, "processor"),
                span(job.start_s),
                span(job.end_s)
            );
            let _ = writeln!(
                svg,
                "<path class=\"part p{}\" d=\"{}\"><title>{title}</title></path>",
                // Neighbors in the order of the log differ.
                job.job % 8,
                path.trim_end()
            );
        }
        top += height + GAP;
    }
    let ticks = scale.time_ticks();
    for (&tick, words) in ticks.iter().zip(time_labels(&ticks)) {
        let at = x(tick);
        let _ = writeln!(
            svg,
            "<line class=\"axis\" x1=\"{at:.1}\" y1=\"{:.1}\" x2=\"{at:.1}\" y2=\"{:.1}\"/><text class=\"tick middle\" x=\"{at:.1}\" \
             y=\"{:.1}\">{}</text>",
            top - GAP,
            top - GAP + 5.0,
            top + 12.0,
            escape(&words)
        );
    }
    let title = format!("Schedule of {}, batch {}", shown.algorithm, shown.batch);
    picture(room, top + 24.0, &title, &title, &svg)
}

/// Which processors each job has, the lowest free ones: the first and how many, of each piece.
///
/// # Panics
/// If more are taken than there are.
fn places(site: &Site) -> Vec<Vec<(u32, u32)>> {
    let mut free_from = vec![0.0; site.processors as usize];
    let mut all = Vec::new();
    for job in &site.jobs {
        let free = (0..free_from.len()).filter(|&place| free_from[place] <= job.start_s);
        let taken: Vec<usize> = free.take(job.processors as usize).collect();
        assert_eq!(taken.len(), job.processors as usize, "a job runs on processors that are free");
        let mut pieces: Vec<(u32, u32)> = Vec::new();
        for place in taken {
            free_from[place] = job.end_s;
            match pieces.last_mut().filter(|(first, count)| first + count == place as u32) {
                Some((_, count)) => *count += 1,
                None => pieces.push((place as u32, 1)),
            }
        }
        all.push(pieces);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(job: u64, processors: u32, start_s: f64, end_s: f64) -> Bar {
        Bar { job, processors, start_s, end_s }
    }

    fn shown() -> Allocations {
        let jobs = vec![bar(1, 1, 0.0, 5.0), bar(2, 1, 0.0, 9.0), bar(3, 1, 0.0, 5.0), bar(4, 2, 5.0, 7.0)];
        Allocations {
            name: "<out>".to_string(),
            about: "a grid".to_string(),
            commands: ["stealgrid genetic".to_string(), "stealgrid report".to_string()],
            options: String::new(),
            measures: (
                vec!["algorithm".to_string(), "makespan".to_string()],
                vec![vec!["c1".to_string(), "9".to_string()]],
            ),
            convergence: None,
            steady: Vec::new(),
            front: Some(Front {
                batch: 1,
                members: vec![[9.0, 5.0, 2.0, 1.0], [12.0, 4.0, 1.5, 0.5]],
                others: vec![("spt".to_string(), [10.0, 4.0, 1.4, 0.4])],
            }),
            schedule: Schedule {
                batch: 1,
                algorithm: "c1".to_string(),
                sites: vec![Site { processors: 4, jobs }],
            },
        }
    }

    #[test]
    fn a_job_has_the_lowest_processors_that_are_free_in_as_many_pieces_as_they_are() {
        let Schedule { sites, .. } = shown().schedule;
        assert_eq!(places(&sites[0])[3], [(0, 1), (2, 1)]);
    }

    #[test]
    fn the_page_has_a_block_for_each_job_and_a_point_for_each_member() {
        let page = html(&shown());
        // Each is there for a page and for a phone.
        assert_eq!(page.matches("<title>job ").count(), 2 * 4);
        assert_eq!(page.matches("<title>front, ").count(), 2 * 2 * 2, "two drawings");
        assert_eq!(page.matches("<title>spt, ").count(), 2 * 2);
        assert!(page.contains("&lt;out&gt;") && !page.contains("<out>"));
        for address in ["http://", "https://"] {
            assert!(!page.replace("http://www.w3.org/", "").contains(address), "{address}");
        }
    }
}
