//! The rule of docs/OWN-STRATEGY.md as a broker: the smallest site where the job finds room; if there is none, the site with
//! the least work per processor. The twin of room.py beside it, and gives the same schedule. See docs/EXTERNAL.md.

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

/// Of a job and the sites that it may go to, ascending by size, the one it goes to. None if there are none.
fn room_first<'a>(job: &Value, sites: &[&'a Value]) -> Option<&'a Value> {
    let processors = |of: &Value| of.as_u64().unwrap_or(0);
    let has_room = |site: &&Value| {
        processors(&site["load"]["processors"]) + processors(&job["res"]) <= processors(&site["processors"])
    };
    // Work has six digits behind the point: whole numbers, of which quotients can be compared exactly.
    let work = |site: &Value| (site["load"]["work"].as_f64().unwrap_or(0.0) * 1e6).round() as i128;
    let less = |one: &&Value, other: &&Value| {
        let left = work(one) * i128::from(processors(&other["processors"]));
        left.cmp(&(work(other) * i128::from(processors(&one["processors"]))))
    };
    // Of equal ones `min_by` takes the first, as Python's `min` does.
    sites
        .iter()
        .copied()
        .find(has_room)
        .or_else(|| sites.iter().copied().min_by(|one, other| less(one, other)))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut answers = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let mut events = Vec::new();
        for event in message["events"].as_array().into_iter().flatten() {
            if event["type"] == "JOB_SUBMITTED" {
                let data = &event["data"];
                let all = data["sites"].as_array().into_iter().flatten();
                let sites: Vec<&Value> = all.filter(|site| site["admissible"] == true).collect();
                let site = room_first(&data["job"], &sites).ok_or("no site is admissible")?;
                let chosen = json!({ "job_id": data["job_id"], "site": site["name"] });
                events.push(json!({ "timestamp": message["now"], "type": "EXECUTE_JOB", "data": chosen }));
            }
        }
        writeln!(answers, "{}", json!({ "now": message["now"], "events": events }))?;
        answers.flush()?;
    }
    Ok(())
}
