// Open regular files and directories of a simulated host.
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <memory>
#include <string>

#include <tambour/detail/namespaces.h>

#include "sim/file.h"
#include "sim/file_tree.h"
#include "sim/world.h"

namespace tambour::sim::detail {

class RegularFile final : public File {
 public:
  RegularFile(World& world, FileTree& tree, NodePointer node, int flags) noexcept
      : world_(world), tree_(tree), node_(std::move(node)), flags_(flags) {}

  RegularFile* as_regular() noexcept override { return this; }
  [[nodiscard]] const NodePointer* node() const noexcept override { return &node_; }
  [[nodiscard]] Events readiness() const noexcept override { return Events::read | Events::write; }
  void close() override {}

  // read(2) and write(2), which advance the file offset.
  ssize_t receive(Message& message) override;
  ssize_t send(Message& message) override;

  ssize_t read_at(const Buffers& into, off_t offset);
  ssize_t write_at(const Buffers& from, off_t offset);
  int truncate(off_t size);
  int allocate(int mode, off_t offset, off_t size);
  [[nodiscard]] std::size_t size() const noexcept { return node_->bytes.size(); }
  [[nodiscard]] bool appends() const noexcept { return (flags_ & O_APPEND) != 0; }

 private:
  [[nodiscard]] bool may_read() const noexcept { return (flags_ & O_ACCMODE) != O_WRONLY; }
  [[nodiscard]] bool may_write() const noexcept { return (flags_ & O_ACCMODE) != O_RDONLY; }
  [[nodiscard]] bool is_direct() const noexcept { return (flags_ & O_DIRECT) != 0; }
  [[nodiscard]] bool is_aligned(const Buffers& buffers, off_t offset) const noexcept;
  [[nodiscard]] std::size_t cut(std::size_t wanted, double chance);

  /// The alignment that O_DIRECT requires, in bytes.
  static constexpr std::size_t direct_unit = 512;

  [[nodiscard]] std::string& bytes() noexcept { return node_->bytes; }

  World& world_;
  FileTree& tree_;
  NodePointer node_;
  int flags_;
  off_t position_ = 0;
};

class DirectoryFile final : public File {
 public:
  explicit DirectoryFile(NodePointer node) noexcept : node_(std::move(node)) {}

  DirectoryFile* as_directory() noexcept override { return this; }
  [[nodiscard]] const NodePointer* node() const noexcept override { return &node_; }
  [[nodiscard]] Events readiness() const noexcept override { return Events::read | Events::write; }
  void close() override {}
  ssize_t receive(Message& /*message*/) override { return -EISDIR; }

  /// getdents64(2), in the order of the names. Entries that are added or removed meanwhile are
  /// found or missing, and no other is listed twice or left out.
  ssize_t list(void* into, std::size_t size);

 private:
  NodePointer node_;
  std::string last_;  ///< The name that was listed last.
};

}  // namespace tambour::sim::detail
