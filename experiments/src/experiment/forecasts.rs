//! What schedulers are told about run times: by a rule, or by what local queues predict.

use predict::{Forecast, Predictor};
use scheduler::{LocalScheduler, StrategySpec, spelling};
use workload::prepare::{Estimate, SwitchError};

use super::error::{ExperimentError, wrong};
use super::file::Written;

const ESTIMATE: &str = "--estimate (workload.estimate)";
const CORRECTION: &str = "--correction (workload.correction)";
const BACKFILL: &str = "--backfill (strategy.backfill)";

/// Orders in which EASY looks at jobs that may overtake, as users write them.
const ORDERS: [(&str, LocalScheduler); 4] = [
    ("arrival", LocalScheduler::Easy),
    ("sjf", LocalScheduler::EasyShortest),
    ("smallest", LocalScheduler::EasySmallest),
    ("fill", LocalScheduler::EasyBestFit),
];

/// Who predicts; nobody where a rule says it all.
///
/// # Errors
/// What is no predictor or no correction, or whom nobody asks.
pub(super) fn of(
    written: &Written,
    strategy: &StrategySpec,
    local: LocalScheduler,
) -> Result<Option<Forecast>, ExperimentError> {
    let workload = &written.workload;
    let correction = workload.correction.as_deref();
    let Some(predictor) = predictor(written) else {
        return match correction.filter(|correction| *correction != predict::Correction::User.name()) {
            Some(_) => Err(wrong(CORRECTION)(format!(
                "only predictions are corrected; name a predictor with {ESTIMATE}, as avg2"
            ))),
            None => Ok(None),
        };
    };
    let correction = correction.map(|text| text.parse().map_err(wrong(CORRECTION))).transpose()?;
    let predictor = predictor.parse().map_err(wrong(ESTIMATE))?;
    let forecast = Forecast { predictor, correction: correction.unwrap_or_default() };
    let nature = strategy.strategy.nature();
    if !nature.predicts {
        let reason = format!(
            "{strategy} plans by what users ask for, if at all; run times are predicted under local, broker:NAME, opaque:NAME, \
             steal:NAME and pool:easy only: write user, exact or factor:F"
        );
        return Err(wrong(ESTIMATE)(reason));
    }
    if local == LocalScheduler::External || nature.external {
        return Err(wrong(ESTIMATE)(
            "a command predicts by itself; write user, exact or factor:F".to_string(),
        ));
    }
    Ok(Some(forecast))
}

/// Whether this estimate is what somebody predicts, so that there is something to correct.
pub fn predicts(estimate: &str) -> bool {
    let name = estimate.split(':').next().unwrap_or(estimate);
    name.parse::<Predictor>().is_ok_and(|predictor| predictor != Predictor::User)
}

/// What the log is prepared with.
///
/// # Errors
/// If it is neither a rule nor a predictor.
pub(super) fn prepared(written: &Written) -> Result<Estimate, ExperimentError> {
    match (&written.workload.estimate, predictor(written)) {
        (None, _) | (_, Some(_)) => Ok(Estimate::User),
        (Some(text), None) if text.trim().is_empty() => Err(wrong(ESTIMATE)(format!(
            "there is no value; write user, exact, factor:F or a predictor: {}",
            predict::PREDICTORS.join(", ")
        ))),
        (Some(text), None) => text.parse().map_err(|mut error: SwitchError| {
            let name = text.split(':').next().unwrap_or(text);
            if error.hint.is_empty() {
                error.hint = spelling::hint(name, predict::PREDICTORS);
            }
            let names = predict::PREDICTORS.join(", ");
            wrong(ESTIMATE)(format!(
                "{error}; or a predictor: {names}; most have options, as in last:k=5,by=mean|median|ratio"
            ))
        }),
    }
}

/// A flag wins over the file: with another estimate there is nothing that a correction in the file would be of, and a scheduler
/// has no order that the file gave another.
pub(super) fn overridden(
    written: &mut Written,
    estimate: bool,
    correction: bool,
    local: bool,
    backfill: bool,
) {
    if estimate && !correction && predictor(written).is_none() {
        written.workload.correction = None;
    }
    if local && !backfill {
        written.strategy.backfill = None;
    }
}

/// The predictor, if it is none of the rules by which logs are prepared.
fn predictor(written: &Written) -> Option<&str> {
    let text = written.workload.estimate.as_deref()?;
    predicts(text).then_some(text)
}

/// The order in which a scheduler looks at jobs that may overtake; none if it is no EASY.
pub fn order_of(local: LocalScheduler) -> Option<&'static str> {
    ORDERS.iter().find(|&&(_, easy)| easy == local).map(|&(order, _)| order)
}

