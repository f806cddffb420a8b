//! How far a sweep is that others compute, as a page that reads itself anew.

use std::fmt::Write as _;

use anyhow::Context as _;
use outputs::replace;

use super::collect::Collector;
use super::engines::Live;
use super::folder::PlanFolder;

/// Failed runs that are named.
const NAMED: usize = 20;

/// Writes `progress.html` into the folder; `live` is what the engine has, or nothing once all is over.
///
/// # Errors
/// If the disk does not take it.
pub(super) fn write(folder: &PlanFolder, collector: &Collector, live: Option<&Live>) -> anyhow::Result<()> {
    let path = folder.path().join("progress.html");
    let text = text(folder, collector, live);
    replace::write(&path, |to| to.write_all(text.as_bytes()))
        .with_context(|| format!("failed to write {}", path.display()))
}

fn text(folder: &PlanFolder, collector: &Collector, live: Option<&Live>) -> String {
    let counts = &collector.counts;
    let (all, done, failed) = (folder.head.runs, counts.done, counts.failed.len());
    let share = |count: usize| 100.0 * count as f64 / all.max(1) as f64;
    let name = escaped(&folder.head.name);
    let reload = if live.is_some() { "<meta http-equiv=\"refresh\" content=\"5\">" } else { "" };
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">{reload}<meta name=\"viewport\" content=\"width=device-width\">\
         <title>{name}</title><style>:root{{color-scheme:light dark}}body{{font:16px/1.5 system-ui,sans-serif;max-width:44rem;\
         margin:2rem auto;padding:0 1rem}}.bar{{display:flex;height:1.2rem;background:#8884;border-radius:.3rem;overflow:hidden}}\
         .bar i{{background:#2a78d6}}.bar b{{background:#d03b3b}}td{{padding:.1rem 1rem .1rem 0}}td+td{{text-align:right;\
         font-variant-numeric:tabular-nums}}</style><h1>{name}</h1>\
         <div class=\"bar\" role=\"img\" aria-label=\"{done} of {all} runs done, {failed} failed\">\
         <i style=\"width:{:.2}%\"></i><b style=\"width:{:.2}%\"></b></div><table>",
        share(done),
        share(failed)
    );
    let mut row = |what: &str, count: usize| {
        let _ = write!(page, "<tr><td>{what}<td>{count}");
    };
    row("runs", all);
    row("done", done);
    row("failed", failed);
    row("computed twice, the same", counts.twice);
    row("computed twice, with results that differ", counts.differ.len());
    row("violate what is proved", counts.violated);
    if let Some(live) = live {
        row("chunks running", live.running.len());
        row("chunks waiting", live.waiting.len());
    }
    row("chunks with a result", collector.taken().len());
    row("chunks", folder.head.chunks);
    page += "</table>";
    if let Some(reason) = live.and_then(|live| live.reason.as_ref()) {
        let _ = write!(page, "<p>Most of the waiting chunks wait for: {}", escaped(reason));
    }
    for what in counts.differ.iter().take(NAMED) {
        let _ = write!(page, "<p>Two results of one run differ: {}", escaped(what));
    }
    for (position, reason) in counts.failed.iter().take(NAMED) {
        let _ = write!(page, "<p>Run {position} failed: {}", escaped(reason));
    }
    page + "</html>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
