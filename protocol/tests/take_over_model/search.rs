//! What can happen next, and what must hold whatever happens.

use std::collections::BTreeSet;

use stateright::{Model, Property};

use crate::Grid;
use crate::table::{Message, State, Stay};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Grant {
        from: usize,
        to: usize,
    },
    /// A site that leaves gives its waiting job to another.
    Route {
        from: usize,
        to: usize,
    },
    Recall {
        from: usize,
        to: usize,
        number: u64,
    },
    Deliver {
        message: Message,
        wanted: bool,
    },
    Start(usize),
    End(usize),
    Crash(usize),
    /// The guardian believes that the holder is gone.
    TakeOver(usize),
    /// Who passed the job on to a site that is believed gone asks the guardian whether it went on.
    Doubt {
        from: usize,
        to: usize,
        number: u64,
    },
    /// The same, who believes the guardian gone as well, takes it over.
    StandIn {
        from: usize,
        to: usize,
        number: u64,
    },
    Die(usize),
    /// The operator looks at the journals of the dead.
    Operate,
    Leave(usize),
    /// Who sent jobs to a site that leaves says which answers it has.
    Floor {
        from: usize,
        to: usize,
    },
    /// The process of a site that has left ends.
    Stop(usize),
}

impl Grid {
    fn moves(&self, state: &State, from: usize, actions: &mut Vec<Action>) {
        let site = &state.sites[from];
        let others = || (0..self.sites).filter(|&to| to != from);
        if site.waits.is_some() && site.stay == Stay::Leaving {
            if state.grants < self.grants {
                actions.extend(others().map(|to| Action::Route { from, to }));
            }
        } else if site.waits.is_some() {
            actions.push(Action::Start(from));
            if state.grants < self.grants {
                actions.extend(others().map(|to| Action::Grant { from, to }));
            }
        }
        if site.runs.is_some() {
            actions.push(Action::End(from));
            if state.crashes < self.crashes {
                actions.push(Action::Crash(from));
            }
        }
        for (to, transfer) in site.out() {
            let number = transfer.number;
            let recall = Message::Recall { from, to, number };
            if self.recalls && !state.is_route(from, to, number) && !state.messages.contains(&recall) {
                actions.push(Action::Recall { from, to, number });
            }
            let Some(guardian) = transfer.guardian.map(|guardian| guardian.index()) else { continue };
            if guardian == from || self.take_overs + self.stand_ins == 0 || !state.may_be_gone(self, to) {
                continue;
            }
            if state.sites[guardian].is_there() && guardian != to {
                actions.push(Action::Doubt { from, to, number });
            }
            if state.assumed < self.stand_ins && state.may_be_gone(self, guardian) {
                actions.push(Action::StandIn { from, to, number });
            }
        }
        if state.take_overs < self.take_overs
            && site.guarded.is_some_and(|guarded| state.may_be_gone(self, guarded.holder))
        {
            actions.push(Action::TakeOver(from));
        }
    }
}

