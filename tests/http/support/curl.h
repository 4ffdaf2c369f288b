// curl as a client, for comparisons.
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace tambour::test {

/// What curl prints. Blocks until it has ended.
inline std::string curl(const std::string& arguments) {
  std::string text;
  FILE* const pipe =
      ::popen(("curl -sS --max-time 60 --path-as-is " + arguments + " 2>&1").c_str(), "r");
  std::array<char, 4096> bytes;
  while (const std::size_t got = std::fread(bytes.data(), 1, bytes.size(), pipe))
    text.append(bytes.data(), got);
  ::pclose(pipe);
  return text;
}

}  // namespace tambour::test
