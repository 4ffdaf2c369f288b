// The publications and subscriptions of MqttClient that wait for the broker.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tambour/adapters/call.h>
#include <tambour/base/result.h>

#pragma GCC visibility push(default)

namespace tambour::adapters::detail {

/// Resumes tasks outside of libmosquitto's callbacks: a task may destroy the client, which
/// libmosquitto does not allow there.
class MqttOperations {
 public:
  MqttOperations() = default;
  MqttOperations(const MqttOperations&) = delete;
  MqttOperations& operator=(const MqttOperations&) = delete;
  /// All operations fail with ECANCELED, except those that have ended.
  ~MqttOperations() {
    if (is_destroyed_ != nullptr) *is_destroyed_ = true;
    fail(ECANCELED, true);
    while (resumed_ < ended_.size()) ended_[resumed_++]->finish_later({});
  }

  /// To be called before a function of libmosquitto that begins an operation, inside of which it
  /// may end: its id is not known yet.
  void expect() noexcept { early_ = 0; }
  /// The operation has begun. `is_kept`: by libmosquitto, if the connection is lost. Throws
  /// std::bad_alloc; the operation then goes on without a wait.
  Call<void>::Wait add(int id, bool is_kept) {
    // finish(), which libmosquitto calls, must not throw.
    const std::size_t calls = ended_.size() + in_flight_.size() + 1;
    if (ended_.capacity() < calls) ended_.reserve(std::max(calls, 2 * ended_.capacity()));
    auto [call, wait] = Call<void>::begin();
    if (early_ == id) {
      call->finish({});
      return std::move(wait);
    }
    try {
      in_flight_.insert_or_assign(id, InFlight{call, is_kept});
    } catch (...) {
      call->finish({});  // Without effect: no task waits.
      throw;
    }
    return std::move(wait);
  }
  /// libmosquitto reports the end of an operation.
  void finish(int id) {
    const auto at = in_flight_.find(id);
    if (at == in_flight_.end()) {
      early_ = id;
      return;
    }
    Call<void>* const call = at->second.call;
    in_flight_.erase(at);
    if (is_collecting_) return ended_.push_back(call);
    call->finish_later({});
  }
  /// The connection was lost: operations fail, those that libmosquitto keeps only with `also_kept`.
  void fail(int error, bool also_kept) {
    for (auto at = in_flight_.begin(); at != in_flight_.end();) {
      if (at->second.is_kept && !also_kept) {
        ++at;
        continue;
      }
      at->second.call->finish_later(std::unexpected(system_error(error)));
      at = in_flight_.erase(at);
    }
  }

  /// As long as it exists, the tasks of operations that end wait for resume_tasks().
  class Collecting {
   public:
    explicit Collecting(MqttOperations& operations) noexcept : operations_(operations) {
      operations_.is_collecting_ = true;
    }
    Collecting(const Collecting&) = delete;
    Collecting& operator=(const Collecting&) = delete;
    ~Collecting() { operations_.is_collecting_ = false; }

   private:
    MqttOperations& operations_;
  };
  /// Resumes the tasks whose operations have ended, one of which may destroy this object, or throw.
  void resume_tasks() {
    if (ended_.empty()) return;
    const Resuming resuming(*this);
    while (!resuming.is_destroyed && resumed_ < ended_.size()) ended_[resumed_++]->finish({});
  }

 private:
  struct InFlight {
    Call<void>* call;
    bool is_kept;
  };
  /// Removes the calls whose tasks were resumed. Calls of resume_tasks() may be nested.
  struct Resuming {
    explicit Resuming(MqttOperations& of) noexcept
        : operations(of), outer(std::exchange(of.is_destroyed_, &is_destroyed)) {}
    Resuming(const Resuming&) = delete;
    Resuming& operator=(const Resuming&) = delete;
    ~Resuming() {
      if (is_destroyed) {
        if (outer != nullptr) *outer = true;
        return;
      }
      operations.is_destroyed_ = outer;
      const auto resumed = static_cast<std::ptrdiff_t>(std::exchange(operations.resumed_, 0));
      operations.ended_.erase(operations.ended_.begin(), operations.ended_.begin() + resumed);
    }

    MqttOperations& operations;
    bool is_destroyed = false;
    bool* outer;
  };

  std::unordered_map<int, InFlight> in_flight_;  ///< By message id.
  int early_ = 0;                                ///< The operation that ended before add().
  bool is_collecting_ = false;
  std::vector<Call<void>*> ended_;  ///< While collecting; resume_tasks() resumes their tasks.
  std::size_t resumed_ = 0;         ///< How many of them have been resumed.
  bool* is_destroyed_ = nullptr;    ///< Of resume_tasks(), while it runs.
};

}  // namespace tambour::adapters::detail

#pragma GCC visibility pop
