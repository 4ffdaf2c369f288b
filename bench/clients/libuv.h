// What the clients of the subject libuv share.
#pragma once

#include <uv.h>

#include "clients/clients.h"

namespace bench::libuv {

/// Ends the loop when all operations have ended.
inline void note_end(Operations& all, uv_loop_t* loop) {
  if (all.end()) uv_stop(loop);
}

template <class Session>
OpenClient on(uv_loop_t* loop) {
  return [loop](const ClientSetup& setup) { return std::make_unique<Session>(loop, setup); };
}

OpenClient mariadb_on(uv_loop_t* loop);
OpenClient mosquitto_on(uv_loop_t* loop);

}  // namespace bench::libuv
