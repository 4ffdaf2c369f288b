// The program that takes over, started with the listeners of this one.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <variant>

#include <tambour/events.h>
#include <tambour/inherited_listeners.h>
#include <tambour/server_group.h>
#include <tambour/wait.h>
#include <tambour/when.h>

#include "net/ready_pipe.h"

namespace tambour {
namespace {

using net::first_passed;
using net::ready_variable;

/// What the child needs after fork(2), where it may not allocate: other threads of the parent may
/// have been inside the allocator.
struct Launch {
  std::vector<UniqueFd> copies;  ///< Of a group's listeners, which other threads may close.
  std::vector<int> fds;          ///< For descriptors 3, 4, ...: the listeners, and the pipe.
  std::vector<std::string> strings;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  char* process_id = nullptr;  ///< Where the digits of LISTEN_PID go.
};

bool is_ours(std::string_view variable) noexcept {
  for (const std::string_view name :
       {"LISTEN_PID=", "LISTEN_FDS=", "LISTEN_FDNAMES=", "TAMBOUR_READY_FD="}) {
    if (variable.starts_with(name)) return true;
  }
  return false;
}

/// The descriptors of one server or group: none where it has stopped.
Result<std::vector<int>> descriptors_of(const PassedListener& passed, Launch& launch) {
  if (auto* const* server = std::get_if<StreamServerBase*>(&passed.server)) {
    const int fd = (*server)->descriptor();
    return fd < 0 ? std::vector<int>() : std::vector{fd};
  }
  auto copies = std::get<ServerGroupBase*>(passed.server)->copy_listeners();
  if (!copies) return std::unexpected(copies.error());
  std::vector<int> fds;
  for (UniqueFd& copy : *copies) {
    fds.push_back(copy.get());
    launch.copies.push_back(std::move(copy));
  }
  return fds;
}

Result<Launch> prepare(const std::vector<PassedListener>& listeners,
                       const std::vector<std::string>& arguments, int ready) {
  Launch launch;
  std::string names;
  for (const PassedListener& passed : listeners) {
    const auto fds = descriptors_of(passed, launch);
    if (!fds) return std::unexpected(fds.error());
    if (fds->empty() || passed.name.contains(':')) return std::unexpected(system_error(EINVAL));
    for (const int fd : *fds) {
      if (!launch.fds.empty()) names += ':';
      names += passed.name;
      launch.fds.push_back(fd);
    }
  }
  const std::size_t count = launch.fds.size();
  launch.fds.push_back(ready);
  auto& strings = launch.strings;
  strings = arguments;
  const auto set = [&strings](const char* name, const std::string& value) {
    strings.emplace_back(name).append("=").append(value);
  };
  set("LISTEN_FDS", std::to_string(count));
  set("LISTEN_FDNAMES", names);
  set(ready_variable, std::to_string(first_passed + int(count)));
  set("LISTEN_PID", std::string(20, '\0'));
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!is_ours(*variable)) strings.emplace_back(*variable);
  }
  for (std::size_t i = 0; i < strings.size(); ++i)
    (i < arguments.size() ? launch.arguments : launch.environment).push_back(strings[i].data());
  launch.arguments.push_back(nullptr);
  launch.environment.push_back(nullptr);
  launch.process_id = strings[arguments.size() + 3].data() + std::strlen("LISTEN_PID=");
  return launch;
}

/// Digits by hand: what formats may allocate.
void write_number(char* place, long number) noexcept {
  std::array<char, 20> digits{};
  std::size_t count = 0;
  do {
    digits[count++] = char('0' + number % 10);
    number /= 10;
  } while (number > 0);
  while (count > 0) *place++ = digits[--count];
  *place = '\0';
}

