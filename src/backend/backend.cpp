// Selects and opens the backend of a loop.

#include "backend/backend.h"

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <optional>

#include "backend/epoll.h"
#include "backend/io_uring/uring.h"
#include "backend/poll.h"
#include "backend/readiness.h"
#include "backend/select.h"
#include "base/failure.h"
#include "base/system_call.h"

namespace tambour::detail::backend {
namespace {

std::optional<BackendKind> kind_named(std::string_view name) noexcept {
  constexpr std::pair<std::string_view, BackendKind> names[] = {
      {"auto", BackendKind::automatic},    {"epoll", BackendKind::epoll},
      {"io_uring", BackendKind::io_uring}, {"poll", BackendKind::poll},
      {"select", BackendKind::select},
  };
  for (const auto& [known, kind] : names) {
    if (name == known) return kind;
  }
  return std::nullopt;
}

/// Returns the value of TAMBOUR_BACKEND if the options leave the choice to it; null if it is empty
/// or not set.
const char* name_in_environment(const LoopOptions& options) noexcept {
  if (options.backend != BackendKind::automatic || options.simulated_host != nullptr)
    return nullptr;
  const char* const name = std::getenv("TAMBOUR_BACKEND");
  return name != nullptr && *name != '\0' ? name : nullptr;
}

const char* reason_for(const Error& error) noexcept {
  switch (error.value()) {
    case EPERM:
    case EACCES:
      return "io_uring: forbidden by a seccomp filter or sysctl kernel.io_uring_disabled (EPERM)";
    case ENOSYS:
      return "io_uring: not in this kernel (ENOSYS)";
    case ENOMEM:
      return "io_uring: RLIMIT_MEMLOCK is too small for a ring (ENOMEM)";
    case EOPNOTSUPP:
    case EINVAL:
      return "io_uring: this kernel is too old (Linux 5.13 or later is required)";
    default:
      return "io_uring: the kernel did not create a ring";
  }
}

Result<std::unique_ptr<Backend>> open_uring_or_epoll(const LoopOptions& options) {
  auto ring = Uring::open(options);
  if (ring) return ring;
  auto epoll = Readiness<Epoll>::open(options);
  if (epoll) (*epoll)->set_fell_back(reason_for(ring.error()));
  return epoll;
}

}  // namespace

void Backend::pause(std::int64_t ns) noexcept {
  timespec rest = base::to_timespec(ns);
  base::uninterrupted(base::Call::nanosleep, ::nanosleep, &rest, &rest);
}

std::uint64_t Backend::random() noexcept {
  // The seed differs between loops and between runs.
  if (random_state_ == 0)
    random_state_ = std::uint64_t(base::wall_ns()) ^ reinterpret_cast<std::uintptr_t>(this);
  // SplitMix64.
  std::uint64_t mixed = random_state_ += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

const char* unknown_backend(const LoopOptions& options) noexcept {
  const char* const name = name_in_environment(options);
  return name != nullptr && !kind_named(name) ? name : nullptr;
}

Result<std::unique_ptr<Backend>> open_backend(const LoopOptions& options) {
  auto backend = open_backend_without_wake_up(options);
  if (!backend) return backend;
  if (auto opened = (*backend)->open_wake_up(); !opened) return std::unexpected(opened.error());
  (*backend)->open_wait_timer();
  return backend;
}

Result<std::unique_ptr<Backend>> open_backend_without_wake_up(const LoopOptions& options) {
  BackendKind kind = options.backend;
  if (kind == BackendKind::automatic && options.simulated_host != nullptr)
    kind = BackendKind::simulated;
  if (const char* const name = name_in_environment(options)) {
    const auto named = kind_named(name);
    if (!named) return base::failure(EINVAL);
    kind = *named;
  }
  switch (kind) {
    case BackendKind::io_uring:
      return open_uring_or_epoll(options);
    case BackendKind::poll:
      return Readiness<Poll>::open(options);
    case BackendKind::select:
      return Readiness<Select>::open(options);
    case BackendKind::simulated:
      if (options.simulated_host == nullptr) return base::failure(EINVAL);
      return options.simulated_host->open_backend();
    case BackendKind::automatic:
    case BackendKind::epoll:
      break;
  }
  return Readiness<Epoll>::open(options);
}

}  // namespace tambour::detail::backend
