// Starts the process that takes over the listeners of this one.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <coroutine>
#include <utility>
#include <variant>

#include <tambour/loop/readiness.h>
#include <tambour/net/server_group.h>
#include <tambour/process/inherited_listeners.h>
#include <tambour/process/process.h>
#include <tambour/task/combinators.h>
#include <tambour/task/sleep.h>

#include "base/broken_pipe.h"
#include "base/failure.h"
#include "handoff/passed_tickets.h"
#include "handoff/ready_pipe.h"
#include "task/time_limit.h"
#include "tls_contract/context_state.h"

namespace tambour {
namespace {

using detail::handoff::first_passed;
using detail::handoff::ready_variable;

/// The arguments for starting the new process.
struct Preparation {
  ProcessOptions options;
  /// Duplicates of a group's listeners, because other threads may close the originals.
  std::vector<UniqueFd> copies;
  UniqueFd tickets;
};

bool is_ours(std::string_view variable) noexcept {
  for (const std::string_view name : {"LISTEN_PID=", "LISTEN_FDS=", "LISTEN_FDNAMES=",
                                      "TAMBOUR_READY_FD=", "TAMBOUR_TICKETS_FD="}) {
    if (variable.starts_with(name)) return true;
  }
  return false;
}

/// Returns the listeners of one server or group; empty if it has stopped.
Result<std::vector<int>> descriptors_of(const PassedListener& passed, Preparation& preparation) {
  if (auto* const* server = std::get_if<StreamServerBase*>(&passed.server)) {
    const int fd = (*server)->fd();
    return fd < 0 ? std::vector<int>() : std::vector{fd};
  }
  auto copies = std::get<StreamServerGroupBase*>(passed.server)->copy_listeners();
  if (!copies) return std::unexpected(copies.error());
  std::vector<int> fds;
  for (UniqueFd& copy : *copies) {
    fds.push_back(copy.get());
    preparation.copies.push_back(std::move(copy));
  }
  return fds;
}

/// Returns a file with the ticket keys of the servers; not open if none of them has any.
Result<UniqueFd> save_tickets(const std::vector<PassedListener>& listeners) {
  detail::handoff::PassedTickets tickets;
  for (const PassedListener& passed : listeners) {
    const tls::ServerContext& context =
        std::visit([](const auto* server) -> const auto& { return server->tls(); }, passed.server);
    if (!context) continue;
    std::string keys = tls::detail::ContextAccess::state(context)->save_ticket_keys();
    if (!keys.empty()) tickets.add(passed.name, std::move(keys));
  }
  if (tickets.empty()) return UniqueFd();
  return tickets.write();
}

Result<Preparation> prepare(const std::vector<PassedListener>& listeners,
                            std::vector<std::string> arguments, int ready) {
  Preparation preparation;
  ProcessOptions& options = preparation.options;
  std::string names;
  int next = first_passed;
  for (const PassedListener& passed : listeners) {
    const auto fds = descriptors_of(passed, preparation);
    if (!fds) return std::unexpected(fds.error());
    if (fds->empty() || passed.name.contains(':')) return detail::base::failure(EINVAL);
    for (const int fd : *fds) {
      if (next > first_passed) names += ':';
      names += passed.name;
      options.descriptors.push_back({.fd = fd, .as = next++});
    }
  }
  options.arguments = std::move(arguments);
  options.environment = current_environment();
  std::erase_if(*options.environment, is_ours);
  const auto set = [&options](const char* name, const std::string& value) {
    options.environment->emplace_back(name).append("=").append(value);
  };
  set("LISTEN_FDS", std::to_string(next - first_passed));
  set("LISTEN_FDNAMES", names);
  set(ready_variable, std::to_string(next));
  options.pid_variable = "LISTEN_PID";
  options.descriptors.push_back({.fd = ready, .as = next});
  auto tickets = save_tickets(listeners);
  if (!tickets) return std::unexpected(tickets.error());
  if (tickets->is_open()) {
    set(detail::handoff::tickets_variable, std::to_string(++next));
    options.descriptors.push_back({.fd = tickets->get(), .as = next});
    preparation.tickets = std::move(*tickets);
  }
  options.keep_ignored_signals = true;
  return preparation;
}

/// Awaitable: returns the loop of the awaiting task.
class CurrentLoop {
 public:
  [[nodiscard]] static bool await_ready() noexcept { return false; }
  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
    loop_ = awaiting.promise().context().loop;
    return false;
  }
  [[nodiscard]] EventLoop& await_resume() const noexcept { return *loop_; }

 private:
  EventLoop* loop_ = nullptr;
};

/// Waits until the new process has written a byte.
Task<Result<>> wait_until_ready(int fd) {
  const auto readable = co_await wait_ready(fd, Events::read);
  if (!readable) co_return std::unexpected(readable.error());
  char byte = 0;
  // EOF: the new process has exited or has closed the pipe.
  if (::read(fd, &byte, 1) != 1) co_return detail::base::failure(ECHILD);
  co_return Result<>();
}

}  // namespace

Task<Result<pid_t>> start_new_process(std::vector<PassedListener> listeners,
                                      NewProcessOptions options) {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC | O_NONBLOCK) != 0) co_return detail::base::failure(errno);
  const UniqueFd ready_read_end(fds[0]);
  UniqueFd ready_write_end(fds[1]);
  if (options.arguments.empty()) options.arguments.emplace_back("/proc/self/exe");
  auto prepared = prepare(listeners, std::move(options.arguments), ready_write_end.get());
  if (!prepared) co_return std::unexpected(prepared.error());
  EventLoop& loop = co_await CurrentLoop();
  auto spawned = Process::spawn(loop, prepared->options);
  if (!spawned) co_return std::unexpected(spawned.error());
  ready_write_end.reset();
  prepared->copies.clear();
  prepared->tickets.reset();
  // Killed if the wait fails, and also if this task is destroyed while it waits.
  Process started = std::move(*spawned);
  if (const auto waited = co_await detail::task::within(options.ready_timeout,
                                                        wait_until_ready(ready_read_end.get()));
      !waited)
    co_return std::unexpected(waited.error());
  for (const PassedListener& passed : listeners)
    std::visit([](auto* server) { server->keep_path(); }, passed.server);
  co_return started.release();
}

void notify_ready() noexcept {
  const UniqueFd pipe = detail::handoff::take_ready_pipe();
  if (!pipe.is_open()) return;
  // If the previous process has exited, write(2) fails with EPIPE.
  detail::base::without_sigpipe(1, ::write, pipe.get(), "1", 1);
}

}  // namespace tambour
