// The server of a client library, started by a test: redis-server, postgres and others.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tambour::test {

/// Owns a child process, which ends with this object, and with the test program.
class ServerProcess {
 public:
  enum class User { same, not_root };  ///< not_root: postgres refuses to run as root.

  /// `output`: a file for what the server prints.
  ServerProcess(std::vector<std::string> command, const std::string& output,
                User user = User::same) {
    if (user == User::not_root && ::geteuid() == 0)
      command.insert(command.begin(), {"--reuid=nobody", "--regid=nogroup", "--clear-groups"});
    command.insert(command.begin(), {"setpriv", "--pdeathsig=KILL"});
    std::vector<char*> words;
    for (std::string& word : command) words.push_back(word.data());
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0644);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    EXPECT_EQ(::posix_spawnp(&pid_, words[0], &actions, nullptr, words.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ServerProcess(ServerProcess&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  ServerProcess& operator=(ServerProcess&&) = delete;
  ~ServerProcess() { end(SIGKILL); }

  /// Sends the signal, if it is not 0, and waits for the end of the process. Returns its status, as
  /// waitpid(2) does.
  int end(int signal) {
    int status = 0;
    if (pid_ == 0) return status;
    if (signal != 0) ::kill(pid_, signal);
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return status;
  }

 private:
  pid_t pid_ = 0;
};

/// A port of 127.0.0.1 that was free a moment ago.
inline int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

/// The path of a program, in PATH or in `folders`; empty if there is none.
inline std::string find_program(const std::string& name, std::string_view folders = {}) {
  const char* const path = std::getenv("PATH");
  const std::string all = std::string(path != nullptr ? path : "") + ":" + std::string(folders);
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find(':', begin), all.size());
    const std::string candidate = all.substr(begin, end - begin) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return {};
}

}  // namespace tambour::test
