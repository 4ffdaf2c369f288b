// Statistics of an object that belongs to a loop, for readers on other threads.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "inspector/observed_loops.h"

namespace tambour::inspector {

/// Thread: sample() that of the loop, the others any.
class Sample {
 public:
  explicit Sample(std::shared_ptr<ObservedLoop> loop) noexcept : loop_(std::move(loop)) {}
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;
  virtual ~Sample() = default;

  [[nodiscard]] const std::shared_ptr<ObservedLoop>& loop() const noexcept { return loop_; }
  virtual void sample() noexcept = 0;
  /// The object may be destroyed afterwards. Waits for sample() on another thread.
  virtual void remove() noexcept = 0;

 private:
  const std::shared_ptr<ObservedLoop> loop_;
};

template <class Stats>
class SampleOf final : public Sample {
 public:
  /// `read` is called on the thread of the loop, and must not throw.
  SampleOf(std::shared_ptr<ObservedLoop> loop, std::function<Stats()> read)
      : Sample(std::move(loop)), read_(std::move(read)), stats_(read_()) {}

  [[nodiscard]] Stats get() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  void sample() noexcept override {
    const std::lock_guard lock(mutex_);
    if (read_) stats_ = read_();
  }
  void remove() noexcept override {
    const std::lock_guard lock(mutex_);
    read_ = nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::function<Stats()> read_;
  Stats stats_;
};

}  // namespace tambour::inspector
