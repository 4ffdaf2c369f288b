// The PostgreSQL server of a test program.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/server_process.h"
#include "support/temporary_folder.h"

namespace tambour::test {

/// One server for all tests of a program: initdb takes a second.
class PostgresServer {
 public:
  static PostgresServer& shared() {
    static PostgresServer server;
    return server;
  }
  [[nodiscard]] bool is_installed() const { return !postgres_.empty(); }
  /// For PQconnectdb().
  [[nodiscard]] std::string settings() const {
    return "host=" + folder_.path() + " user=test dbname=postgres";
  }
  void start() {
    process_.emplace(std::vector<std::string>{postgres_, "-D", folder_.path() + "/data", "-k",
                                              folder_.path(), "-c", "listen_addresses=", "-c",
                                              "fsync=off", "-c", "max_connections=150"},
                     folder_.path() + "/log", ServerProcess::User::not_root);
  }
  void stop() {
    process_->end(SIGQUIT);  // As a crash: connections are not told.
  }

 private:
  PostgresServer() {
    const std::string folders =
        "/usr/lib/postgresql/15/bin:/usr/lib/postgresql/16/bin:"
        "/usr/lib/postgresql/17/bin";
    postgres_ = find_program("postgres", folders);
    if (postgres_.empty()) return;
    ::chmod(folder_.path().c_str(), 0777);
    ServerProcess initdb({find_program("initdb", folders), "-D", folder_.path() + "/data", "-A",
                          "trust", "-U", "test", "--no-sync", "-E", "UTF8", "--locale=C"},
                         folder_.path() + "/initdb", ServerProcess::User::not_root);
    EXPECT_EQ(initdb.end(0), 0);
    start();
  }

  TemporaryFolder folder_;
  std::string postgres_;
  std::optional<ServerProcess> process_;
};

}  // namespace tambour::test
