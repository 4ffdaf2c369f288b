// Pipes and eventfds.
#pragma once

#include <cstdint>
#include <memory>

#include <tambour/detail/namespaces.h>

#include "sim/file.h"
#include "sim/world.h"

namespace tambour::sim::detail {

/// One end of a pipe, pipe(7). Both ends share ownership of the buffer.
class PipeEnd final : public File {
 public:
  struct Ends {
    std::shared_ptr<PipeEnd> reader;
    std::shared_ptr<PipeEnd> writer;
  };
  static Ends open(World& world);

  struct Shared {
    ByteQueue bytes;
    PipeEnd* reader = nullptr;
    PipeEnd* writer = nullptr;
  };
  PipeEnd(World& world, std::shared_ptr<Shared> shared, bool reads) noexcept
      : world_(world), shared_(std::move(shared)), reads_(reads) {}

  [[nodiscard]] Events readiness() const noexcept override;
  ssize_t receive(Message& message) override;
  ssize_t send(Message& message) override;
  void close() override;

 private:
  [[nodiscard]] std::size_t room() const noexcept;

  World& world_;
  std::shared_ptr<Shared> shared_;
  bool reads_;
};

/// eventfd(2).
class EventCounter final : public File {
 public:
  EventCounter(std::uint64_t initial, bool semaphore) noexcept
      : count_(initial), semaphore_(semaphore) {}

  [[nodiscard]] Events readiness() const noexcept override;
  ssize_t receive(Message& message) override;
  ssize_t send(Message& message) override;
  void close() override {}

 private:
  std::uint64_t count_;
  bool semaphore_;
};

}  // namespace tambour::sim::detail
