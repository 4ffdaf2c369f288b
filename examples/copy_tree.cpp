// Copies a directory with everything in it: files, directories and symbolic links.
//
//   build/examples/copy_tree from to
//
// Without arguments, it copies a small tree in a temporary directory.
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;

Task<Result<>> copy_entry(std::string from, std::string to, fs::Type type);

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree.
Task<Result<>> copy_tree(std::string from, std::string to) {
  auto directory = co_await fs::Directory::open(from);
  if (!directory) co_return std::unexpected(directory.error());
  const auto created = co_await fs::create_directories(to);
  if (!created) co_return created;
  for (;;) {
    const auto entry = co_await directory->next();
    if (!entry) co_return std::unexpected(entry.error());
    if (!*entry) break;
    const std::string name = "/" + (*entry)->name;
    const auto copied = co_await copy_entry(from + name, to + name, (*entry)->type);
    if (!copied) co_return copied;
  }
  // Last, because a directory may be read-only.
  const auto status = co_await fs::status(from);
  if (!status) co_return std::unexpected(status.error());
  co_return co_await fs::set_permissions(to, status->permissions);
}

// NOLINTNEXTLINE(misc-no-recursion)
Task<Result<>> copy_entry(std::string from, std::string to, fs::Type type) {
  if (type == fs::Type::unknown) {  // Some file systems do not tell it.
    const auto status = co_await fs::symlink_status(from);
    if (!status) co_return std::unexpected(status.error());
    type = status->type;
  }
  if (type == fs::Type::directory) co_return co_await copy_tree(from, to);
  if (type == fs::Type::symlink) {
    auto target = co_await fs::read_symlink(from);
    if (!target) co_return std::unexpected(target.error());
    co_return co_await fs::create_symlink(*target, to);
  }
  if (type != fs::Type::regular) co_return Result<>();  // A socket or a device.
  const auto copied = co_await fs::copy_file(from, to);
  if (!copied) co_return std::unexpected(copied.error());
  std::printf("%s: %llu bytes\n", to.c_str(), static_cast<unsigned long long>(*copied));
  co_return Result<>();
}

Task<> demonstrate() {
  auto folder = or_throw(co_await fs::TemporaryDirectory::create());
  const std::string from = folder.path() + "/from";
  const std::string to = folder.path() + "/to";
  or_throw(co_await fs::create_directories(from + "/inner"));
  or_throw(co_await fs::replace_file(from + "/inner/file", "text"));
  or_throw(co_await fs::create_symlink("inner/file", from + "/link"));
  or_throw(co_await fs::set_permissions(from, 0500));
  or_throw(co_await copy_tree(from, to));
  const std::string copy = or_throw(co_await fs::read_file(to + "/link"));
  const auto status = or_throw(co_await fs::status(to));
  if (copy != "text" || status.permissions != 0500) throw std::runtime_error("the copy differs");
  or_throw(co_await fs::set_permissions(from, 0700));  // So that a user can remove them.
  or_throw(co_await fs::set_permissions(to, 0700));
  or_throw(co_await folder.remove());
}

Task<> copy(std::string from, std::string to) { or_throw(co_await copy_tree(from, to), from); }

int main(int argc, char** argv) try {
  EventLoop loop;
  TaskScope tasks(loop);
  tasks.spawn(argc == 3 ? copy(argv[1], argv[2]) : demonstrate());
  loop.run();
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
