// The early data of a connection.
#pragma once

#include <string>

#include <tambour/buffer.h>

#include "tls/filter.h"

namespace tambour::tls {

struct Filter::Early {
  std::string to_send;      ///< By a client.
  Buffer received;          ///< By a server.
  bool receives = false;    ///< OpenSSL may return more.
  bool is_awaited = false;  ///< See start_early().
};

}  // namespace tambour::tls
