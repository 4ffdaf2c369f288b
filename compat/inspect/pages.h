// The pages of the inspector of an unmodified program.
#pragma once

#include <tambour/http/router.h>

#include "inspect/program.h"
#include "inspector/observed_loops.h"

namespace tambour::inspect {

/// `inspector_loop` is the loop of the inspector, whose sockets are listed too.
[[nodiscard]] http::Router make_pages(Program& program,
                                      std::shared_ptr<inspector::ObservedLoop> inspector_loop);

}  // namespace tambour::inspect
