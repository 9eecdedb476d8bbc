/* The patterns of --exclude. Pure. */
#ifndef PREFLIGHT_EXCLUDE_H
#define PREFLIGHT_EXCLUDE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the pattern matches the path (UTF-8) or a directory above it. Without a slash it matches
 * any component, with one from the root; a leading slash is allowed, and a trailing one asks for a
 * directory and does not count as one. `*` and `?` (one character) stop at a slash, `**` does not;
 * a component `**` also stands for none. Everything else is literal, and case counts. Linear in
 * pattern times path. */
bool sbx_pre_exclude(const char *pattern, const char *path, size_t path_len);

/* One plain name: no slash, no wildcard, and nothing that `find -name` reads otherwise, so that a
 * remote walk can prune it. */
bool sbx_pre_exclude_plain(const char *pattern);

#endif
