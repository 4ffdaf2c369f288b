// EventReader: the events of a body.
#include <utility>

#include <tambour/http/event_source.h>

#include "http/event_source/event_parser.h"

namespace tambour::http {

EventReader::EventReader(IncomingBody& body, const EventLimits& limits, std::string last_event_id)
    : body_(&body),
      parser_(
          std::make_unique<detail::event_source::EventParser>(limits, std::move(last_event_id))) {}
EventReader::EventReader(EventReader&& other) noexcept = default;
EventReader& EventReader::operator=(EventReader&& other) noexcept = default;
EventReader::~EventReader() = default;

Task<Result<std::optional<ReceivedEvent>>> EventReader::next() {
  for (;;) {
    const auto parsed = parser_->parse(input_);
    // Recorded by the body, so that it fails again.
    if (!parsed) co_return body_->reject(parsed.error());
    if (*parsed) {
      std::optional<ReceivedEvent> event = parser_->take_event();
      co_return event;
    }
    auto piece = co_await body_->read();
    if (!piece) co_return std::unexpected(piece.error());
    if (piece->empty()) {
      std::optional<ReceivedEvent> none;
      co_return none;
    }
    input_ = std::move(*piece);
  }
}

const std::string& EventReader::last_event_id() const noexcept { return parser_->last_event_id(); }
std::optional<std::chrono::milliseconds> EventReader::retry() const noexcept {
  return parser_->retry();
}

}  // namespace tambour::http
