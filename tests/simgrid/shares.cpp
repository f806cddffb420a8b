// What SimGrid's linear max-min gives flows over links, for comparison with ours. Reads networks, writes the share of each flow.
//
//   networks
//   links flows            of the first one
//   capacity ...           of each link
//   demand n link ...      of each flow, with its links from 0
//
// All networks are one platform: they have no link in common. Latencies are 0, so that flows weigh alike.

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

namespace sg4 = simgrid::s4u;

// Bytes of each flow, more than any sends in a second, and how many bytes a second one unit is.
static const double SIZE = 1e12, UNIT = 1e6;

struct Flow {
  sg4::Host *from, *to;
};

static void measure(const std::vector<Flow>& flows) {
  std::vector<sg4::CommPtr> comms;
  for (const Flow& flow : flows) {
    sg4::CommPtr comm = sg4::Comm::sendto_init();
    comm->set_payload_size(SIZE);
    comm->set_source(flow.from)->set_destination(flow.to); // which starts it
    comms.push_back(comm);
  }
  sg4::this_actor::sleep_for(1);
  for (const sg4::CommPtr& comm : comms)
    std::printf("%.17g\n", (SIZE - comm->get_remaining()) / UNIT);
  std::fflush(stdout);
  for (const sg4::CommPtr& comm : comms)
    comm->cancel();
}

int main(int argc, char* argv[]) {
  sg4::Engine engine(&argc, argv);
  for (const char* option : {"network/model:CM02", "network/optim:Full", "network/bandwidth-factor:1", "network/latency-factor:1",
                             "network/weight-S:0", "network/crosstraffic:0", "network/TCP-gamma:0", "maxmin/precision:1e-13",
                             "surf/precision:1e-13"})
    sg4::Engine::set_config(option);
  sg4::NetZone* zone = sg4::create_full_zone("zone");
  std::vector<Flow> all;
  int networks = 0;
  std::cin >> networks;
  for (int network = 0; network < networks; network++) {
    int links = 0, flows = 0;
    std::cin >> links >> flows;
    const std::string name = std::to_string(network) + "-";
    std::vector<const sg4::Link*> there;
    for (int link = 0; link < links; link++) {
      double capacity = 0;
      std::cin >> capacity;
      there.push_back(zone->create_link(name + std::to_string(link), capacity * UNIT)->set_latency(0)->seal());
    }
    for (int flow = 0; flow < flows; flow++) {
      double demand = 0;
      int count = 0;
      std::cin >> demand >> count;
      const std::string end = name + std::to_string(flow);
      // A flow that asks for so much has a link of its own that carries no more.
      std::vector<sg4::LinkInRoute> hops;
      hops.emplace_back(zone->create_link("own" + end, demand * UNIT)->set_latency(0)->seal());
      for (int place = 0; place < count; place++) {
        int link = 0;
        std::cin >> link;
        hops.emplace_back(there[link]);
      }
      sg4::Host* from = zone->create_host("from" + end, 1)->seal();
      sg4::Host* to = zone->create_host("to" + end, 1)->seal();
      zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, hops, false);
      all.push_back({from, to});
    }
  }
  if (!std::cin)
    return 1;
  zone->seal();
  sg4::Actor::create("measure", all.front().from, measure, all);
  engine.run();
  return 0;
}
