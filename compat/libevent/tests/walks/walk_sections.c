/* The sections about buffers, bufferevents and listeners. */
#include <stddef.h>

#include "walk_bufferevent.h"

const struct section* const all_sections[] = {
    byte_sections,   search_sections,    callback_sections, file_sections,
    limit_sections,  tag_sections,       socket_sections,   pair_sections,
    filter_sections, limit_bev_sections, listener_sections, NULL};
