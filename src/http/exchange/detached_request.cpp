// DetachedRequest: what it keeps of an exchange, and the body that it does not have.
#include "http/exchange/detached_request.h"

#include <utility>

#include "http/exchange/exchange.h"

namespace tambour::http::detail {

DetachedRequest::DetachedRequest(Exchange& exchange)
    : Request(nullptr),
      loop_(exchange.loop_),
      settings_(exchange.settings_),
      head_(std::move(*exchange.head_)),
      received_bytes_(exchange.body_bytes_),
      began_at_(exchange.received_at_),
      shutdown_(exchange.shutdown_) {
  Request& former = exchange.request();
  is_detached_ = true;
  route_ = former.route_;
  client_address_ = former.client_address_;
  parameters_ = std::move(former.parameters_);
  BodyAccess::attach(body_, *this);
}

bool DetachedRequest::report(const std::exception_ptr& thrown) {
  if (!settings_->options.on_exception) return false;
  settings_->options.on_exception(*this, thrown);
  settings_->reporter->add_to_count();
  return true;
}

const Fields& DetachedRequest::body_trailers() const noexcept {
  static const Fields none;
  return none;
}

Task<Result<Buffer>> DetachedRequest::read_body(std::size_t /*bytes_max*/) { co_return Buffer(); }

}  // namespace tambour::http::detail
