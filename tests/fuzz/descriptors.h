// The descriptors and the clock of one run: those of the kernel or of a simulated host.
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
  virtual void shutdown(int fd, int mode) = 0;

  /// Returns the result of poll(2).
  virtual unsigned ready(int fd) = 0;
  virtual std::int64_t now_ns() = 0;
  virtual std::int64_t wall_now_ns() = 0;
  /// Returns false on the real machine, whose wall clock is not changed.
  virtual bool set_wall_clock(std::int64_t) { return false; }
  virtual void spend(Duration time) = 0;
  /// Returns a number that is not an open descriptor and never will be.
  virtual int bad_number() = 0;
};

std::unique_ptr<Descriptors> kernel_descriptors(const LoopOptions& options);
std::unique_ptr<Descriptors> simulated_descriptors(std::uint64_t seed, const sim::Options& options);

}  // namespace tambour::fuzz
