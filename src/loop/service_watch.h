// A descriptor that a loop watches for itself, on behalf of handles that share it.
#pragma once

#include <tambour/callback.h>
#include <tambour/operation.h>
#include <tambour/result.h>

namespace tambour::loop {

class Core;

/// Runs before anything else that is due in its turn, so that the handles that it finds to be due
/// run in the same one, by their own priorities. Holds no reference to the loop. Not the owner of
/// the descriptor. Pinned.
class ServiceWatch final : public Operation {
 public:
  /// `readable` is called in each turn in which there is something to read.
  ServiceWatch(Core& core, Callback<void()> readable) noexcept;
  ServiceWatch(const ServiceWatch&) = delete;
  ServiceWatch& operator=(const ServiceWatch&) = delete;

  /// Watches `descriptor` in place of the former one. ERANGE where the backend cannot.
  Result<> start(int descriptor) noexcept;
  void stop() noexcept;

  /// Makes it readable in the next turn.
  void feed() noexcept;

 private:
  static void run(Ready& ready);

  Core& core_;
  Callback<void()> readable_;
};

/// True where the backend of the loop can watch such a number: select(2) ends at FD_SETSIZE.
bool can_watch(Core& core, int descriptor) noexcept;

}  // namespace tambour::loop
