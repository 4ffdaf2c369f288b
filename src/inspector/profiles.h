// CPU and heap profiles of the process, made by gperftools if the process has it.
#pragma once

#include <tambour/http/request.h>
#include <tambour/http/response.h>
#include <tambour/task/task.h>

namespace tambour::inspector {

/// Which profiles are available, and what to do for the others.
void send_profiles(http::Response& response);

// The parameter `seconds` of the request is the length of the profile. pprof(1) reads the answer.
[[nodiscard]] Task<> send_cpu_profile(http::Request& request, http::Response& response);
[[nodiscard]] Task<> send_heap_profile(http::Request& request, http::Response& response);

}  // namespace tambour::inspector
