// Listeners that were open before the program began: from systemd, or from the program that this
// one takes over from. And the other side: starting a successor.
//
// The protocol is that of systemd's socket activation, sd_listen_fds(3): descriptors from 3 on, and
// LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES in the environment. A socket lives as long as somebody
// has it open, so that between two programs no connection is refused: it waits in the backlog.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tambour/clock.h>
#include <tambour/endpoint.h>
#include <tambour/result.h>
#include <tambour/stream_server.h>
#include <tambour/task.h>
#include <tambour/unique_fd.h>

namespace tambour {

class ServerGroupBase;

/// The descriptors that were handed to this program. Those that nobody takes are closed with it.
class InheritedListeners {
 public:
  InheritedListeners() = default;

  /// Reads the environment, and takes those variables out of it, so that no child believes that
  /// they are meant for it; for the start of main(), while there is one thread. None, where there
  /// are none. EINVAL if the environment is malformed; EBADF if a descriptor is not open, in which
  /// case none is closed. All of them are close-on-exec from then on, and so is the pipe of
  /// tell_predecessor(), whose variable is removed too.
  static Result<InheritedListeners> take_over();

  [[nodiscard]] std::size_t size() const noexcept { return listeners_.size(); }
  [[nodiscard]] bool empty() const noexcept { return listeners_.empty(); }

  /// The first that has this name (FileDescriptorName= in systemd.socket(5)), or this address; it
  /// is the caller's, for StreamServer::adopt(). Not open: there is none, or no further one.
  [[nodiscard]] UniqueFd take(std::string_view name);
  [[nodiscard]] UniqueFd take(const Endpoint& endpoint);

  /// All of this name, in their order: those of a group, for StreamServerGroup::adopt().
  [[nodiscard]] std::vector<UniqueFd> take_all(std::string_view name);

 private:
  struct Listener {
    UniqueFd fd;
    std::string name;
  };
  [[nodiscard]] UniqueFd take_at(std::size_t index);

  std::vector<Listener> listeners_;
};

/// A listener for the next program, or all of a group, by the name that it will ask for. The name
/// holds no colon. The server stays where it is until start_successor() has ended.
struct PassedListener {
  std::variant<StreamServerBase*, ServerGroupBase*> server;
  std::string name;
};

struct SuccessorOptions {
  /// argv; the first is the program's path. Empty: this program again, without any.
  std::vector<std::string> arguments{};
  /// How long it may take until it says that it serves.
  Duration patience = std::chrono::seconds(30);
};

/// Starts the program that takes over, with copies of the listeners, and waits until it has called
/// tell_predecessor(); gives its process id. The program gets this one's environment and standard
/// streams, and no other descriptor; no signal is blocked. After that, shut_down() the servers,
/// which leave Unix paths to their successor. The new process is the caller's to wait for; while
/// start_successor() waits, no `any_child` reports it.
///
/// If it fails, nothing has changed, and this program serves on: EINVAL for a listener that has
/// stopped, or a bad name; EMFILE; the errors of execve(2); ECHILD: the program ended, or closed
/// its descriptors, without tell_predecessor(); ETIMEDOUT and ECANCELED (the task was asked to
/// stop). The program is then killed, and the loop, which run() keeps going until then, reaps it.
/// Give the list a name first: GCC 12 takes no nested braces inside co_await.
Task<Result<pid_t>> start_successor(std::vector<PassedListener> listeners,
                                    SuccessorOptions options = {});

/// Reports to the program that has started this one that this one serves, once its servers accept.
/// No effect without a predecessor, or if TAMBOUR_READY_FD does not name the write end of a pipe.
/// Succeeds if the predecessor has ended. Call take_over() before: otherwise a program that this
/// one has started meanwhile could report in its place.
void tell_predecessor() noexcept;

}  // namespace tambour
