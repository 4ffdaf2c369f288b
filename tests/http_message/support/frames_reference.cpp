// A server session of libnghttp2 reads frames.
#include "http_message/support/frames_reference.h"

#include <cstdint>
#include <cstdlib>

#ifdef TAMBOUR_HAS_NGHTTP2
#include <nghttp2/nghttp2.h>
#endif

namespace tambour::test {

#ifdef TAMBOUR_HAS_NGHTTP2

bool has_reference_frames() noexcept { return true; }

ReferenceFrames read_reference_frames(std::string_view text) {
  ReferenceFrames found;
  nghttp2_session_callbacks* callbacks = nullptr;
  if (nghttp2_session_callbacks_new(&callbacks) != 0) std::abort();
  nghttp2_session_callbacks_set_on_begin_frame_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame_hd* head, void* user) {
        if (head->type < NGHTTP2_CONTINUATION)
          static_cast<ReferenceFrames*>(user)->begun.push_back(std::to_string(head->type) + ' ' +
                                                               std::to_string(head->stream_id));
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_send_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
        if (frame->hd.type == NGHTTP2_RST_STREAM || frame->hd.type == NGHTTP2_GOAWAY)
          static_cast<ReferenceFrames*>(user)->has_rejected = true;
        return 0;
      });
  nghttp2_session* session = nullptr;
  if (nghttp2_session_server_new(&session, callbacks, &found) != 0) std::abort();
  nghttp2_session_callbacks_del(callbacks);
  const auto taken = nghttp2_session_mem_recv(
      session, reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  if (taken < 0) found.has_rejected = true;
  const std::uint8_t* sent = nullptr;
  while (nghttp2_session_mem_send(session, &sent) > 0) continue;
  nghttp2_session_del(session);
  return found;
}

#else

bool has_reference_frames() noexcept { return false; }
ReferenceFrames read_reference_frames(std::string_view) { std::abort(); }

#endif

}  // namespace tambour::test