/// Descriptors of other code, which may have left them open for its own children. Returns an errno
/// value.
int close_on_exec_from(int first) noexcept {
  if (::close_range(unsigned(first), ~0U, CLOSE_RANGE_CLOEXEC) == 0) return 0;
  // A kernel before 5.11, or a filter of system calls.
  const long end = ::sysconf(_SC_OPEN_MAX);
  if (end < 0) return errno;
  for (int fd = first; fd < end; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return 0;
}

/// In the child: only what is async-signal-safe. Returns the errno value of what failed.
int become(Launch& launch, int& report) noexcept {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int count = int(launch.fds.size());
  // Out of the way first: a number that is wanted may be that of another one to be passed.
  const int above = first_passed + count;
  const auto lift = [above](int& fd) {
    const int lifted = ::fcntl(fd, F_DUPFD_CLOEXEC, above);
    if (lifted >= 0) fd = lifted;
    return lifted >= 0;
  };
  if (!lift(report) || !std::ranges::all_of(launch.fds, lift)) return errno;
  for (int i = 0; i < count; ++i) {
    // The copy is not close-on-exec.
    if (::dup2(launch.fds[std::size_t(i)], first_passed + i) < 0) return errno;
  }
  if (const int error = close_on_exec_from(above); error != 0) return error;
  write_number(launch.process_id, ::getpid());
  ::execve(launch.arguments[0], launch.arguments.data(), launch.environment.data());
  return errno;
}

Result<std::pair<UniqueFd, UniqueFd>> open_pipe(int flags) noexcept {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC | flags) != 0) return std::unexpected(system_error(errno));
  return std::pair(UniqueFd(fds[0]), UniqueFd(fds[1]));
}

/// Returns once the child has become the program, or has failed to.
Result<pid_t> launch_child(Launch launch) {
  auto pipe = open_pipe(0);
  if (!pipe) return std::unexpected(pipe.error());
  auto& [outcome, reporting] = *pipe;
  const pid_t child = ::fork();
  if (child < 0) return std::unexpected(system_error(errno));
  if (child == 0) {
    int report = reporting.get();
    const int error = become(launch, report);
    static_cast<void>(!::write(report, &error, sizeof error));
    ::_exit(127);
  }
  reporting.reset(-1);
  int error = 0;
  ssize_t got;
  do {
    got = ::read(outcome.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return child;
  ::waitpid(child, nullptr, 0);
  return std::unexpected(system_error(error));
}

void end_child(pid_t child) noexcept {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

/// Until the child has written a byte.
Task<Result<>> wait_until_ready(int fd) {
  const auto readable = co_await ready(fd, Events::read);
  if (!readable) co_return std::unexpected(readable.error());
  char byte = 0;
  // The end of the pipe: nobody is left who could write.
  if (::read(fd, &byte, 1) != 1) co_return std::unexpected(system_error(ECHILD));
  co_return Result<>();
}

}  // namespace

Task<Result<pid_t>> start_successor(std::vector<PassedListener> listeners,
                                    SuccessorOptions options) {
  auto pipe = open_pipe(O_NONBLOCK);
  if (!pipe) co_return std::unexpected(pipe.error());
  auto& [says_ready, to_say_ready] = *pipe;
  if (options.arguments.empty()) options.arguments.emplace_back("/proc/self/exe");
  auto launch = prepare(listeners, options.arguments, to_say_ready.get());
  if (!launch) co_return std::unexpected(launch.error());
  const auto child = launch_child(std::move(*launch));
  if (!child) co_return std::unexpected(child.error());
  to_say_ready.reset(-1);
  // Also where this task is destroyed while it waits.
  struct Started {
    pid_t id;
    bool serves = false;
    ~Started() {
      if (!serves) end_child(id);
    }
  } started{*child};
  if (const auto waited = co_await timeout(options.patience, wait_until_ready(says_ready.get()));
      !waited)
    co_return std::unexpected(waited.error());
  started.serves = true;
  for (const PassedListener& passed : listeners)
    std::visit([](auto* server) { server->leave_name(); }, passed.server);
  co_return started.id;
}

void tell_predecessor() noexcept {
  const UniqueFd pipe = net::take_ready_pipe();
  if (!pipe.is_open()) return;
  // SIGPIPE, where the predecessor has gone, would end this program.
  sigset_t broken;
  sigset_t before;
  ::sigemptyset(&broken);
  ::sigaddset(&broken, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &broken, &before);
  if (::write(pipe.get(), "1", 1) < 0 && errno == EPIPE) {
    const timespec at_once{};
    ::sigtimedwait(&broken, nullptr, &at_once);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace tambour
