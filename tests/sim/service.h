// A small service under test: it replies to each line with the reversed line.
//
// Written as a careful user would write it, with watchers and timers on a simulated host. A seeded
// bug (mutant), enabled on request, shows that the simulator finds what it should.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include <tambour/tambour.h>

namespace tambour::test {

enum class Mutant : std::uint8_t {
  none,
  /// The rest of a short write is dropped if another answer is queued behind it.
  forgets_short_write,
  dies_of_early_reset,  ///< A connection reset before its first byte stops the service.
};

class LineServer {
 public:
  LineServer(EventLoop& loop, sim::Host& host, std::uint16_t port, Mutant mutant);

  void close();
  [[nodiscard]] std::size_t connections() const noexcept { return connections_.size(); }

 private:
  class Connection;

  void accept_all();

  EventLoop& loop_;
  sim::Host& host_;
  Mutant mutant_;
  int fd_ = -1;
  std::map<int, std::shared_ptr<Connection>> connections_;
  FdWatcher watcher_;
  Timer try_again_;
};

class LineClient {
 public:
  /// Requests `total` answers, and reports each wrong one to the simulation.
  LineClient(sim::Simulation& simulation, EventLoop& loop, sim::Host& host, sockaddr_in server,
             int total);

  [[nodiscard]] bool done() const noexcept { return answered_ == total_; }
  [[nodiscard]] int connections() const noexcept { return connections_; }

 private:
  void open();
  void ask();
  void lose();
  void on_events(Events events);
  bool write();
  bool read();
  void take_answers();

  sim::Simulation& simulation_;
  sim::Host& host_;
  sockaddr_in server_;
  int total_;
  int answered_ = 0;
  int asked_ = 0;
  int connections_ = 0;
  int fd_ = -1;
  std::string in_;
  std::string out_;
  std::deque<std::string> expected_;
  std::deque<std::string> questions_;
  FdWatcher watcher_;
  Timer reopen_;
  Timer think_;
  Timer patience_;  ///< Runs while a connection is being opened or an answer is outstanding.
};

}  // namespace tambour::test
