# An overlay port: vcpkg install tambour --overlay-ports=packaging/vcpkg
# It builds the sources that contain it, or those in the environment variable TAMBOUR_SOURCE.
if(DEFINED ENV{TAMBOUR_SOURCE})
  set(SOURCE_PATH "$ENV{TAMBOUR_SOURCE}")
else()
  get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)
endif()

vcpkg_check_features(OUT_FEATURE_OPTIONS feature_options
  FEATURES
    tls    TAMBOUR_TLS
    zlib   TAMBOUR_ZLIB
    brotli TAMBOUR_BROTLI
    zstd   TAMBOUR_ZSTD
    psl    TAMBOUR_PSL)
vcpkg_find_acquire_program(PKGCONFIG)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${feature_options}
    -DTAMBOUR_BUILD_TESTS=OFF
    -DTAMBOUR_BUILD_BENCH=OFF
    -DTAMBOUR_BUILD_EXAMPLES=OFF
    -DTAMBOUR_BUILD_DROP_INS=OFF
    "-DPKG_CONFIG_EXECUTABLE=${PKGCONFIG}")
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME tambour CONFIG_PATH lib/cmake/tambour)
vcpkg_fixup_pkgconfig()
vcpkg_copy_tools(TOOL_NAMES tambour tambour-check-coroutines AUTO_CLEAN)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
