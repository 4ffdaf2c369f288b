// nginx, HAProxy and h2o of the system as reverse proxies.
#pragma once

#include <ostream>
#include <string>

#include <tambour/tambour.h>

namespace tambour::test {

struct FrontEnd {
  const char* name;
  const char* program;
  const char* arguments;
  /// `FOLDER` stands for the folder of the sockets `front` and `back`.
  const char* configuration;
  /// What it adds to the head of each request that it forwards.
  const char* mark;
};

inline void PrintTo(const FrontEnd& front_end, std::ostream* out) {  // NOLINT: GoogleTest's name.
  *out << front_end.name;
}

extern const FrontEnd nginx;
/// Forwards bodies while they arrive, and fields with any name.
extern const FrontEnd lenient_nginx;
extern const FrontEnd haproxy;
/// Forwards requests with some kinds of invalid characters.
extern const FrontEnd lenient_haproxy;
extern const FrontEnd h2o;

/// Starts it in `folder`. It listens some time later.
Process start(EventLoop& loop, const FrontEnd& front_end, const std::string& folder);

}  // namespace tambour::test
