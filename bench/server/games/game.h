// What clients play with a server.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "common/program.h"
#include "server/process.h"
#include "server/server.h"

namespace bench {

/// A number of the command line; with choices, the place of a word among them. All are required.
struct GameOption {
  const char* name;
  const char* help;
  int* value;
  int low = 1;
  int high = 1'000'000;
  std::vector<std::string> choices{};
};

class Game {
 public:
  virtual ~Game() = default;
  virtual const char* name() const = 0;
  virtual const char* about() const = 0;
  virtual std::vector<GameOption> options() = 0;
  /// What is played with; the port is left open.
  virtual ServerOptions server() const = 0;
  virtual std::vector<Figure> play(ServerProcess& server) = 0;
};

std::unique_ptr<Game> make_throughput();
std::unique_ptr<Game> make_latency();
std::unique_ptr<Game> make_churn();
std::unique_ptr<Game> make_idle();
std::unique_ptr<Game> make_fanout();

/// What several games ask for.
inline GameOption ask_connections(int& value) { return {"--connections", "connections", &value}; }
inline GameOption ask_size(int& value) {
  return {"--size", "bytes of a message", &value, 1, 1 << 28};
}
// A measurement and its warm-up, twice in idle, are over before the watchdog ends the program.
inline GameOption ask_milliseconds(int& value) {
  return {"--milliseconds", "length of a measurement", &value, 10, 20'000};
}

}  // namespace bench
