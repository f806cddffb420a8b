//! What must hold of links whatever the model: each check over random models, and over links that are broken on
//! purpose, which it must catch.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use links::model::{Base, Between};
use links::{Copies, Cut, Jitter, Links, Model, Probability, Properties, Rule};
use proptest::prelude::*;
use scheduler::{SiteId, Span, Time};

const ONE: SiteId = SiteId(1);
const TWO: SiteId = SiteId(2);

/// A message: when, on which link, with how much payload.
type Message = (Time, SiteId, SiteId, u64);

/// Anything that decides the fate of messages.
trait Network {
    fn send(&mut self, message: Message) -> Copies;
}

impl Network for Links {
    fn send(&mut self, (now, from, to, payload): Message) -> Copies {
        Links::send(self, now, from, to, payload)
    }
}

fn seconds(seconds: i64) -> Span {
    Span::from_secs(seconds)
}

fn at(seconds: i64) -> Time {
    Time::from_secs(seconds)
}

fn likely(value: f64) -> Probability {
    Probability::new(value).unwrap()
}

fn jitter() -> impl Strategy<Value = Jitter> {
    let text = prop_oneof![
        Just("none"),
        Just("constant:2s"),
        Just("uniform:min=1s,max=9s"),
        Just("normal:deviation=3s"),
        Just("log-normal:median=2s,sigma=1"),
        Just("pareto:scale=1s,shape=1.5"),
    ];
    text.prop_map(|text| text.parse().unwrap())
}

fn model() -> impl Strategy<Value = Model> {
    let properties = (jitter(), 0.0f64..0.5, 0.0f64..0.5, prop::option::of(1u64..1000)).prop_map(
        |(jitter, loss, duplication, bandwidth)| Properties {
            jitter,
            reorder: false,
            loss: likely(loss),
            duplication: likely(duplication),
            bandwidth,
        },
    );
    (0i64..20, properties, 0i64..500, 1i64..200, any::<bool>()).prop_map(
        |(delay, properties, begin, length, changes)| {
            let mut model = Model::constant(seconds(delay)).with(properties);
            model.cuts = vec![Cut {
                at: at(begin),
                until: at(begin + length),
                between: Between::OneWay { from: Some([ONE].into()), to: None },
            }];
            if changes {
                let rule = Rule { at: Some(at(300)), delay: Some(seconds(1)), ..Rule::default() };
                model.rules = vec![rule];
            }
            model
        },
    )
}

/// Messages in the order of time, on four links.
fn messages() -> impl Strategy<Value = Vec<Message>> {
    let message = (0i64..20, 1u32..3, 1u32..3, 0u64..2000);
    prop::collection::vec(message, 1..120).prop_map(|gaps| {
        let mut now = Time::ZERO;
        let sites =
            |from, to| if from == to { (SiteId(from), SiteId(3)) } else { (SiteId(from), SiteId(to)) };
        gaps.into_iter()
            .map(|(gap, from, to, payload)| {
                now += seconds(gap);
                let (from, to) = sites(from, to);
                (now, from, to, payload)
            })
            .collect()
    })
}

/// First in, first out on every directed link.
fn in_order(network: &mut dyn Network, messages: &[Message]) -> Result<(), String> {
    let mut last = std::collections::BTreeMap::new();
    for message in messages {
        let copies = network.send(*message);
        let latest = last.entry((message.1, message.2)).or_insert(Time::from_micros(i64::MIN));
        for delay in [copies.first, copies.second].into_iter().flatten() {
            let arrival = message.0 + delay;
            if arrival < *latest {
                return Err(format!("{message:?} arrives at {arrival}, before {latest}"));
            }
            *latest = arrival;
        }
    }
    Ok(())
}

/// Nothing is under way on a link while it is cut, and all else is as without the partition.
fn cut_and_healed(network: &mut dyn Network, model: &Model, messages: &[Message]) -> Result<(), String> {
    let cut = &model.cuts[0];
    for message in messages {
        let copies = network.send(*message);
        for delay in [copies.first, copies.second].into_iter().flatten() {
            if message.1 == ONE && message.0 < cut.until && message.0 + delay >= cut.at {
                return Err(format!("{message:?} crosses the cut"));
            }
        }
    }
    Ok(())
}

