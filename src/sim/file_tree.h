// The files of a simulated host: directories, regular files and symbolic links in memory.
//
// Functions return 0 or a negated errno value. Paths that are relative begin at "/". There is one
// user, so permissions are stored but not checked.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <tambour/detail/namespaces.h>

#include "sim/world.h"

namespace tambour::sim::detail {

struct Node;
using NodePointer = std::shared_ptr<Node>;

struct Node : std::enable_shared_from_this<Node> {
  mode_t mode = 0;  ///< The type and the permissions.
  ino_t inode = 0;
  nlink_t links = 0;  ///< The number of names. A directory has one.
  std::string bytes;  ///< Of a regular file: its content. Of a symbolic link: its target.
  std::map<std::string, NodePointer, std::less<>> entries;  ///< Of a directory.
  Node* parent = nullptr;                                   ///< Of a directory that has a name.
  std::int64_t accessed_ns = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  std::int64_t created_ns = 0;

  [[nodiscard]] bool is_directory() const noexcept { return S_ISDIR(mode); }
  [[nodiscard]] bool is_regular() const noexcept { return S_ISREG(mode); }
  [[nodiscard]] bool is_symlink() const noexcept { return S_ISLNK(mode); }
};

class FileTree {
 public:
  /// With the directories that every system has: /dev/shm, /etc, /home, /root, /run, /tmp, /var.
  explicit FileTree(World& world);

  /// The place of a path.
  struct Found {
    NodePointer parent;
    std::string name;  ///< Empty: the path ends with "/", "." or "..".
    NodePointer node;  ///< Null: nothing has this name.
  };
  /// Fails with ENOENT, ENOTDIR, ELOOP or ENAMETOOLONG. A name that does not exist is an error only
  /// if it is not the last one.
  int walk(std::string_view path, bool follows_last, Found& found) const;
  /// Like walk(), but the path must exist.
  int find(std::string_view path, bool follows_last, NodePointer& node) const;

  [[nodiscard]] NodePointer make(mode_t mode);
  void insert(const Found& place, const NodePointer& node);

  int make_directory(std::string_view path, mode_t permissions);
  int symlink(std::string_view target, std::string_view path);
  int link(std::string_view from, std::string_view to);
  int link_node(const NodePointer& node, std::string_view to);
  int rename(std::string_view from, std::string_view to, unsigned flags);
  int unlink(std::string_view path);
  int remove_directory(std::string_view path);
  int remove_all(std::string_view path);
  int real_path(std::string_view path, std::string& into) const;

  void note_modified(Node& node) const noexcept;
  void note_changed(Node& node) const noexcept { node.changed_ns = world_.wall_ns(); }

 private:
  void erase(const Found& place);
  static std::string path_of(const Node& directory);

  World& world_;
  NodePointer root_;
  ino_t last_inode_ = 0;
};

void describe(const Node& node, struct stat& into) noexcept;
void describe(const Node& node, struct statx& into) noexcept;

}  // namespace tambour::sim::detail
