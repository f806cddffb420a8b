//! Mistakes that tests build into a peer on purpose, to see that their checks would notice them.
//!
//! A peer can be told to make one only if the crate is built with the feature `mutant`, which nothing but tests
//! does. Without it [`Core::has`] is always false and every mistake is compiled away.

/// A mistake in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "mutant"), expect(unreachable_pub, reason = "only tests see it"))]
pub enum Mutant {
    /// A victim never tells anybody that its queue changed.
    NoticesNeverSent,
    /// A thief asks as soon as it gets a notice and does not wait for its turn (rule Z1).
    AskOnNotice,
    /// A victim starts own jobs before it serves a request (rule Z2).
    OwnWorkBeforeRequest,
    /// A victim obeys a withdrawal although it told the thief something since.
    WithdrawUnchecked,
    /// A victim takes an unanswered job back after a while.
    ReclaimOnTimeout,
    /// A thief starts a granted job each time the grant arrives.
    StartWithoutLedger,
    /// A victim settles a declined transfer and does not take the job back.
    ForgetDeclined,
    /// Under a baseline nobody who watches is ever told.
    NewsNeverTold,
    /// Who decides for the global queue does so after every board and does not wait until nothing is under way.
    DecideAtOnce,
    /// Two hosts elected at once have the same number.
    EpochIsNumber,
    /// Nobody compares what a board says of the host.
    BoardWithoutEpoch,
    /// Numbers of claims are used again.
    ClaimsReused,
    /// Nobody writes down that it accepted a transfer.
    AcceptedNotWritten,
    /// Nobody writes down that it declined a transfer.
    DeclinedNotWritten,
    /// Nobody writes floors down.
    FloorNotWritten,
    /// Nobody writes down that a job ended.
    EndNotWritten,
    /// A site that restarts numbers requests and claims from the start.
    #[cfg(feature = "mutant")]
    NumbersBeginAgain,
    /// A site that restarts has forgotten which transfers it answered.
    TombsForgotten,
    /// A site that restarts has forgotten the jobs that it executed.
    JobsForgotten,
    /// A site that restarts has forgotten which transfers bring a job home.
    RoutesForgotten,
    /// A site that restarts executes jobs once more although interrupted ones are killed.
    KilledRunAgain,
    /// A guardian takes a job over under the epoch that it has.
    SameEpoch,
    /// Nobody writes down that it took a job over.
    TakeOverNotWritten,
    /// A job that nobody present can hold is dropped.
    OrphanedForgotten,
    /// A site that was silent is never believed to be here again.
    NeverHereAgain,
    /// A site has left although jobs wait there.
    LeavesEarly,
    /// A site counts one processor too few for each wide job that it starts.
    CountsOneLess,
    /// The end of a wide job frees one processor too few.
    FreesOneLess,
    /// A site that restarts gives up what was interrupted although it should wait again.
    InterruptedGivenUp,
    /// A site that restarts takes its open transfers for accepted.
    OutForgotten,
    /// A victim does not hear that its notice was seen.
    SeenUnheard,
    /// A job that is estimated to need no time is taken for one that needs no processors.
    NoTimeNoRoom,
    /// The ninth site and those after it are told the floor of another.
    FloorOfAnother,
    /// A site that was silent for twenty minutes is never believed to be here again.
    LongGone,
    /// What others say is not compared with what a correct peer can say.
    LiesBelieved,
    /// A broker that restarts has forgotten what waited for its decision.
    InboxForgotten,
    /// A site does not tell brokers that a job ended.
    EndUntold,
    /// A broker says that it knows what came before an earlier change, and has not got that.
    KnownTooEarly,
    /// A broker gives jobs to sites that are gone.
    DecidesForGone,
    /// A broker that restarts has forgotten what its rule knew.
    RuleForgotten,
    /// A member that restarts has forgotten which ends it had learned run times from.
    EndsForgotten,
    /// Through a global queue a site plans by what users say of the jobs that it takes, although it predicts run times.
    TakenBelieved,
    /// A site does not tell who decides for the global queue that a job ran past its prediction.
    CorrectionUntold,
    /// Where jobs share nodes a site tells a broker that predicts when a job ended, and not how long it would have taken on idle nodes.
    WorkUntold,
    /// A broker that is told that a job executes and does not come back goes on as if it had it.
    RefusalForgotten,
    /// A broker that restarts takes jobs for being on their way whose end it was told of.
    LearnsAgain,
    /// A broker goes on asking a site that has answered for all jobs that were called back.
    AsksOn,
    /// A thief goes on asking a victim that has answered.
    ThiefAsksOn,
    /// A broker goes on asking for a row of changes that has begun.
    RowAskedOn,
    /// Under a baseline a site goes on asking one that has answered.
    VictimAskedOn,
    /// Who gave a claim of the global queue back goes on asking for it.
    ClaimAskedOn,
    /// Nobody has a broker ask which jobs a site has that dropped one, forgot which ended, or has one that others took over.
    DropUntold,
    /// A site that restarts has forgotten which parts of jobs it held and executed.
    PartsForgotten,
    /// A site goes on executing a part of a job of which another part was lost.
    PartRunsOn,
    /// A broker that restarts has forgotten which jobs it had decided to start in parts.
    GangsForgotten,
    /// What the first site of a job in parts said of its end stands although another part was lost.
    EndStands,
    /// Each site with a part of a job learns from its end and has brokers do so, and not the first alone.
    PartLearned,
    /// Under a baseline a site that knows some others only turns to any.
    StrangersAsked,
}
