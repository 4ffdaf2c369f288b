// The file into which a download writes, and the version to which its contents belong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/file/file.h>
#include <tambour/task/task.h>

namespace tambour::http::detail::download {

class PartialFile {
 public:
  PartialFile(std::string url, std::string path);
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile();

  /// Opens what an earlier call has left, if it is of the same URL. Fails with EBUSY if another
  /// download of this process has the path.
  [[nodiscard]] Task<Result<>> open();
  /// Removes the contents, and records the version of those that follow. An empty validator: they
  /// cannot be continued.
  [[nodiscard]] Task<Result<>> restart(std::string validator, std::optional<std::uint64_t> total);
  [[nodiscard]] Task<Result<>> append(Buffer bytes);
  /// Gives the file its name.
  [[nodiscard]] Task<Result<>> finish(bool sync);
  /// Removes what cannot be continued.
  [[nodiscard]] Task<> abandon();

  /// True if the next request may ask for what follows bytes().
  [[nodiscard]] bool can_continue() const noexcept { return bytes_ > 0 && !validator_.empty(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const std::string& validator() const noexcept { return validator_; }
  [[nodiscard]] std::optional<std::uint64_t> total() const noexcept { return total_; }
  void set_total(std::uint64_t total) noexcept { total_ = total; }
  [[nodiscard]] bool is_whole() const noexcept { return !total_ || bytes_ == *total_; }

 private:
  /// False: another download has the path on this system, of the kernel or a simulated host.
  [[nodiscard]] bool lock(const void* system);

  std::string url_;  ///< Without user name and password.
  std::string path_;
  std::string part_path_;
  std::string info_path_;
  const void* system_ = nullptr;  ///< Null: the path is not locked.
  File file_;
  std::uint64_t bytes_ = 0;
  std::string validator_;
  std::optional<std::uint64_t> total_;
};

}  // namespace tambour::http::detail::download
