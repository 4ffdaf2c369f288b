// A name server that has an address for every name, with bare system calls.
#pragma once

#include <sys/types.h>

namespace bench {

class Responder {
 public:
  /// Forks it to another processor. It answers at 127.0.0.1, port 53, over UDP.
  Responder();
  ~Responder();
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

 private:
  pid_t process_;
};

}  // namespace bench
