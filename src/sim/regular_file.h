// Regular files of a simulated host: bytes in memory with a name.
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <memory>
#include <string>

#include <tambour/detail/namespaces.h>

#include "sim/file.h"
#include "sim/world.h"

namespace tambour::sim::detail {

class RegularFile final : public File {
 public:
  RegularFile(World& world, std::shared_ptr<std::string> bytes, int flags) noexcept
      : world_(world), bytes_(std::move(bytes)), flags_(flags) {}

  RegularFile* as_regular() noexcept override { return this; }
  [[nodiscard]] Events readiness() const noexcept override { return Events::read | Events::write; }
  void close() override {}

  // read(2) and write(2), which advance the file offset.
  ssize_t receive(Message& message) override;
  ssize_t send(Message& message) override;

  ssize_t read_at(const Buffers& into, off_t offset);
  ssize_t write_at(const Buffers& from, off_t offset);
  int truncate(off_t size);
  [[nodiscard]] std::size_t size() const noexcept { return bytes_->size(); }

 private:
  [[nodiscard]] bool may_read() const noexcept { return (flags_ & O_ACCMODE) != O_WRONLY; }
  [[nodiscard]] bool may_write() const noexcept { return (flags_ & O_ACCMODE) != O_RDONLY; }
  [[nodiscard]] bool is_direct() const noexcept { return (flags_ & O_DIRECT) != 0; }
  [[nodiscard]] bool is_aligned(const Buffers& buffers, off_t offset) const noexcept;
  [[nodiscard]] std::size_t cut(std::size_t wanted, double chance);

  /// The alignment that O_DIRECT requires, in bytes.
  static constexpr std::size_t direct_unit = 512;

  World& world_;
  std::shared_ptr<std::string> bytes_;
  int flags_;
  off_t position_ = 0;
};

}  // namespace tambour::sim::detail
