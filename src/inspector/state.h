// What the pages of an inspector show.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <tambour/inspector/inspector.h>

#include "inspector/observed_loops.h"

namespace tambour::inspector {

[[nodiscard]] inline bool is_loopback(const Endpoint& endpoint) noexcept {
  const std::optional<IpAddress> address = endpoint.ip_address();
  return address && address->is_loopback();
}

/// Ownership: shared by the inspector and its routes. Thread: any.
class Inspector::State {
 public:
  explicit State(InspectorOptions inspector_options) : options(std::move(inspector_options)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() = default;

  [[nodiscard]] ObservedLoops loops() const {
    const std::lock_guard lock(mutex_);
    return loops_;
  }
  void add(std::shared_ptr<ObservedLoop> loop) {
    const std::lock_guard lock(mutex_);
    loops_.push_back(std::move(loop));
  }

  const InspectorOptions options;
  std::atomic<bool> is_ready{true};

 private:
  mutable std::mutex mutex_;
  ObservedLoops loops_;
};

/// For the pages, which are functions.
class InspectorPages {
 public:
  using State = Inspector::State;
  [[nodiscard, gnu::visibility("hidden")]] static http::Router router(
      const std::shared_ptr<State>& state);
};

}  // namespace tambour::inspector
