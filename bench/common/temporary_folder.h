// A directory for the files of a server.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/program.h"

namespace bench {

/// A new directory, which is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / "bench-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) fail_errno("mkdtemp");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace bench
