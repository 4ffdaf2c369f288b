# Writes a version script and a source with a weak definition of each exported symbol. A library
# that implements a symbol has a strong definition, which takes precedence. What remains weak (W or
# V in `nm -D`) is not implemented: such a function prints its name and aborts. A symbol of the kind
# `own` is not libevent's.
#
# libevent_exports(NAME OUTPUT_SOURCE OUTPUT_MAP), from exports/NAME.txt
function(libevent_exports name source map)
  set(list ${CMAKE_CURRENT_SOURCE_DIR}/exports/${name}.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  file(STRINGS ${list} lines)
  set(code "void tambour_libevent_missing(const char* name) __attribute__((noreturn));\n")
  set(names "")
  foreach(line IN LISTS lines)
    string(REPLACE " " ";" words "${line}")
    list(GET words 0 symbol)
    list(GET words 1 kind)
    string(APPEND names "    ${symbol};\n")
    if(kind STREQUAL "own")
      continue()
    elseif(kind STREQUAL "data")
      list(GET words 2 size)
      string(APPEND code
             "__attribute__((weak, aligned(16))) char ${symbol}[${size}] = {0};\n")
    else()
      string(APPEND code "__attribute__((weak)) void ${symbol}(void) "
                         "{ tambour_libevent_missing(\"${symbol}\"); }\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${source} CONTENT "${code}" @ONLY)
  file(CONFIGURE OUTPUT ${map} CONTENT "{\n  global:\n${names}  local:\n    *;\n};\n" @ONLY)
endfunction()
