// A small service under test: lines are answered by the same lines, turned round.
//
// Written as a careful user would write it on watchers and timers, over a simulated host. A canary,
// a fault that is planted on request, shows that the simulator finds what it is there to find.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include <tambour/tambour.h>

namespace tambour::test {

enum class Canary : std::uint8_t {
  none,
  forgets_short_write,  ///< What a short write has left is dropped where an answer is behind it.
  dies_of_early_reset,  ///< A connection that was reset before its first byte stops the service.
};

class LineServer {
 public:
  LineServer(EventLoop& loop, SimulatedHost& host, std::uint16_t port, Canary canary);

  void close();
  [[nodiscard]] std::size_t connections() const noexcept { return connections_.size(); }

 private:
  class Connection;

  void accept_all();

  EventLoop& loop_;
  SimulatedHost& host_;
  Canary canary_;
  int fd_ = -1;
  std::map<int, std::shared_ptr<Connection>> connections_;
  FdWatcher watcher_;
  Timer try_again_;
};

class LineClient {
 public:
  /// Wants `total` answers, and tells the simulation of each that is wrong.
  LineClient(Simulation& simulation, EventLoop& loop, SimulatedHost& host, sockaddr_in server,
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

  Simulation& simulation_;
  SimulatedHost& host_;
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
  Timer patience_;  ///< With a connection that is opening, or that owes an answer.
};

}  // namespace tambour::test
