// FileTree: looks up paths, and adds, moves and removes names.
#include "sim/file_tree.h"

#include <linux/fs.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <utility>

namespace tambour::sim::detail {
namespace {

constexpr int links_max = 40;  // path_resolution(7)
constexpr std::string_view slashes = "/";
constexpr std::int64_t second_ns = 1'000'000'000;

bool is_below(const Node& directory, const Node& ancestor) noexcept {
  const Node* node = &directory;
  while (node != &ancestor && node->parent != nullptr && node->parent != node) node = node->parent;
  return node == &ancestor;
}

statx_timestamp time_of(std::int64_t ns) noexcept {
  return {.tv_sec = ns / second_ns, .tv_nsec = std::uint32_t(ns % second_ns), .__reserved = 0};
}

timespec old_time_of(std::int64_t ns) noexcept {
  return {.tv_sec = ns / second_ns, .tv_nsec = ns % second_ns};
}

}  // namespace

FileTree::FileTree(World& world) : world_(world), root_(make(S_IFDIR | 0755)) {
  root_->parent = root_.get();
  root_->links = 1;
  constexpr mode_t permissions = 0755;
  for (const char* const path :
       {"/dev", "/dev/shm", "/etc", "/home", "/root", "/run", "/tmp", "/var", "/var/tmp"})
    make_directory(path, permissions);
}

NodePointer FileTree::make(mode_t mode) {
  auto node = std::make_shared<Node>();
  node->mode = mode;
  node->inode = ++last_inode_;
  node->created_ns = node->accessed_ns = node->modified_ns = node->changed_ns = world_.wall_ns();
  return node;
}

int FileTree::walk(std::string_view path, bool follows_last, Found& found) const {
  if (path.empty()) return -ENOENT;
  if (path.size() >= PATH_MAX) return -ENAMETOOLONG;
  std::string left(path);
  NodePointer at = root_;
  for (int links = 0;;) {
    if (!at->is_directory()) return -ENOTDIR;
    const std::size_t begin = left.find_first_not_of(slashes);
    if (begin == std::string::npos) break;
    const std::size_t end = left.find('/', begin);
    std::string name = left.substr(begin, end - begin);
    std::string rest = end == std::string::npos ? "" : left.substr(end);
    const bool is_last = rest.find_first_not_of(slashes) == std::string::npos;
    if (name.size() > NAME_MAX) return -ENAMETOOLONG;
    if (name == "." || name == "..") {
      if (name == ".." && at->parent != nullptr) at = at->parent->shared_from_this();
      left = std::move(rest);
      continue;
    }
    const auto entry = at->entries.find(name);
    NodePointer node = entry == at->entries.end() ? nullptr : entry->second;
    if (node == nullptr && !is_last) return -ENOENT;
    if (node != nullptr && node->is_symlink() && (!is_last || follows_last || !rest.empty())) {
      if (++links > links_max) return -ELOOP;
      if (node->bytes.starts_with('/')) at = root_;
      left = node->bytes + rest;
      continue;
    }
    if (is_last) {
      if (node != nullptr && !rest.empty() && !node->is_directory()) return -ENOTDIR;
      found = {.parent = std::move(at), .name = std::move(name), .node = std::move(node)};
      return 0;
    }
    at = std::move(node);
    left = std::move(rest);
  }
  found = {.parent = nullptr, .name = {}, .node = std::move(at)};
  return 0;
}

int FileTree::find(std::string_view path, bool follows_last, NodePointer& node) const {
  Found found;
  if (const int error = walk(path, follows_last, found)) return error;
  if (found.node == nullptr) return -ENOENT;
  node = std::move(found.node);
  return 0;
}

void FileTree::insert(const Found& place, const NodePointer& node) {
  place.parent->entries.insert_or_assign(place.name, node);
  if (node->is_directory()) node->parent = place.parent.get();
  ++node->links;
  note_changed(*node);
  note_modified(*place.parent);
}

void FileTree::erase(const Found& place) {
  place.parent->entries.erase(place.name);
  --place.node->links;
  if (place.node->is_directory()) place.node->parent = nullptr;
  note_changed(*place.node);
  note_modified(*place.parent);
}

int FileTree::make_directory(std::string_view path, mode_t permissions) {
  Found place;
  if (const int error = walk(path, false, place)) return error;
  if (place.node != nullptr) return -EEXIST;
  insert(place, make(S_IFDIR | (permissions & 01777)));
  return 0;
}

int FileTree::symlink(std::string_view target, std::string_view path) {
  if (target.empty()) return -ENOENT;
  if (target.size() >= PATH_MAX) return -ENAMETOOLONG;
  Found place;
  if (const int error = walk(path, false, place)) return error;
  if (place.node != nullptr) return -EEXIST;
  if (path.ends_with('/')) return -ENOENT;
  const NodePointer node = make(S_IFLNK | 0777);
  node->bytes = target;
  insert(place, node);
  return 0;
}

int FileTree::link(std::string_view from, std::string_view to) {
  NodePointer node;
  if (const int error = find(from, false, node)) return error;
  if (node->is_directory()) return -EPERM;
  return link_node(node, to);
}

int FileTree::link_node(const NodePointer& node, std::string_view to) {
  Found place;
  if (const int error = walk(to, false, place)) return error;
  if (place.node != nullptr) return -EEXIST;
  if (to.ends_with('/')) return -ENOENT;
  insert(place, node);
  return 0;
}

int FileTree::rename(std::string_view from, std::string_view to, unsigned flags) {
  const bool exchanges = (flags & RENAME_EXCHANGE) != 0;
  const bool replaces = (flags & RENAME_NOREPLACE) == 0;
  if ((flags & ~unsigned{RENAME_EXCHANGE | RENAME_NOREPLACE}) != 0 || (exchanges && !replaces))
    return -EINVAL;
  Found source;
  Found target;
  if (const int error = walk(from, false, source)) return error;
  if (const int error = walk(to, false, target)) return error;
  if (source.name.empty() || target.name.empty()) return -EBUSY;
  if (source.node == nullptr || (exchanges && target.node == nullptr)) return -ENOENT;
  if (target.node != nullptr && !replaces) return -EEXIST;
  if (source.node == target.node) return 0;
  const bool is_directory = source.node->is_directory();
  if (!is_directory && target.node == nullptr && to.ends_with('/')) return -ENOTDIR;
  if (is_directory && is_below(*target.parent, *source.node)) return -EINVAL;
  if (exchanges) {
    if (target.node->is_directory() && is_below(*source.parent, *target.node)) return -EINVAL;
  } else if (target.node != nullptr) {
    if (is_directory && !target.node->is_directory()) return -ENOTDIR;
    if (!is_directory && target.node->is_directory()) return -EISDIR;
    if (!target.node->entries.empty()) return -ENOTEMPTY;
  }
  if (target.node != nullptr) erase(target);
  erase(source);
  insert(target, source.node);
  if (exchanges) insert(source, target.node);
  return 0;
}

int FileTree::unlink(std::string_view path) {
  Found place;
  if (const int error = walk(path, false, place)) return error;
  if (place.node == nullptr) return -ENOENT;
  if (place.node->is_directory()) return -EISDIR;
  erase(place);
  return 0;
}

int FileTree::remove_directory(std::string_view path) {
  Found place;
  if (const int error = walk(path, false, place)) return error;
  if (place.node == nullptr) return -ENOENT;
  if (!place.node->is_directory()) return -ENOTDIR;
  if (place.name.empty()) return path.ends_with('.') ? -EINVAL : -EBUSY;
  if (!place.node->entries.empty()) return -ENOTEMPTY;
  erase(place);
  return 0;
}

int FileTree::remove_all(std::string_view path) {
  Found place;
  if (const int error = walk(path, false, place)) return error;
  if (place.node == nullptr) return -ENOENT;
  if (place.name.empty()) return -EBUSY;
  while (!place.node->entries.empty()) {
    const std::string inner = std::string(path) + "/" + place.node->entries.begin()->first;
    if (const int error = remove_all(inner)) return error;
  }
  erase(place);
  return 0;
}

std::string FileTree::path_of(const Node& directory) {
  if (directory.parent == &directory) return "";
  for (const auto& [name, node] : directory.parent->entries) {
    if (node.get() == &directory) return path_of(*directory.parent) + "/" + name;
  }
  return "";
}

int FileTree::real_path(std::string_view path, std::string& into) const {
  Found found;
  if (const int error = walk(path, true, found)) return error;
  if (found.node == nullptr) return -ENOENT;
  into =
      found.node->is_directory() ? path_of(*found.node) : path_of(*found.parent) + "/" + found.name;
  if (into.empty()) into = "/";
  return 0;
}

void FileTree::note_modified(Node& node) const noexcept {
  node.modified_ns = node.changed_ns = world_.wall_ns();
}

void describe(const Node& node, struct stat& into) noexcept {
  into = {};
  into.st_mode = node.mode;
  into.st_ino = node.inode;
  into.st_nlink = node.links;
  into.st_size = off_t(node.bytes.size());
  into.st_blksize = 4096;
  into.st_blocks = blkcnt_t((node.bytes.size() + 511) / 512);
  into.st_atim = old_time_of(node.accessed_ns);
  into.st_mtim = old_time_of(node.modified_ns);
  into.st_ctim = old_time_of(node.changed_ns);
}

void describe(const Node& node, struct statx& into) noexcept {
  into = {};
  into.stx_mask = STATX_BASIC_STATS | STATX_BTIME;
  into.stx_mode = std::uint16_t(node.mode);
  into.stx_ino = node.inode;
  into.stx_nlink = std::uint32_t(node.links);
  into.stx_size = node.bytes.size();
  into.stx_blksize = 4096;
  into.stx_blocks = (node.bytes.size() + 511) / 512;
  into.stx_atime = time_of(node.accessed_ns);
  into.stx_mtime = time_of(node.modified_ns);
  into.stx_ctime = time_of(node.changed_ns);
  into.stx_btime = time_of(node.created_ns);
}

}  // namespace tambour::sim::detail
