// The server of a client: a process on another processor.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "clients/clients.h"
#include "common/temporary_folder.h"

namespace bench {

class ServerProgram {
 public:
  /// Starts the server and returns when it accepts connections.
  explicit ServerProgram(Client client);
  /// Kills it.
  ~ServerProgram();
  ServerProgram(const ServerProgram&) = delete;
  ServerProgram& operator=(const ServerProgram&) = delete;

  /// As Operations::server().
  const std::string& address() const { return address_; }

 private:
  void start_redis();
  void start_postgres();
  void start_mariadbd();
  void start_mosquitto();
  void start_nginx();
  std::string log() const { return folder_.path() + "/log"; }

  TemporaryFolder folder_;
  pid_t process_ = -1;
  std::string address_;
};

}  // namespace bench