/// EASY with an order in which it looks at jobs that may overtake.
///
/// # Errors
/// If there is no such order.
pub fn order(text: &str) -> Result<LocalScheduler, String> {
    let names = ORDERS.map(|(name, _)| name);
    let found = ORDERS.iter().find(|(name, _)| *name == text).map(|&(_, ordered)| ordered);
    found.ok_or_else(|| {
        format!("{text:?} is no order{}; use one of {}", spelling::hint(text, names), names.join(", "))
    })
}

/// The local scheduler with the order in which it looks at jobs that may overtake.
///
/// # Errors
/// If there is no such order, or the scheduler has none.
pub(super) fn backfill(text: Option<&str>, local: LocalScheduler) -> Result<LocalScheduler, ExperimentError> {
    let Some(text) = text else { return Ok(local) };
    let ordered = order(text).map_err(wrong(BACKFILL))?;
    // An order takes the place of the one that the name of EASY has in a file.
    if order_of(local).is_some() {
        return Ok(ordered);
    }
    // These look at jobs in the order of arrival, whatever is said; a command looks as it likes.
    if ordered == LocalScheduler::Easy && local != LocalScheduler::External {
        return Ok(local);
    }
    let name = local.name();
    Err(wrong(BACKFILL)(format!(
        "{name} is no EASY and looks at jobs in the order of arrival; write arrival, or leave it out"
    )))
}

#[cfg(test)]
mod tests {
    use crate::experiment::Experiment;

    fn resolved(text: &str) -> Result<Experiment, String> {
        let text = format!("grid.sizes = [4]\nworkload.trace = \"log.swf\"\n{text}");
        let written = toml::from_str(&text).map_err(|error| error.to_string())?;
        Experiment::resolve(&written).map_err(|error| error.to_string())
    }

    #[test]
    fn a_predictor_is_an_estimate_and_an_order_a_scheduler() {
        let published = "strategy = { name = \"local\", backfill = \"sjf\" }\nworkload.estimate = \"avg2\"\n\
                         workload.correction = \"tsafrir\"\n";
        let experiment = resolved(published).unwrap();
        assert_eq!((experiment.estimate().as_str(), experiment.local.name()), ("avg2", "easy-sjbf"));
        let switches = experiment.switches();
        assert_eq!((&*switches["workload.estimate"], &*switches["workload.correction"]), ("avg2", "tsafrir"));
        let again = toml::from_str(experiment.file.text()).unwrap();
        let again = Experiment::resolve(&again).unwrap();
        assert_eq!((again.forecast, again.local), (experiment.forecast, experiment.local));
        assert_eq!(resolved("strategy.name = \"local\"").unwrap().forecast, None);
        let list = "strategy = { name = \"local\", local = \"list\", backfill = \"arrival\" }";
        assert_eq!(resolved(list).unwrap().local.name(), "list", "it looks at jobs in the order of arrival");
        for strategy in
            ["broker:mst", "ideal/broker:genetic", "opaque:ag", "steal:loaded,select=easy", "ideal/pool:easy"]
        {
            let text = format!("strategy.name = \"{strategy}\"\nworkload.estimate = \"avg2\"");
            let forecast = resolved(&text).unwrap().forecast.unwrap();
            assert_eq!(forecast.predictor.to_string(), "avg2", "{strategy}");
        }
        let other = "strategy = { name = \"local\", local = \"easy-sjbf\", backfill = \"smallest\" }\nworkload.correction = \"user\"";
        assert_eq!(resolved(other).unwrap().local.name(), "easy-smallest");
    }

    #[test]
    fn what_nobody_asks_for_is_refused() {
        for (text, reason) in [
            ("workload.estimate = \"avg2\"\nstrategy.name = \"st:50\"", "plans by what users ask for"),
            ("workload.estimate = \"avg2\"\nstrategy.name = \"common-pool\"", "plans by what users ask for"),
            ("workload.estimate = \"avg2\"\nstrategy.name = \"pool:list\"", "steal:NAME and pool:easy only"),
            ("workload.estimate = \"avg3\"", "or a predictor: user, avg2"),
            ("workload.estimate = \"avg3\"", "(did you mean avg2?)"),
            ("workload.estimate = \"avg2:\"\nstrategy.name = \"local\"", "an option without a name"),
            ("workload.estimate = \"last:k=0\"\nstrategy.name = \"local\"", "k is \"0\""),
            ("workload.correction = \"tsafrir\"", "only predictions are corrected"),
            (
                "workload.estimate = \"avg2\"\nworkload.correction = \"never\"\nstrategy.name = \"local\"",
                "is no correction",
            ),
            ("strategy = { name = \"local\", local = \"list\", backfill = \"sjf\" }", "is no EASY"),
            ("strategy = { name = \"local\", local = \"fcfs\", backfill = \"smallest\" }", "write arrival"),
            ("strategy = { name = \"local\", backfill = \"longest\" }", "is no order; use one of arrival"),
        ] {
            let error = resolved(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
