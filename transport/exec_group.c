/* In: what a sandbox says that several files hold, held in memory within bounds; trusted with
 * nothing but its own files. Out: where each file's bytes are, if all of it agrees. */
#include "transport/exec_group.h"

#include <string.h>

#include "base/limits.h"
#include "base/quote.h"

/* `recs` gives names to find as they are, which would take these for options or operators. */
static bool is_odd(const struct sbx_wanted *file)
{
    return file->path_len == 0 || memchr(SBX_QUOTE_ODD, file->path[0], strlen(SBX_QUOTE_ODD));
}

size_t sbx_exec_group(const struct sbx_wanted *const files[], size_t n, size_t singles, size_t at)
{
    uint64_t bytes = 0;
    size_t names = 0, count = 0;

    while (at + count < n && at + count >= singles && count < SBX_GROUP_FILES) {
        const struct sbx_wanted *file = files[at + count];

        if (is_odd(file) || file->size > SBX_GROUP_FILE || file->path_len > SBX_GROUP_NAMES)
            break;
        bytes += file->size;
        names += file->path_len + 1;
        if (bytes > SBX_GROUP_BYTES || names > SBX_GROUP_NAMES)
            break;
        count++;
    }
    return count ? count : 1;
}

size_t sbx_exec_group_max(const struct sbx_wanted *const files[], size_t count)
{
    size_t max = 256; /* markers */

    for (size_t i = 0; i < count; i++)
        max += (size_t)files[i]->size + 2 * (files[i]->path_len + SBX_GROUP_RECORD);
    return max;
}

/* The decimal number that a record begins with, up to its blank. */
static bool begins_with(const char *record, size_t n, uint64_t size)
{
    uint64_t value = 0;
    size_t i;

    for (i = 0; i < n && record[i] >= '0' && record[i] <= '9'; i++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(record[i] - '0'), &value))
            return false;
    }
    return i > 0 && i < n && record[i] == ' ' && value == size;
}

static bool prove_records(const char *records, size_t n, const struct sbx_wanted *const files[],
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *end = memchr(records, '\0', n);

        if (!end || !begins_with(records, (size_t)(end - records), files[i]->size))
            return false;
        n -= (size_t)(end - records) + 1;
        records = end + 1;
    }
    return n == 0;
}

bool sbx_exec_group_prove(const char *payload, size_t n, const char *marker, size_t marker_len,
                          const struct sbx_wanted *const files[], size_t count,
                          struct sbx_exec_payload *ret)
{
    const char *first = n ? memmem(payload, n, marker, marker_len) : NULL;
    size_t records, content = 0;

    if (!first)
        return false;
    records = (size_t)(first - payload);
    for (size_t i = 0; i < count; i++)
        content += (size_t)files[i]->size;
    if (n != 2 * records + 2 * marker_len + content ||
        memcmp(first + marker_len + content, marker, marker_len) != 0 ||
        memcmp(payload, payload + n - records, records) != 0 ||
        !prove_records(payload, records, files, count))
        return false;
    *ret = (struct sbx_exec_payload){.records = payload, .content = first + marker_len};
    return true;
}
