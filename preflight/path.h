/* The rules about one path, and about one component of it. Pure. */
#ifndef PREFLIGHT_PATH_H
#define PREFLIGHT_PATH_H

#include <stddef.h>

#include "base/attr.h"
#include "sbx/sync.h"
#include "sbx/verdict.h"

/* What every name of our own in a destination begins with; such names are reserved. */
#define SBX_PRE_OURS ".sbx-sync"

/* SBX_REASON_NONE, or the first rule that refuses the relative path bytes[0..n): encoding,
 * traversal, too-long, too-deep, reserved-name, and under SBX_NAMES_PORTABLE separator, control,
 * reserved-char, trailing and the device names
 * (https://learn.microsoft.com/windows/win32/fileio/naming-a-file). A NUL, which no listing can
 * hold, is refused as control under both. */
SBX_MUST_CHECK enum sbx_reason sbx_pre_path(const char *bytes, size_t n, enum sbx_names names);

/* The answers of both profiles at once. */
struct sbx_pre_path_reasons {
    enum sbx_reason posix, portable;
};
struct sbx_pre_path_reasons sbx_pre_path_reasons(const char *bytes, size_t n);

#endif
