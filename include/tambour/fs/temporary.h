// Temporary files and directories.
//
// The library removes them in destructors, with system calls that block the loop for as long as the
// file system takes. To avoid that, remove them before: TemporaryDirectory::remove(). If the
// process is killed, named files stay; files of create_unnamed() do not.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/file/file.h>
#include <tambour/task/task.h>

namespace tambour::detail::backend {
class System;
}  // namespace tambour::detail::backend
namespace tambour::detail::files {
struct Access;
}  // namespace tambour::detail::files

#pragma GCC visibility push(default)

namespace tambour::fs {

/// Creates a file without a name, open for reading and writing: O_TMPFILE. The kernel frees it when
/// its last descriptor is closed, unless link_file() has given it a name. `directory` selects the
/// file system; empty: TMPDIR, or /tmp. Fails with EOPNOTSUPP if the file system has no such files
/// (NFS, overlayfs before Linux 6.6): use TemporaryFile then.
[[nodiscard]] Task<Result<File>> create_unnamed(std::string directory = {},
                                                mode_t permissions = 0600);
/// Gives a name to a file of create_unnamed(), on the same file system: linkat(2). The file appears
/// with all of its contents at once. Fails with EEXIST, EXDEV, and with ENOENT if `file` has lost
/// its last name. Requires that `file` is not closed until the operation has ended.
[[nodiscard]] Task<Result<>> link_file(const File& file, std::string path);

/// A file with a unique name, removed when this object is destroyed.
///
/// Thread: belongs to no loop. In a simulation, the host must outlive it.
class TemporaryFile {
 public:
  /// A closed file without a name.
  TemporaryFile() noexcept = default;
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&& other) noexcept;
  ~TemporaryFile() { remove(); }

  /// Creates `directory`/`prefix` followed by 12 random letters and digits, open for reading and
  /// writing. `directory` empty: TMPDIR, or /tmp. Fails with the errors of File::open(). If the
  /// task is destroyed meanwhile, the file may stay.
  [[nodiscard]] static Task<Result<TemporaryFile>> create(std::string directory = {},
                                                          std::string prefix = "tmp-",
                                                          mode_t permissions = 0600);

  /// The open file, for reading and writing.
  [[nodiscard]] File& file() noexcept { return file_; }
  /// Empty after persist() and keep().
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Renames the file, which is then no longer temporary, and replaces an existing file. `path`
  /// must be on the same file system (EXDEV). If it fails, the file stays temporary. The
  /// object must not be moved or destroyed meanwhile.
  [[nodiscard]] Task<Result<>> persist(std::string path);
  /// The file stays where it is.
  void keep() noexcept { path_.clear(); }

 private:
  friend struct detail::files::Access;
  void remove() noexcept;

  File file_;
  std::string path_;
  detail::backend::System* system_ = nullptr;
};

/// A directory with a unique name, removed with everything in it when this object is destroyed.
class TemporaryDirectory {
 public:
  TemporaryDirectory() noexcept = default;
  TemporaryDirectory(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
  ~TemporaryDirectory() { remove_now(); }

  /// Like TemporaryFile::create(), with the permissions 0700.
  [[nodiscard]] static Task<Result<TemporaryDirectory>> create(std::string directory = {},
                                                               std::string prefix = "tmp-");

  /// The path of the directory; empty after remove().
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Removes it without blocking the loop: remove_all(). If it fails, the destructor tries again.
  /// The object must not be moved or destroyed meanwhile.
  [[nodiscard]] Task<Result<>> remove();
  /// The directory stays.
  void keep() noexcept { path_.clear(); }

 private:
  void remove_now() noexcept;

  std::string path_;
  detail::backend::System* system_ = nullptr;
};

}  // namespace tambour::fs

#pragma GCC visibility pop
