//! `stealgrid run`: one node process per site, over libp2p, by the wall clock.
