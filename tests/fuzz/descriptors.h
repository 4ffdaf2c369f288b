// The descriptors and the clock of one run: the kernel's, or a simulated host's.
#pragma once

#include <cstdint>
#include <memory>

#include <tambour/tambour.h>

#include "fuzz/model.h"

namespace tambour::fuzz {

enum class Channel : std::uint8_t { stream, pipe };

class Descriptors {
 public:
  Descriptors() = default;
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  virtual ~Descriptors() = default;

  virtual LoopOptions options() = 0;
  virtual bool open(Channel channel, int* fds) = 0;
  virtual int dup(int fd) = 0;
  virtual void close(int fd) = 0;
  virtual void write(int fd, std::size_t size) = 0;
  virtual void read(int fd, std::size_t size) = 0;
  virtual void shutdown(int fd, int how) = 0;

  /// What poll(2) says.
  virtual unsigned ready(int fd) = 0;
  virtual std::int64_t now_ns() = 0;
  virtual std::int64_t wall_now_ns() = 0;
  /// False where the wall clock is the machine's, which is left alone.
  virtual bool set_wall_clock(std::int64_t) { return false; }
  virtual void spend(Duration time) = 0;
  /// A number that is no open descriptor, and will not be.
  virtual int bad_number() = 0;
};

std::unique_ptr<Descriptors> kernel_descriptors(const LoopOptions& options);
std::unique_ptr<Descriptors> simulated_descriptors(std::uint64_t seed,
                                                   const SimulationOptions& options);

}  // namespace tambour::fuzz
