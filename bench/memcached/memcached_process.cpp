#include "memcached/memcached_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

#include "common/network.h"
#include "common/program.h"

namespace bench {
namespace {

constexpr int timeout_ms = 10'000;

void pause_ms() {
  const timespec pause{0, 1'000'000};
  nanosleep(&pause, nullptr);
}

/// Undoes the pinning of the runner.
void use_all_processors() {
  cpu_set_t all;
  for (int i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &all);
  sched_setaffinity(0, sizeof all, &all);
}

[[noreturn]] void become_memcached(const MemcachedOptions& options, int port, int threads,
                                   int connections) {
  if (threads == 1) {
    move_to_pinned_processor();
  } else {
    use_all_processors();
  }
  if (options.libraries != nullptr) setenv("LD_LIBRARY_PATH", options.libraries, 1);
  // Standard output is reserved for the report.
  if (const int null = open("/dev/null", O_WRONLY | O_CLOEXEC); null >= 0)
    dup2(null, STDOUT_FILENO);
  const std::string port_word = std::to_string(port);
  const std::string threads_word = std::to_string(threads);
  const std::string connections_word = std::to_string(connections + 100);
  // memcached refuses to run as root unless it is told to.
  const char* const user = geteuid() == 0 ? "-uroot" : "-v";
  execlp("memcached", "memcached", "-l", "127.0.0.1", "-U", "0", "-p", port_word.c_str(), "-t",
         threads_word.c_str(), "-c", connections_word.c_str(), user, nullptr);
  fail_errno("memcached");
}

}  // namespace

MemcachedProcess::MemcachedProcess(const MemcachedOptions& options, int threads, int connections)
    : port_(free_port()) {
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) fail_errno("fork");
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    become_memcached(options, port_, threads, connections);
  }
  move_to_another_processor();
  wait_until_it_listens();
  check_libraries(options);
}

MemcachedProcess::~MemcachedProcess() {
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

void MemcachedProcess::wait_until_it_listens() {
  const sockaddr_in address = loopback(port_);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail_errno("socket");
  for (int waited = 0;; ++waited) {
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) break;
    if (waitpid(process_, nullptr, WNOHANG) != 0) fail("memcached has ended");
    if (waited == timeout_ms) fail("memcached does not listen");
    pause_ms();
  }
  constexpr std::string_view request = "version\r\n";
  if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) fail_errno("client: send");
  std::array<char, 128> answer;
  const ssize_t size = recv(fd, answer.data(), answer.size(), 0);
  constexpr std::string_view beginning = "VERSION ";
  const std::string_view text(answer.data(), size > 0 ? std::size_t(size) : 0);
  if (!text.starts_with(beginning)) fail("memcached does not say its version");
  version_ = text.substr(beginning.size(), text.find('\r') - beginning.size());
  close_with_reset(fd);
}

void MemcachedProcess::check_libraries(const MemcachedOptions& options) const {
  std::ifstream maps("/proc/" + std::to_string(process_) + "/maps");
  std::string line;
  bool found = false;
  bool ours = false;
  while (std::getline(maps, line)) {
    if (line.find("/libevent") == std::string::npos) continue;
    found = true;
    ours = options.libraries != nullptr && line.find(options.libraries) != std::string::npos;
    if (ours != (options.libraries != nullptr)) fail("memcached has loaded " + line);
  }
  if (!found) fail("memcached does not use libevent as a shared library");
}

}  // namespace bench
