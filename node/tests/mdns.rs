//! Discovery by multicast DNS, in a network namespace of its own: nothing leaves the machine, nobody else is heard.
//!
//! Making a namespace needs root or namespaces of users, and `unshare` and `ip` on the path; without them the test skips and says so.

use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use node::config::{IdentitySource, Member, SiteEntry};
use node::control::Token;
use node::network::{Discovery, Identity};
use node::{Node, NodeConfig};
use operation::NodeClient;
use operation::fleet::Fleet;
use operation::spawn::SpawnOrder;
use rustix::process::{Pid, Signal, kill_process};
use scheduler::{SiteId, Span};
use stealgrid_tests::once_more;

use crate::PROGRAM;

/// The only address of the namespace besides loopback, which mDNS leaves out.
const ADDRESS: &str = "10.77.0.1";
const PATIENCE: Duration = Duration::from_secs(60);

/// Two runs share a network. Their nodes find those of their own run, and never the others, although both runs use
/// the same sites.
#[test]
fn nodes_find_those_of_their_own_run_by_mdns() {
    let needs = "mDNS needs unshare, ip, veth interfaces, and root or namespaces of users";
    let probe = "ip link add here type veth peer name there";
    once_more::in_namespace("-n", needs, probe, "mdns::nodes_find_those_of_their_own_run_by_mdns", || {
        let script = format!(
            "ip link set lo up && {probe} && ip addr add {ADDRESS}/24 dev here && \
             ip link set here multicast on up && ip link set there up"
        );
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
        let keys = tempfile::tempdir().unwrap();
        // Derived keys tell the nodes of a run beforehand; with others it takes a connection to find out.
        two_runs_on_one_network(&|_, _| IdentitySource::Seed(1));
        two_runs_on_one_network(&|run, site| IdentitySource::File(keys.path().join(format!("{run}{site}"))));
        a_restarted_node_is_found_again();
    });
}

fn two_runs_on_one_network(identity: &dyn Fn(&str, u32) -> IdentitySource) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let of_run = |run| [1, 2].map(|site| NodeConfig { identity: identity(run, site), ..config(run, site) });
    let mut configs = [of_run("red"), of_run("blue")].concat();
    let folder = tempfile::tempdir().unwrap();
    let (token, path) = (Token::random(), folder.path().join("token"));
    token.write_new(&path).unwrap();
    for config in &mut configs {
        config.control_token = Some(path.clone());
        for site in [1, 2] {
            if let IdentitySource::File(file) = identity(&config.run, site) {
                let peer_id = Identity::from_file(&file).unwrap().peer_id();
                config.members.push(Member { site: SiteId(site), peer_id });
            }
        }
    }
    let (sender, ready) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        runtime.block_on(async {
            let mut nodes = Vec::new();
            for config in configs {
                nodes.push(Node::start(config).await.unwrap());
            }
            sender.send(nodes.iter().map(|node| node.ready_line().clone()).collect::<Vec<_>>()).unwrap();
            for node in nodes {
                node.wait().await.unwrap();
            }
        });
    });
    let ready = ready.recv().expect("the nodes start");
    let clients: Vec<NodeClient> =
        ready.iter().map(|ready| NodeClient::new(&ready.http, Some(token.clone()))).collect();

    for client in &clients {
        client.wait_ready(PATIENCE).unwrap();
    }

    let incarnations: Vec<u64> = clients.iter().map(|client| client.status().unwrap().instance).collect();
    for (index, client) in clients.iter().enumerate() {
        // Nodes 0 and 1 are red, 2 and 3 are blue.
        let link = client.status().unwrap().links.remove(0);
        assert_eq!(link.instance, Some(incarnations[index ^ 1]), "connected to the other run");
        assert_eq!(link.problem, None);
    }
    for client in &clients {
        client.stop().unwrap();
    }
    thread.join().unwrap();
}

/// A node process that is killed and goes on with its journal is found again, and finds the other, though nobody
/// tells it an address and the port that it had is taken.
fn a_restarted_node_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let of_site = |site| {
        let mut config = config("green", site);
        config.identity = IdentitySource::Seed(1);
        config.data_dir = Some(folder.path().join(format!("data{site}")));
        config.options.retry = Some(Span::from_secs(5));
        config
    };
    let program = PROGRAM.into();
    let order = SpawnOrder { program, arguments: Vec::new(), folder: folder.path().to_path_buf() };
    let mut fleet = Fleet::spawn_each(&order, &[of_site(1), of_site(2)]).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    let first = fleet.clients().next().unwrap().status().unwrap();
    let port = first.listen[0].split("/tcp/").nth(1).unwrap().parse().unwrap();
    let process = Pid::from_raw(fleet.process_ids().next().unwrap() as i32).unwrap();
    kill_process(process, Signal::KILL).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let _taken = loop {
        match TcpListener::bind((ADDRESS, port)) {
            Ok(taken) => break taken,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    while fleet.restart_ended(true).unwrap().begun.is_empty() {
        assert!(Instant::now() < deadline, "the node does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    fleet.wait_ready(PATIENCE).unwrap();
    let again = fleet.clients().next().unwrap().status().unwrap();
    assert_eq!((again.restarts, again.instance), (1, first.instance));
    assert_ne!(again.listen, first.listen);
    fleet.stop(PATIENCE).unwrap();
}

fn config(run: &str, site: u32) -> NodeConfig {
    let entry = |name: &str| SiteEntry::new(name, 4);
    NodeConfig {
        run: run.to_string(),
        listen: format!("/ip4/{ADDRESS}/tcp/0"),
        discovery: Discovery::Mdns,
        allow_open_network: true,
        ..NodeConfig::new(SiteId(site), vec![entry("one"), entry("two")])
    }
}
