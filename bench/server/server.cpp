// The command line: which game, and with what.
#include "server/server.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/options.h"
#include "common/processor.h"
#include "server/games/game.h"
#include "server/process.h"

namespace bench {
namespace {

void add_option(CLI::App& app, const GameOption& option) {
  CLI::Option* added = app.add_option(option.name, *option.value, option.help)->required();
  if (option.choices.empty()) {
    added->check(CLI::Range(option.low, option.high));
    return;
  }
  std::map<std::string, int> places;
  for (const std::string& word : option.choices) places.emplace(word, int(places.size()));
  added->transform(CLI::CheckedTransformer(places));
}

}  // namespace

int play_server(int argc, char** argv, Serve serve) {
  own_processor();
  std::vector<std::unique_ptr<Game>> games;
  games.push_back(make_throughput());
  games.push_back(make_latency());
  games.push_back(make_churn());
  games.push_back(make_idle());
  games.push_back(make_fanout());

  CLI::App app("A TCP server, and clients that play a game with it.");
  app.require_subcommand(1);
  int iterations = 1;
  for (auto& game : games) {
    CLI::App* words = app.add_subcommand(game->name(), game->about());
    for (const GameOption& option : game->options()) add_option(*words, option);
    add_iterations(*words, iterations);
  }
  parse_or_exit(app, argc, argv);
  const auto chosen =
      std::ranges::find_if(games, [&](auto& game) { return app.got_subcommand(game->name()); });

  Report report;
  About about;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    feed_watchdog();
    ServerProcess server(serve, (*chosen)->server());
    report.add((*chosen)->play(server));
    about = server.about();
  }
  report.print(about);
  return 0;
}

}  // namespace bench
