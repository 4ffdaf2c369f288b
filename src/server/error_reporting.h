// Passes the exceptions of a server's handlers and callbacks to ListenOptions::on_error.
#pragma once

#include <exception>
#include <memory>

#include <tambour/connection.h>
#include <tambour/listen_options.h>

#include "loop/core.h"

namespace tambour::server {

/// Invokes on_error. If it is empty or throws, EventLoop::run() throws the exception.
void report_error(const ListenOptions& options, loop::Core& core,
                  std::exception_ptr thrown) noexcept;

/// Returns the callbacks. If there is an on_error, each of them catches its exceptions, closes its
/// connection and reports them.
std::shared_ptr<const ConnectionCallbacks> share_callbacks(
    ConnectionCallbacks callbacks, const std::shared_ptr<const ListenOptions>& options);

}  // namespace tambour::server
