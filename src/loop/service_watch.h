// A descriptor that the loop itself watches on behalf of handles that share it.
#pragma once

#include <tambour/base/callback.h>
#include <tambour/base/result.h>
#include <tambour/detail/operation.h>

namespace tambour::detail::loop {

class Core;

/// Runs before all other due items of its iteration, so that the handles it makes due run in the
/// same iteration, by their own priorities. Holds no reference to the loop and does not own the
/// descriptor. Cannot be moved.
class ServiceWatch final : public detail::Operation {
 public:
  /// `readable` is invoked in each iteration in which the descriptor is readable.
  ServiceWatch(Core& core, Callback<void()> readable) noexcept;
  ServiceWatch(const ServiceWatch&) = delete;
  ServiceWatch& operator=(const ServiceWatch&) = delete;

  /// Watches `descriptor` instead of the former one. Fails with ERANGE if the backend cannot watch
  /// it.
  Result<> start(int descriptor) noexcept;
  void stop() noexcept;

  /// Makes the watch due in the next iteration, as if the descriptor were readable.
  void feed() noexcept;

 private:
  static void run(detail::ReadyNode& ready);

  Core& core_;
  Callback<void()> readable_;
};

/// Returns true if the loop's backend can watch this descriptor: select(2) is limited to
/// FD_SETSIZE.
bool can_watch(Core& core, int descriptor) noexcept;

}  // namespace tambour::detail::loop
