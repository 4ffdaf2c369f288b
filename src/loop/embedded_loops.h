// The loops that run inside one loop, and the one that it runs inside.
#pragma once

#include <cstdint>

#include <tambour/embedded_loop.h>
#include <tambour/result.h>

namespace tambour::loop {

class Core;

class EmbeddedLoops {
 public:
  explicit EmbeddedLoops(Core& core) noexcept : core_(core) {}

  Result<> add(EmbeddedLoop& embedded) noexcept;
  void remove(EmbeddedLoop& embedded) noexcept;
  static void moved(EmbeddedLoop& embedded) noexcept;

  /// Queues the loops that have something to do, and says when the next one will.
  std::int64_t before_wait() noexcept;
  void expire(std::int64_t now_ns) noexcept;
  void abandon() noexcept;

 private:
  static EmbeddedLoop*& around(Core& inner) noexcept;
  static bool contains(Core& inner, Core* outer) noexcept;
  void watch_descriptor(EmbeddedLoop& embedded) noexcept;

  Core& core_;
  EmbeddedLoop* first_ = nullptr;
  EmbeddedLoop* around_ = nullptr;  ///< What embeds this loop in another.
};

}  // namespace tambour::loop
