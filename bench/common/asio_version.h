// The version of asio that the program was compiled with; asio is header-only and does not report
// it.
#pragma once

#include <string>

#include <asio/version.hpp>

namespace bench {

inline std::string asio_version() {
  return std::to_string(ASIO_VERSION / 100'000) + "." + std::to_string(ASIO_VERSION / 100 % 1'000) +
         "." + std::to_string(ASIO_VERSION % 100);
}

}  // namespace bench
