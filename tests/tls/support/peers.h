// Programs of the machine as peers, run as child processes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/temporary_folder.h"

namespace tambour::test {

/// A folder with ca.pem, cert.pem and key.pem of "localhost", and client.pem of "alice".
class TlsPeerTest : public testing::Test {
 protected:
  TlsPeerTest();

  [[nodiscard]] std::string path(const std::string& name) const {
    return folder.path() + "/" + name;
  }
  void write(const std::string& name, const std::string& text) const;
  [[nodiscard]] std::string read(const std::string& name) const;

  /// Serves `handler` while the shell command runs in the folder, with the port as $PORT. Returns
  /// the exit status of the command.
  int run_client(tls::ServerOptions options, std::function<Task<>(TcpStream)> handler,
                 const std::string& command);
  Process start(const std::string& command, Stdio output = Stdio::null());

  /// Reads a line, answers it and ends.
  static Task<> answer(TcpStream stream);

  TemporaryFolder folder;
  EventLoop loop;
  std::vector<Error> refused;
  bool starts_with_early_data = false;  ///< For run_client().
};

}  // namespace tambour::test