impl Model for Grid {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let there = || (0..self.sites).filter(|&at| state.sites[at].is_there());
        for at in there() {
            self.moves(state, at, actions);
        }
        for &message in state.messages.iter().filter(|message| state.sites[message.to()].is_there()) {
            actions.push(Action::Deliver { message, wanted: true });
            if self.declines && matches!(message, Message::Job { route: false, .. }) {
                actions.push(Action::Deliver { message, wanted: false });
            }
        }
        let count = |stay: Stay| state.sites.iter().filter(|site| site.stay == stay).count();
        if count(Stay::Dead) < self.deaths && there().count() > 1 {
            actions.extend(there().map(Action::Die));
        }
        if count(Stay::Dead) > 0 && self.operator {
            actions.push(Action::Operate);
        }
        if count(Stay::Leaving) + count(Stay::Left) < self.leaves {
            let here = there().filter(|&at| state.sites[at].stay == Stay::Here);
            actions.extend(here.map(Action::Leave));
        }
        for to in there().filter(|&to| state.sites[to].stay == Stay::Leaving) {
            let tells = |&from: &usize| {
                state.floor_for(from, to).is_some_and(|floor| !state.messages.contains(&floor))
            };
            actions.extend(there().filter(tells).map(|from| Action::Floor { from, to }));
        }
        actions.extend(there().filter(|&at| state.has_left(self, at)).map(Action::Stop));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Grant { from, to } => state.send(self, from, to, false)?,
            Action::Route { from, to } => state.send(self, from, to, true)?,
            Action::Recall { from, to, number } => {
                state.messages.insert(Message::Recall { from, to, number });
            }
            Action::Doubt { from, to, number } => {
                let (transfer, guardian) = last.in_doubt(from, to, number)?;
                state.doubt(self, from, to, &transfer, guardian);
            }
            Action::StandIn { from, to, number } => {
                let (transfer, _) = last.in_doubt(from, to, number)?;
                state.stand_in(self, from, &transfer);
            }
            Action::Deliver { message, wanted } => state.receive(self, message, wanted)?,
            Action::Start(at) => {
                let site = &mut state.sites[at];
                let copy = site.waits.take()?;
                site.runs = Some(copy);
                state.starts.insert((copy.epoch, at));
                state.begun += 1;
            }
            Action::End(at) => state.end(self, at)?,
            Action::Crash(at) => {
                state.crashes += 1;
                let site = &mut state.sites[at];
                // What was taken over while it executed does not restart.
                site.waits = site.runs.take().filter(|copy| copy.epoch >= site.void);
            }
            Action::TakeOver(at) => state.take_over(self, at)?,
            Action::Die(at) => state.sites[at].stay = Stay::Dead,
            Action::Operate => state.operate(self)?,
            Action::Leave(at) => state.sites[at].stay = Stay::Leaving,
            Action::Floor { from, to } => {
                let floor = state.floor_for(from, to)?;
                state.messages.insert(floor);
            }
            Action::Stop(at) => state.sites[at].stay = Stay::Left,
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("without a crash one site starts each epoch", |_, state: &State| {
                let epochs: BTreeSet<u32> = state.starts.iter().map(|start| start.0).collect();
                state.crashes > 0 || epochs.len() == state.starts.len()
            }),
            Property::always("each epoch ends at most once", |_, state: &State| {
                state.ended.values().all(|&times| times == 1)
            }),
            Property::always("one owner of each epoch", |_, state: &State| {
                let copies = state.sites.iter().flat_map(|site| site.copies());
                copies.into_iter().all(|copy| state.owners(copy.epoch) == 1)
            }),
            Property::always("the job is not lost", |grid: &Grid, state: &State| state.is_in_care(grid)),
            Property::always("no void copy waits", |_, state: &State| {
                state.sites.iter().all(|site| site.waits.is_none_or(|waits| waits.epoch >= site.void))
            }),
            Property::always("the guardian knows who has it", |_, state: &State| {
                (0..state.sites.len()).all(|at| state.knows_holder(at))
            }),
            Property::always("who has left owes nothing", |_, state: &State| {
                (0..state.sites.len()).all(|at| state.sites[at].stay != Stay::Left || state.owes_nothing(at))
            }),
            Property::always(
                "it starts once if all sites that are believed gone have left",
                |grid, state: &State| {
                    let died = state.sites.iter().any(|site| site.stay == Stay::Dead);
                    grid.doubts || died || state.crashes > 0 || state.begun <= 1
                },
            ),
            Property::sometimes("it ends", |_, state: &State| !state.ended.is_empty()),
        ];
        if self.take_overs > 0 && self.doubts {
            properties.push(Property::sometimes("it runs twice", |_, state: &State| state.begun > 1));
        }
        if self.stand_ins > 0 {
            properties.push(Property::sometimes("a sender stands in", |_, state: &State| {
                state.assumed > 0 && !state.ended.is_empty()
            }));
        }
        if self.operator {
            properties.push(Property::sometimes("what was adopted ends", |_, state: &State| {
                state.adopted > 0 && state.ended.contains_key(&state.adopted)
            }));
        }
        if self.leaves > 0 {
            properties.push(Property::sometimes(
                "who had the job has left, and it ends",
                |grid: &Grid, state: &State| {
                    state.sites[grid.home].stay == Stay::Left && !state.ended.is_empty()
                },
            ));
        }
        if self.grants > 1 && self.leaves == 0 {
            properties.push(Property::sometimes("it comes home", |grid: &Grid, state: &State| {
                state.sites[grid.home].waits.is_some_and(|copy| copy.moves > 1)
            }));
        }
        properties
    }
}
