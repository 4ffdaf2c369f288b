// Zero-downtime restarts: listeners inherited from systemd or from the old process, and the
// hand-off of listeners to a new process.
//
// The protocol is systemd's socket activation, sd_listen_fds(3): file descriptors from 3 on, and
// LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES in the environment. A socket stays open as long as any
// process has it open, so no connection is refused during the hand-off: it waits in the backlog.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/stream_server.h>
#include <tambour/task/task.h>

namespace tambour::detail::handoff {
class PassedTickets;
}  // namespace tambour::detail::handoff

#pragma GCC visibility push(default)

namespace tambour {

class StreamServerGroupBase;

/// The inherited file descriptors. The destructor closes those that were not taken.
class InheritedListeners {
 public:
  InheritedListeners() = default;

  /// Reads the environment and removes the variables from it, so that child processes do not use
  /// them. Call it at the start of main(), while the process has a single thread. Returns an empty
  /// object if there are no listeners. Fails with EINVAL if the environment is malformed, and with
  /// EBADF if a file descriptor is not open; then none is closed. Sets close-on-exec on all of them
  /// and on the pipe of notify_ready(), and removes the variables of that pipe and of the ticket
  /// keys, which it reads.
  [[nodiscard]] static Result<InheritedListeners> from_environment();

  [[nodiscard]] std::size_t size() const noexcept { return listeners_.size(); }
  [[nodiscard]] bool empty() const noexcept { return listeners_.empty(); }

  /// Returns the first listener with this name (FileDescriptorName= in systemd.socket(5)) or this
  /// address. The caller owns it and passes it to StreamServer::adopt(). Returns a UniqueFd that is
  /// not open if there is none left.
  [[nodiscard]] UniqueFd take(std::string_view name);
  [[nodiscard]] UniqueFd take(const Endpoint& endpoint);

  /// Returns all listeners with this name, in their order: those of a group, for
  /// StreamServerGroup::adopt().
  [[nodiscard]] std::vector<UniqueFd> take_all(std::string_view name);

  /// The keys of session tickets of the server with this name in the former process, for
  /// tls::ServerOptions::inherited_ticket_keys: its clients then resume their sessions. Empty if it
  /// used no TLS, had a ticket_secret, or there is no former process. Secret.
  [[nodiscard]] std::string ticket_keys(std::string_view name) const;

 private:
  struct Listener {
    UniqueFd fd;
    std::string name;
  };
  [[nodiscard]] UniqueFd take_at(std::size_t index);

  std::vector<Listener> listeners_;
  std::shared_ptr<const detail::handoff::PassedTickets> tickets_;  ///< Null if there are none.
};

/// A listener, or all listeners of a group, for the new process, with the name by which it takes
/// them. The name must not contain a colon. The server must not be moved or destroyed before
/// start_new_process() has finished.
struct PassedListener {
  std::variant<StreamServerBase*, StreamServerGroupBase*> server;
  std::string name;
};

/// What the next process of a zero-downtime restart gets.
struct NewProcessOptions {
  /// argv; the first element is the path of the program. Empty: the current program, without
  /// arguments.
  std::vector<std::string> arguments{};
  /// The time limit for the new process to call notify_ready(). 0: no limit.
  Duration ready_timeout = std::chrono::seconds(30);
};

/// Starts the new process with copies of the listeners, waits until it has called
/// notify_ready(), and returns its process id. The new process inherits the environment and the
/// standard streams, but no other file descriptors and no blocked signals. Afterwards, shut_down()
/// the servers, which then do not remove Unix paths. The caller must wait for the new process;
/// until start_new_process() has finished, no `any_child` reports it.
///
/// On failure nothing has changed and this process keeps serving. Fails with EINVAL for a stopped
/// listener or an invalid name; EMFILE; the errors of execve(2); ECHILD if the process ended, or
/// closed its file descriptors, before notify_ready(); ETIMEDOUT; ECANCELED if the task was
/// asked to stop. The new process is then killed, and the loop, whose run() does not return before
/// that, reaps it. Define the list as a named variable first: GCC 12 does not compile nested braces
/// in a co_await expression.
[[nodiscard]] Task<Result<pid_t>> start_new_process(std::vector<PassedListener> listeners,
                                                    NewProcessOptions options = {});

/// Reports to the old process that this process serves. Call it once the servers accept. No effect
/// if there is no old process, if it has ended, or if TAMBOUR_READY_FD does not name the write end
/// of a pipe. Call from_environment() first: otherwise a child process could inherit the pipe and
/// report in place of this process.
void notify_ready() noexcept;

}  // namespace tambour

#pragma GCC visibility pop
