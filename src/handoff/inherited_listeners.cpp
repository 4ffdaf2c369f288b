// InheritedListeners: takes the descriptors of LISTEN_FDS, by name or by address.
#include <tambour/process/inherited_listeners.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <utility>

#include "base/failure.h"
#include "base/parse_number.h"
#include "handoff/passed_tickets.h"
#include "handoff/ready_pipe.h"
#include "process/launch.h"

namespace tambour {
namespace {

using detail::handoff::first_passed;

Result<long> number_in(const char* text) noexcept {
  return detail::base::parse_number<long>(text != nullptr ? text : "");
}

Result<Endpoint> endpoint_of(int fd) noexcept {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  if (::getsockname(fd, place, &size) != 0) return detail::base::failure(errno);
  return Endpoint::from(place, size);
}

/// Sets close-on-exec on all inherited descriptors, so that no child inherits them. If one is not
/// open, the function fails with EBADF but still sets the flag on those after it. The time depends
/// on the number of open descriptors, not on the number that the environment names.
Result<> set_close_on_exec(int count) noexcept {
  const int end = first_passed + count;
  for (int fd = first_passed; fd < end; ++fd) {
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0) continue;
    const Error error = system_error(errno);
    detail::process::set_close_on_exec(unsigned(fd), unsigned(end - 1));
    return std::unexpected(error);
  }
  return {};
}

/// Parses LISTEN_FDNAMES: names are separated by colons. Fewer names than descriptors are no error.
std::string next_name(std::string_view& names) {
  const std::size_t end = names.find(':');
  std::string name(names.substr(0, end));
  names.remove_prefix(end == std::string_view::npos ? names.size() : end + 1);
  return name;
}

}  // namespace

Result<InheritedListeners> InheritedListeners::from_environment() {
  const char* const process = std::getenv("LISTEN_PID");
  const char* const count = std::getenv("LISTEN_FDS");
  const char* const given_names = std::getenv("LISTEN_FDNAMES");
  const auto for_process = number_in(process);
  const auto listeners = number_in(count);
  const std::string all_names = given_names != nullptr ? given_names : "";
  const bool any = process != nullptr && count != nullptr;
  for (const char* variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(variable);

  InheritedListeners inherited;
  if (!any) return inherited;
  if (!for_process || !listeners || *listeners < 0 || *listeners > INT_MAX - first_passed)
    return detail::base::failure(EINVAL);
  // Meant for a parent process, which has passed on its environment.
  if (*for_process != ::getpid()) return inherited;
  detail::handoff::keep_ready_pipe(int(*listeners));
  if (auto tickets = detail::handoff::PassedTickets::take(int(*listeners)); !tickets.empty())
    inherited.tickets_ = std::make_shared<const detail::handoff::PassedTickets>(std::move(tickets));
  if (auto opened = set_close_on_exec(int(*listeners)); !opened)
    return std::unexpected(opened.error());
  std::string_view names = all_names;
  for (int fd = first_passed; fd < first_passed + int(*listeners); ++fd)
    inherited.listeners_.push_back({UniqueFd(fd), next_name(names)});
  return inherited;
}

UniqueFd InheritedListeners::take_at(std::size_t index) {
  UniqueFd taken = std::move(listeners_[index].fd);
  listeners_.erase(listeners_.begin() + std::ptrdiff_t(index));
  return taken;
}

UniqueFd InheritedListeners::take(std::string_view name) {
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    if (listeners_[i].name == name) return take_at(i);
  }
  return {};
}

std::vector<UniqueFd> InheritedListeners::take_all(std::string_view name) {
  std::vector<UniqueFd> all;
  for (UniqueFd next = take(name); next.is_open(); next = take(name))
    all.push_back(std::move(next));
  return all;
}

std::string InheritedListeners::ticket_keys(std::string_view name) const {
  return tickets_ != nullptr ? tickets_->keys_of(name) : std::string();
}

UniqueFd InheritedListeners::take(const Endpoint& endpoint) {
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    if (endpoint_of(listeners_[i].fd.get()) == endpoint) return take_at(i);
  }
  return {};
}

}  // namespace tambour
