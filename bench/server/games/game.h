// What clients play with a server.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <vector>

#include "common/program.h"
#include "server/process.h"
#include "server/server.h"

namespace bench {

class Game {
 public:
  virtual ~Game() = default;
  virtual const char* name() const = 0;
  virtual const char* about() const = 0;
  virtual void add_options(CLI::App& app) = 0;
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
inline void add_connections(CLI::App& app, int& connections) {
  app.add_option("--connections", connections, "connections")
      ->required()
      ->check(CLI::Range(1, 1'000'000));
}
inline void add_size(CLI::App& app, int& size) {
  app.add_option("--size", size, "bytes of a message")->required()->check(CLI::Range(1, 1 << 28));
}
inline void add_milliseconds(CLI::App& app, int& milliseconds) {
  app.add_option("--milliseconds", milliseconds, "length of a measurement")
      ->required()
      ->check(CLI::Range(10, 50'000));
}

}  // namespace bench
