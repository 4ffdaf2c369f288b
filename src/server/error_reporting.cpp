// Wraps handlers and callbacks, so that their exceptions reach ListenOptions::on_error.
#include "server/error_reporting.h"

#include <exception>
#include <memory>
#include <utility>

#include <tambour/callback.h>

namespace tambour::server {
namespace {

template <class... Arguments>
void catch_exceptions(Callback<void(Connection&, Arguments...)>& callback,
                      const std::shared_ptr<const ListenOptions>& options) {
  if (!callback) return;
  callback = [call = std::move(callback), options](Connection& connection, Arguments... arguments) {
    try {
      call(connection, std::forward<Arguments>(arguments)...);
    } catch (...) {
      // on_error may destroy the server, and with it the last reference to the options.
      // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
      const std::shared_ptr<const ListenOptions> kept = options;
      connection.close();
      report_error(*kept, loop::core_of(connection.loop()), std::current_exception());
    }
  };
}

}  // namespace

void report_error(const ListenOptions& options, loop::Core& core,
                  std::exception_ptr thrown) noexcept {
  if (!options.on_error) return core.throw_out_of_run(std::move(thrown));
  try {
    options.on_error(std::move(thrown));
  } catch (...) {
    core.throw_out_of_run(std::current_exception());
  }
}

std::shared_ptr<const ConnectionCallbacks> share_callbacks(
    ConnectionCallbacks callbacks, const std::shared_ptr<const ListenOptions>& options) {
  if (options->on_error) {
    catch_exceptions(callbacks.on_connection, options);
    catch_exceptions(callbacks.on_message, options);
    catch_exceptions(callbacks.on_end, options);
    catch_exceptions(callbacks.on_write_complete, options);
    catch_exceptions(callbacks.on_high_water, options);
    catch_exceptions(callbacks.on_close, options);
    catch_exceptions(callbacks.on_move, options);
  }
  return std::make_shared<const ConnectionCallbacks>(std::move(callbacks));
}

}  // namespace tambour::server