/// The fate of a message does not hang on what other links carry.
fn independent(make: &dyn Fn() -> Box<dyn Network>, messages: &[Message]) -> Result<(), String> {
    let (mut all, mut alone) = (make(), make());
    for message in messages {
        let among_others = all.send(*message);
        if (message.1, message.2) == (ONE, TWO) && alone.send(*message) != among_others {
            return Err(format!("{message:?} has another fate alone"));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn links_are_first_in_first_out(model in model(), messages in messages(), seed in any::<u64>()) {
        prop_assert_eq!(in_order(&mut Links::new(model, seed), &messages), Ok(()));
    }

    #[test]
    fn a_partition_cuts_everything_and_heals(
        model in model(), messages in messages(), seed in any::<u64>(),
    ) {
        prop_assert_eq!(cut_and_healed(&mut Links::new(model.clone(), seed), &model, &messages), Ok(()));
        // Far behind it, and without loss, everything arrives.
        let mut healed = model;
        healed.properties.loss = Probability::ZERO;
        let mut links = Links::new(healed, seed);
        let late = at(1_000_000);
        prop_assert!(links.send(late, ONE, TWO, 0).first.is_some());
    }

    #[test]
    fn the_order_in_which_links_send_changes_nothing(
        model in model(), messages in messages(), seed in any::<u64>(),
    ) {
        let make = || -> Box<dyn Network> { Box::new(Links::new(model.clone(), seed)) };
        prop_assert_eq!(independent(&make, &messages), Ok(()));
        // And the same again is the same.
        let fates = || { let mut links = make(); messages.iter().map(|m| links.send(*m)).collect::<Vec<_>>() };
        prop_assert_eq!(fates(), fates());
    }

    #[test]
    fn a_model_survives_json(model in model()) {
        let text = serde_json::to_string(&model).unwrap();
        prop_assert_eq!(serde_json::from_str::<Model>(&text).unwrap(), model);
    }

    #[test]
    fn payloads_occupy_a_link_one_after_the_other(payloads in prop::collection::vec(0u64..5000, 1..50)) {
        let properties = Properties { bandwidth: Some(1000), ..Properties::NONE };
        let mut links = Links::new(Model::constant(seconds(2)).with(properties), 1);
        let mut sum = 0;
        for payload in payloads {
            sum += payload;
            // All at once: each waits for all before it. A thousandth of a second for a byte.
            let expected = seconds(2) + Span::from_micros(sum as i64 * 1000);
            prop_assert_eq!(links.send(Time::ZERO, ONE, TWO, payload).first, Some(expected));
        }
        // The way back is another link.
        prop_assert_eq!(links.send(Time::ZERO, TWO, ONE, 0).first, Some(seconds(2)));
        // And the line is free again afterwards.
        prop_assert_eq!(links.send(at(1_000_000), ONE, TWO, 500).first, Some(Span::from_micros(2_500_000)));
    }
}

/// Messages of the samples below.
const MANY: u32 = 40_000;

/// The delays of many messages, far apart.
fn delays(model: &Model, seed: u64) -> Vec<Option<f64>> {
    let mut links = Links::new(model.clone(), seed);
    let gap = 1_000_000_000;
    let send = |index: u32| links.send(Time::from_micros(i64::from(index) * gap), ONE, TWO, 0);
    (0..MANY).map(send).map(|copies| copies.first.map(Span::as_secs_f64)).collect()
}

/// A sample's mean and its standard error.
fn mean_and_error(sample: &[f64]) -> (f64, f64) {
    let n = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / n;
    let variance = sample.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Whether a sample has this mean, to five standard errors and half a microsecond of rounding.
fn has_mean(sample: &[f64], mean: f64) -> bool {
    let (measured, error) = mean_and_error(sample);
    (measured - mean).abs() <= 5.0 * error + 5e-7
}

const DISTRIBUTIONS: [&str; 9] = [
    "constant:2s",
    "uniform:min=1s,max=9s",
    "uniform:1us",
    "normal:deviation=3s",
    "normal:deviation=3s,mean=2s,max=5s",
    "log-normal:median=2s,sigma=0.8",
    "log-normal:median=2s,sigma=0.8,max=3s",
    "pareto:scale=1s,shape=3.5",
    "pareto:scale=1s,shape=1.2,max=20s",
];

#[test]
fn every_distribution_has_the_mean_it_says() {
    for text in DISTRIBUTIONS {
        let jitter: Jitter = text.parse().unwrap();
        let properties = Properties { jitter, ..Properties::NONE };
        let model = Model::constant(seconds(1)).with(properties);
        let sample: Vec<f64> = delays(&model, 7).into_iter().flatten().collect();
        let mean = model.link(Time::ZERO, ONE, TWO).mean().as_secs_f64();
        assert!(has_mean(&sample, mean), "{text}: {:?} for {mean}", mean_and_error(&sample));
        // The mutant: a mean that is 5 % off is told from the right one.
        if !jitter.is_constant() && text != "uniform:1us" {
            assert!(!has_mean(&sample, mean * 1.05), "{text}");
        }
        let longest = model.largest().as_secs_f64();
        let beyond = sample.iter().filter(|delay| **delay > longest).count();
        assert!(beyond < MANY as usize * 2 / 1000, "{text}: {beyond} beyond {longest} s");
        assert!(sample.iter().all(|delay| *delay >= 0.0));
    }
}

#[test]
fn as_many_messages_are_lost_and_doubled_as_the_model_says() {
    for (loss, duplication) in [(0.0, 0.3), (0.01, 0.0), (0.3, 0.5), (0.9, 0.01)] {
        let properties =
            Properties { loss: likely(loss), duplication: likely(duplication), ..Properties::NONE };
        let mut links = Links::new(Model::constant(seconds(1)).with(properties), 3);
        let copies: Vec<Copies> = (0..MANY).map(|_| links.send(Time::ZERO, ONE, TWO, 0)).collect();
        let lost: Vec<f64> = copies.iter().map(|c| f64::from(u8::from(c.first.is_none()))).collect();
        let arrived: Vec<&Copies> = copies.iter().filter(|c| c.first.is_some()).collect();
        let doubled: Vec<f64> = arrived.iter().map(|c| f64::from(u8::from(c.second.is_some()))).collect();
        assert!(has_mean(&lost, loss), "loss {loss}: {:?}", mean_and_error(&lost));
        assert!(has_mean(&doubled, duplication), "duplication {duplication}: {:?}", mean_and_error(&doubled));
        assert!(!has_mean(&lost, loss + 0.02), "the mutant");
    }
}

#[test]
fn more_loss_leaves_the_jitter_of_what_arrives() {
    let model = |loss| {
        let jitter = "uniform:5s".parse().unwrap();
        let properties = Properties { jitter, loss: likely(loss), ..Properties::NONE };
        Model::constant(seconds(1)).with(properties)
    };
    let (none, some) = (delays(&model(0.0), 5), delays(&model(0.3), 5));
    assert!(none.iter().zip(&some).all(|(none, some)| some.is_none() || some == none));
    assert!(some.iter().any(Option::is_none));
}

#[test]
fn later_rules_win_and_hold_from_their_time_on() {
    let mut model = Model::matrix(vec![vec![seconds(0), seconds(1)], vec![seconds(2), seconds(0)]]);
    model.rules = vec![
        Rule { from: Some([ONE].into()), delay: Some(seconds(10)), ..Rule::default() },
        Rule {
            at: Some(at(100)),
            both: true,
            to: Some([ONE].into()),
            delay: Some(seconds(20)),
            ..Rule::default()
        },
    ];
    let delay = |when, from, to| model.link(at(when), from, to).delay;
    assert_eq!(delay(0, ONE, TWO), seconds(10));
    assert_eq!(delay(0, TWO, ONE), seconds(2));
    assert_eq!(delay(100, ONE, TWO), seconds(20));
    assert_eq!(delay(100, TWO, ONE), seconds(20));
    assert_eq!(model.largest(), seconds(20));
}

#[test]
fn groups_are_cut_from_each_other_and_not_within() {
    let mut model = Model::constant(seconds(1));
    let groups = vec![[ONE].into(), [TWO, SiteId(3)].into()];
    model.cuts = vec![Cut { at: at(10), until: at(20), between: Between::Groups(groups) }];
    let mut links = Links::new(model, 1);
    let mut arrives = |when, from, to| links.send(at(when), SiteId(from), SiteId(to), 0).first.is_some();
    assert!(arrives(8, 1, 2));
    assert!(!arrives(9, 1, 2), "it would arrive when the links are cut");
    assert!(!arrives(15, 1, 2) && !arrives(15, 3, 1));
    assert!(arrives(15, 2, 3) && arrives(15, 1, 4));
    assert!(arrives(20, 1, 2));
}

/// A network underneath does to all messages that a site sends at once over a link what it does to one.
#[test]
fn what_a_network_adds_it_adds_to_all_messages_of_an_instant_on_a_link() {
    let most = seconds(60);
    let added = Jitter::Uniform { min: Span::ZERO, max: most };
    let mut links = Links::new(Model::constant(seconds(300)).over(added), 1);
    let mut send = |now, to| links.send(now, ONE, to, 0).first.unwrap();
    let mut apart = std::collections::BTreeSet::new();
    for now in (0..50).map(|index| at(1000 * index)) {
        for to in [TWO, SiteId(3)] {
            let first = send(now, to);
            assert!(first >= seconds(300) && first <= seconds(360), "{first}");
            assert_eq!([send(now, to), send(now, to)], [first, first]);
            apart.insert(first);
        }
    }
    assert_eq!(apart.len(), 100, "each link and instant has its own");
}

// Mutants: links with one mistake each.

/// Forgets what came before on a link.
struct Forgetful(Model, u64);

impl Network for Forgetful {
    fn send(&mut self, (now, from, to, payload): Message) -> Copies {
        self.1 += 1;
        Links::new(self.0.clone(), self.1).send(now, from, to, payload)
    }
}

/// Numbers the messages of all links together.
struct OneLine(Links);

impl Network for OneLine {
    fn send(&mut self, (now, _, _, payload): Message) -> Copies {
        self.0.send(now, ONE, TWO, payload)
    }
}

#[test]
fn each_check_catches_links_with_the_mistake_it_is_for() {
    let properties = Properties { jitter: "uniform:9s".parse().unwrap(), ..Properties::NONE };
    let mut model = Model::constant(seconds(1)).with(properties);
    let other = |index: i64| if index % 3 == 0 { (ONE, TWO) } else { (TWO, ONE) };
    let messages: Vec<Message> =
        (0..50).map(|index| (at(index), other(index).0, other(index).1, 0)).collect();

    assert!(in_order(&mut Forgetful(model.clone(), 0), &messages).is_err());
    assert!(independent(&|| Box::new(OneLine(Links::new(model.clone(), 1))), &messages).is_err());
    let open = Links::new(model.clone(), 1);
    model.cuts = vec![Cut {
        at: at(20),
        until: at(30),
        between: Between::OneWay { from: Some([ONE].into()), to: None },
    }];
    assert!(cut_and_healed(&mut open.clone(), &model, &messages).is_err());
    let reordering = Properties { reorder: true, ..model.properties };
    assert!(in_order(&mut Links::new(model.clone().with(reordering), 1), &messages).is_err());

    // And the right ones pass.
    assert_eq!(in_order(&mut Links::new(model.clone(), 1), &messages), Ok(()));
    assert_eq!(cut_and_healed(&mut Links::new(model.clone(), 1), &model, &messages), Ok(()));
    assert_eq!(independent(&|| Box::new(Links::new(model.clone(), 1)), &messages), Ok(()));
}

#[test]
fn models_for_another_grid_are_refused() {
    let model = Model::matrix(vec![vec![Span::ZERO; 2]; 2]);
    assert_eq!(model.check(2), Ok(()));
    assert!(model.check(3).unwrap_err().contains("for 2 sites; the grid has 3"));
    let ragged = Model::matrix(vec![vec![Span::ZERO; 2], vec![Span::ZERO]]);
    assert!(ragged.check(2).unwrap_err().contains("row 2 has 1 columns"));
    let negative = Model::constant(Span::from_micros(-1));
    assert!(negative.check(2).unwrap_err().contains("negative"));
    let nowhere =
        Model { base: Base::Regions { of: vec![0, 1], rows: vec![vec![Span::ZERO]] }, ..Model::ZERO };
    assert!(nowhere.check(2).is_err());
}
