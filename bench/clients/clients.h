// Operations of client libraries on a loop: the processor time of the process that has the client.
//
// A program starts the server of the client on another processor: redis-server, postgres or nginx.
// An operation is a GET of Redis for 100 bytes, `select 1` in PostgreSQL, or a download of 100
// bytes with libcurl. A number of operations is in flight: commands on one connection of Redis,
// connections to PostgreSQL, and transfers of libcurl, which keeps its connections.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "common/program.h"

namespace bench {

enum class Client { redis, postgresql, curl };

/// The operations of one measurement.
class Operations {
 public:
  Operations(int count, int in_flight, std::string server)
      : count_(count), in_flight_(in_flight), server_(std::move(server)) {}

  int in_flight() const { return in_flight_; }
  /// The path of a Unix socket, the settings of a connection to PostgreSQL, or a URL.
  const std::string& server() const { return server_; }

  /// Returns whether another operation is to be begun.
  bool begin() { return begun_ < count_ && ++begun_ > 0; }
  /// An operation has ended. Returns whether it was the last one.
  bool end() { return ++ended_ == count_; }
  bool is_finished() const { return ended_ == count_; }

 private:
  int count_;
  int in_flight_;
  int begun_ = 0;
  int ended_ = 0;
  std::string server_;
};

/// A subject connects, performs all operations and disconnects. It verifies each result.
using RunClient = std::function<void(Operations&)>;

int run_clients(int argc, char** argv, const SubjectInfo& info,
                const std::map<Client, RunClient>& clients);

/// The text that servers have.
constexpr int value_bytes = 100;

/// A CURLOPT_WRITEFUNCTION.
inline std::size_t count_bytes(const char* /*bytes*/, std::size_t size, std::size_t count,
                               std::size_t* received) {
  *received += size * count;
  return size * count;
}

}  // namespace bench
