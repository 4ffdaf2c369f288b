# The libraries of HTTP, for content codings and public suffixes. Each can be disabled.
set(tambour_http_libraries "")          # The targets to link.
set(tambour_http_modules "")  # The modules for pkg-config.
set(tambour_http_packages "") # For tambourConfig.cmake: "PREFIX=module,module".

function(tambour_http_library option prefix package)
  if(NOT ${option})
    target_compile_definitions(tambour_options INTERFACE TAMBOUR_NO_${prefix})
    return()
  endif()
  pkg_check_modules(${prefix} IMPORTED_TARGET ${ARGN})
  list(JOIN ARGN "," modules)
  if(NOT ${prefix}_FOUND)
    message(FATAL_ERROR "${modules} was not found. Install it (${package}), or configure with "
                        "-D${option}=OFF.")
  endif()
  set(tambour_http_libraries ${tambour_http_libraries} PkgConfig::${prefix} PARENT_SCOPE)
  set(tambour_http_modules ${tambour_http_modules} ${ARGN} PARENT_SCOPE)
  set(tambour_http_packages "${tambour_http_packages} ${prefix}=${modules}" PARENT_SCOPE)
endfunction()

tambour_http_library(TAMBOUR_ZLIB ZLIB zlib1g-dev zlib)
tambour_http_library(TAMBOUR_BROTLI BROTLI libbrotli-dev libbrotlienc libbrotlidec)
tambour_http_library(TAMBOUR_ZSTD ZSTD libzstd-dev libzstd)
tambour_http_library(TAMBOUR_PSL PSL libpsl-dev libpsl)
