// The loops that are embedded in a loop, and the loop in which that loop is embedded.
#pragma once

#include <cstdint>

#include <tambour/base/result.h>
#include <tambour/events/embedded_loop.h>

#include "loop/service.h"

namespace tambour::detail::events {

class EmbeddedLoops final : public loop::Service {
 public:
  explicit EmbeddedLoops(loop::Core& core) noexcept : core_(core) {}

  Result<> add(EmbeddedLoop& embedded) noexcept;
  void remove(EmbeddedLoop& embedded) noexcept;
  static void moved(EmbeddedLoop& embedded) noexcept;

  /// Queues the loops that have work, and returns the time at which the next one will.
  std::int64_t before_wait() noexcept override;
  void expire(std::int64_t now_ns) noexcept override;
  void close() noexcept override;

 private:
  static EmbeddedLoop*& around(loop::Core& inner) noexcept;
  static bool contains(loop::Core& inner, loop::Core* outer) noexcept;
  void watch_descriptor(EmbeddedLoop& embedded) noexcept;

  loop::Core& core_;
  detail::Hlist<EmbeddedLoop> embedded_;
  EmbeddedLoop* around_ = nullptr;  ///< Embeds this loop in another one; null if none.
};

}  // namespace tambour::detail::events
