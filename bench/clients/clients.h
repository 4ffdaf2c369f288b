// Operations of client libraries on a loop: the processor time of the process that has the client.
//
// A program starts the server of the client on another processor: redis-server, postgres, mariadbd,
// mosquitto or nginx. An operation is a GET of Redis for 100 bytes, `select 1` in PostgreSQL or
// MariaDB, an acknowledged message of 100 bytes with MQTT, or a download of 100 bytes with libcurl.
// A number of operations is in flight: commands and messages on one connection, connections to
// databases, and transfers of libcurl, which keeps its connections.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/program.h"

namespace bench {

enum class Client { redis, postgresql, mariadb, mosquitto, curl };

/// What a subject connects to.
struct ClientSetup {
  /// The path of a Unix socket, the settings of a connection to PostgreSQL, or a URL.
  std::string server;
  int in_flight;
};

/// The operations of one measurement.
class Operations {
 public:
  explicit Operations(int count) : count_(count) {}

  /// Returns whether another operation is to be begun.
  bool begin() { return begun_ < count_ && ++begun_ > 0; }
  /// An operation has ended. Returns whether it was the last one.
  bool end() { return ++ended_ == count_; }
  bool is_finished() const { return ended_ == count_; }

 private:
  int count_;
  int begun_ = 0;
  int ended_ = 0;
};

/// A client of a subject, with its connections, which it keeps: connecting is not measured.
class ClientSession {
 public:
  ClientSession() = default;
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;
  virtual ~ClientSession() = default;

  /// Performs all operations and verifies each result.
  virtual void run(Operations& all) = 0;
};

/// Connects. libcurl connects in the first run().
using OpenClient = std::function<std::unique_ptr<ClientSession>(const ClientSetup&)>;

int run_clients(int argc, char** argv, const SubjectInfo& info,
                const std::map<Client, OpenClient>& clients);

/// The text that servers have.
constexpr int value_bytes = 100;

/// A CURLOPT_WRITEFUNCTION.
inline std::size_t count_bytes(const char* /*bytes*/, std::size_t size, std::size_t count,
                               std::size_t* received) {
  *received += size * count;
  return size * count;
}

}  // namespace bench
