// HTTP: messages, servers and clients.
// Includes all headers of <tambour/http/>.
#pragma once

#include <tambour/http/access_log.h>      // IWYU pragma: export
#include <tambour/http/auth.h>            // IWYU pragma: export
#include <tambour/http/authentication.h>  // IWYU pragma: export
#include <tambour/http/body.h>            // IWYU pragma: export
#include <tambour/http/body_limit.h>      // IWYU pragma: export
#include <tambour/http/client.h>          // IWYU pragma: export
#include <tambour/http/client_address.h>  // IWYU pragma: export
#include <tambour/http/coding.h>          // IWYU pragma: export
#include <tambour/http/compress.h>        // IWYU pragma: export
#include <tambour/http/conditions.h>      // IWYU pragma: export
#include <tambour/http/cookie.h>          // IWYU pragma: export
#include <tambour/http/cors.h>            // IWYU pragma: export
#include <tambour/http/date.h>            // IWYU pragma: export
#include <tambour/http/download.h>
#include <tambour/http/error.h>           // IWYU pragma: export
#include <tambour/http/error_renderer.h>  // IWYU pragma: export
#include <tambour/http/event_source.h>
#include <tambour/http/event_stream.h>  // IWYU pragma: export
#include <tambour/http/fields.h>        // IWYU pragma: export
#include <tambour/http/files.h>         // IWYU pragma: export
#include <tambour/http/form.h>          // IWYU pragma: export
#include <tambour/http/handler.h>       // IWYU pragma: export
#include <tambour/http/hsts.h>
#include <tambour/http/http2.h>
#include <tambour/http/http2.h>    // IWYU pragma: export
#include <tambour/http/https.h>    // IWYU pragma: export
#include <tambour/http/message.h>  // IWYU pragma: export
#include <tambour/http/method.h>   // IWYU pragma: export
#include <tambour/http/metrics.h>  // IWYU pragma: export
#include <tambour/http/multipart.h>
#include <tambour/http/rate_limit.h>        // IWYU pragma: export
#include <tambour/http/recover.h>           // IWYU pragma: export
#include <tambour/http/request.h>           // IWYU pragma: export
#include <tambour/http/request_id.h>        // IWYU pragma: export
#include <tambour/http/response.h>          // IWYU pragma: export
#include <tambour/http/reverse_proxy.h>     // IWYU pragma: export
#include <tambour/http/router.h>            // IWYU pragma: export
#include <tambour/http/server.h>            // IWYU pragma: export
#include <tambour/http/status.h>            // IWYU pragma: export
#include <tambour/http/time_limit.h>        // IWYU pragma: export
#include <tambour/http/tracing.h>           // IWYU pragma: export
#include <tambour/http/url.h>               // IWYU pragma: export
#include <tambour/http/websocket.h>         // IWYU pragma: export
#include <tambour/http/websocket_client.h>  // IWYU pragma: export
#include <tambour/http/websocket_error.h>   // IWYU pragma: export
#include <tambour/http/websocket_topic.h>   // IWYU pragma: export
