// The page of the inspector: the files of src/inspector/page, which CMake puts into the library.
#pragma once

#include <string_view>

namespace tambour::inspector {

extern const std::string_view page_html;
extern const std::string_view page_css;
extern const std::string_view page_js;

}  // namespace tambour::inspector
